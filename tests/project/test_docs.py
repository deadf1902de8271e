"""The pages in docs/ say what is so: their programs run, their outputs are compared, their lists are complete.

After a change that is meant to show, ``pytest tests/project/test_docs.py --update-golden`` writes the outputs and tables anew.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import types
from pathlib import Path

import pytest

import jitgrad as jg
from jitgrad.backends.cpu.backend import CpuTarget
from jitgrad.backends.targets import TARGETS
from jitgrad.compiler.pipeline import PASSES
from jitgrad.core import config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)
# pages that show programs without being about to run them: other people's, or fragments
SHOWN_ONLY = {"PERFORMANCE.md"}


def run(code: str, page: Path, module: types.ModuleType) -> str:
    """What ``code`` prints; as far as Python knows it is a file named after the page."""
    name = f"{page.stem}.py"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), module.__dict__)
    return printed.getvalue().strip() + "\n"


def outputs(page: Path) -> list[tuple[str, str]]:
    """(what the page says, what its program prints) for every program with an output block."""
    module = types.ModuleType(f"docs_{page.stem}")
    sys.modules[module.__name__] = module
    found: list[tuple[str, str]] = []
    for match in PROGRAM.finditer(page.read_text(encoding="utf-8")):
        printed = run(match["code"], page, module)
        if match["output"] is not None:
            found.append((match["output"], printed))
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in SHOWN_ONLY], ids=lambda page: page.name)
def test_programs_print_what_the_page_says(page: Path, request: pytest.FixtureRequest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # one that has met no kernel yet: a kernel met before may show its literals as parameters
    monkeypatch.setitem(TARGETS, "cpu", CpuTarget())
    pairs = outputs(page)
    if request.config.getoption("--update-golden"):
        text = page.read_text(encoding="utf-8")
        for said, printed in pairs:
            text = text.replace(f"```text\n{said}```", f"```text\n{printed}```", 1)
        page.write_text(text, encoding="utf-8")
        return

    for said, printed in pairs:
        assert printed == said


def variables_table() -> str:
    rows = [f"| `{v.name}` | `{v.default}` | {v.doc} |" for v in config.VARIABLES.values()]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows]).replace("| `` |", "| |")


def test_table_of_variables_is_the_one_in_config(request: pytest.FixtureRequest):
    page = ROOT / "docs" / "env_vars.md"
    text = page.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        page.write_text(text[: text.index("| variable")] + variables_table() + "\n", encoding="utf-8")
        return

    assert text[text.index("| variable") :].strip() == variables_table()


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_architecture_names_every_room_and_only_those():
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listing = text[text.index("## Rooms") :].split("```")[1]
    listed = set(re.findall(r"^  ([a-z_]+)(?:/|\.py)", listing, re.MULTILINE))
    rooms = {p.stem for p in (ROOT / "jitgrad").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}

    assert listed == rooms - {"__init__"}


def test_architecture_names_the_passes_in_order(request: pytest.FixtureRequest):
    page = ROOT / "docs" / "ARCHITECTURE.md"
    text = page.read_text(encoding="utf-8")
    line = " . ".join(run.__name__ for run in PASSES)
    if request.config.getoption("--update-golden"):
        page.write_text(re.sub(r"(?<=  passes       ).*", line, text), encoding="utf-8")
        return

    assert f"  passes       {line}\n" in text


def test_reference_lists_every_public_name():
    text = (ROOT / "docs" / "API.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", " ".join(re.findall(r"`([^`]*)`", text))))

    assert not set(jg.__all__) - named
