"""The house rules that can be counted: sizes, names, and who may look at frames."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("jitgrad", "tests", "benchmarks", "examples", "docs", "tools")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
LIBRARY = [path for path in FILES if path.is_relative_to(ROOT / "jitgrad")]

MAX_FILE = 400
MAX_FUNCTION = 40
BANNED = re.compile(r"(^|_)(utils?|helpers?|managers?|ctx|data2)($|_)")
NAMED_BY_OTHERS = {  # where users of torch look for clip_grad_norm_ and DataLoader, and those of JAX for tree_map
    *(f"jitgrad/nn/utils/{name}.py" for name in ("__init__", "hooked_weights", "parametrizations", "parametrize", "rnn")),
    *("jitgrad/optim/swa_utils.py", "jitgrad/hips/test_util.py", "jitgrad/jax/test_util.py"),
    *("jitgrad/utils/__init__.py", "jitgrad/utils/data.py", "jitgrad/utils/samplers.py", "jitgrad/utils/checkpoint.py"),
    *("jitgrad/flatten_util/__init__.py", *(f"jitgrad/tree_util/{name}.py" for name in ("__init__", "paths", "registration"))),
}
FRAME_ACCESS = {"_getframe", "currentframe", "_current_frames", "getouterframes", "stack", "trace"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end; the docstring is counted, decorators are not."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_the_rules_look_at_every_folder_of_the_library():
    assert {path.parent.name for path in LIBRARY} >= {"jitgrad", "core", "ops", "compiler", "llvm", "runtime"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_are_short(path: Path):
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= MAX_FILE, f"{name_of(path)} has {lines} lines; {MAX_FILE} are allowed: split it along a seam"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_functions_are_short(path: Path):
    long = [f"{f.name} (line {f.lineno}): {length(f)} lines" for f in functions(path) if length(f) > MAX_FUNCTION]

    assert not long, f"{name_of(path)}: more than {MAX_FUNCTION} lines: {'; '.join(long)}"


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_no_name_says_nothing(path: Path):
    names = [] if name_of(path) in NAMED_BY_OTHERS else [path.stem, path.parent.name]
    names += [f.name for f in functions(path)]
    names += [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    names += [argument.arg for f in functions(path) for argument in (*f.args.args, *f.args.kwonlyargs)]

    assert not [name for name in names if BANNED.search(name.lower())]


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_only_origin_and_the_observer_look_at_frames(path: Path):
    if name_of(path) in ("jitgrad/core/origin.py", "jitgrad/guards/frames.py"):
        return
    used = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr in FRAME_ACCESS
        and isinstance(node.value, ast.Name)
        and node.value.id in ("sys", "inspect")
    ]

    assert not used


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_no_property_keeps_a_lock_in_a_forked_child(path: Path):
    """Up to Python 3.11 functools.cached_property has a lock, which another thread may hold in a fork."""
    nodes = list(ast.walk(tree(path)))
    decorators = {ast.unparse(d) for node in nodes if isinstance(node, ast.FunctionDef) for d in node.decorator_list}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "functools"]
    imported = {alias.name for node in imports for alias in node.names}

    assert "functools.cached_property" not in decorators
    assert "cached_property" not in decorators & imported


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_every_module_says_in_one_sentence_what_it_is(path: Path):
    text = ast.get_docstring(tree(path))

    assert text, f"{name_of(path)} has no module docstring"
    assert text.split("\n\n")[0].rstrip().endswith((".", ":")), f"{name_of(path)}: the first sentence does not end"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_unfinished_business(path: Path):
    found = re.findall(r"\b(?:TODO|FIXME|XXX)\b.*", path.read_text(encoding="utf-8"))

    assert path == Path(__file__) or not found
