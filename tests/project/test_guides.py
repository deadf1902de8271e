"""Follows every docs/adding_a_*.md to the letter in a copy of the repository, and runs the tests that the page names."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs").glob("adding_a*.md"))
COPIED = ("jitgrad", "tests", "docs", "tools", "pyproject.toml", "README.md")
# ```python new=PATH | append=PATH | after=PATH "LINE" | replace=PATH "LINE"
EDIT = re.compile(
    r'^```\w+ (?P<how>new|append|after|replace)=(?P<path>\S+)(?: "(?P<line>[^\n]*)")?\n(?P<code>.*?)^```$', re.DOTALL | re.M
)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.M)


def copy_of_the_repository(folder: Path) -> Path:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def edit(folder: Path, how: str, path: str, line: str | None, code: str) -> None:
    """Make one edit of a guide."""
    file = folder / path
    if how == "new":
        assert not file.exists(), f"{path} exists already"
        file.write_text(code, encoding="utf-8")
        return
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if how == "append":
        lines.append(code)
    else:
        assert line is not None, f"{how}={path} needs a line to look for"
        places = [k for k, text in enumerate(lines) if text.strip() == line.strip()]
        assert len(places) == 1, f"{path} has the line {line!r} {len(places)} times, not once"
        lines[places[0]] = code if how == "replace" else lines[places[0]] + code
    file.write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_following_the_guide_works(guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    folder = copy_of_the_repository(tmp_path)
    for match in EDIT.finditer(text):
        edit(folder, match["how"], match["path"], match["line"], match["code"])

    environment = {**os.environ, "PYTHONPATH": str(folder), "JITGRAD_CACHE_DIR": str(tmp_path / "cache")}
    for command in COMMANDS.findall(text)[-1].strip().splitlines():
        program, *arguments = shlex.split(command)
        assert program == "python", f"{guide.name} ends with commands of Python"
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
