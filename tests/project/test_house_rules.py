"""The house rules that can be counted: sizes, names, and who may look at frames."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("jitgrad", "tests", "benchmarks", "examples", "docs", "tools")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

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


@dataclass(frozen=True, slots=True)
class File:
    """A source file, with what the rules look at; its tree is read once for all of them."""

    name: str
    text: str
    docstring: str | None
    nodes: tuple[ast.AST, ...]

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in self.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))

    @property
    def is_library(self) -> bool:
        return self.name.startswith("jitgrad/")


def read(path: Path) -> File:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path))
    return File(path.relative_to(ROOT).as_posix(), text, ast.get_docstring(tree), tuple(ast.walk(tree)))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end; the docstring is counted, decorators are not."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def files_are_short(file: File) -> Iterator[str]:
    lines = len(file.text.splitlines())
    if lines > MAX_FILE:
        yield f"{lines} lines; {MAX_FILE} are allowed: split it along a seam"


def functions_are_short(file: File) -> Iterator[str]:
    for f in file.functions:
        if length(f) > MAX_FUNCTION:
            yield f"line {f.lineno}: {f.name} has {length(f)} lines; {MAX_FUNCTION} are allowed"


def every_name_says_something(file: File) -> Iterator[str]:
    if not file.is_library:
        return
    path = Path(file.name)
    names = [] if file.name in NAMED_BY_OTHERS else [path.stem, path.parent.name]
    names += [f.name for f in file.functions]
    names += [node.name for node in file.nodes if isinstance(node, ast.ClassDef)]
    names += [argument.arg for f in file.functions for argument in (*f.args.args, *f.args.kwonlyargs)]
    yield from (name for name in names if BANNED.search(name.lower()))


def only_origin_and_the_observer_look_at_frames(file: File) -> Iterator[str]:
    if not file.is_library or file.name in ("jitgrad/core/origin.py", "jitgrad/guards/frames.py"):
        return
    for node in file.nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in FRAME_ACCESS
            and isinstance(node.value, ast.Name)
            and node.value.id in ("sys", "inspect")
        ):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def no_property_keeps_a_lock_in_a_forked_child(file: File) -> Iterator[str]:
    """Up to Python 3.11 functools.cached_property has a lock, which another thread may hold in a fork."""
    if not file.is_library:
        return
    imports = [node for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module == "functools"]
    imported = {alias.name for node in imports for alias in node.names} & {"cached_property"}
    for f in file.functions:
        if {ast.unparse(d) for d in f.decorator_list} & {"functools.cached_property", *imported}:
            yield f"line {f.lineno}: {f.name}"


def every_module_says_in_one_sentence_what_it_is(file: File) -> Iterator[str]:
    if not file.is_library:
        return
    if not file.docstring:
        yield "no docstring"
    elif not file.docstring.split("\n\n")[0].rstrip().endswith((".", ":")):
        yield "the first sentence of the docstring does not end"


def no_unfinished_business(file: File) -> Iterator[str]:
    if file.name != Path(__file__).relative_to(ROOT).as_posix():
        yield from re.findall(r"\b(?:TODO|FIXME|XXX)\b.*", file.text)


RULES: tuple[Callable[[File], Iterator[str]], ...] = (
    files_are_short,
    functions_are_short,
    every_name_says_something,
    only_origin_and_the_observer_look_at_frames,
    no_property_keeps_a_lock_in_a_forked_child,
    every_module_says_in_one_sentence_what_it_is,
    no_unfinished_business,
)


def test_the_rules_look_at_every_folder_of_the_library():
    folders = {path.parent.name for path in FILES if path.is_relative_to(ROOT / "jitgrad")}

    assert folders >= {"jitgrad", "core", "ops", "compiler", "llvm", "runtime"}


def test_every_file_keeps_every_rule():
    """One test for all: reading the files takes longer than all rules together."""
    broken = [f"{file.name}: {rule.__name__}: {found}" for file in map(read, FILES) for rule in RULES for found in rule(file)]

    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("tests/long.py", "x = 1\n" * 401, files_are_short),
        ("jitgrad/long.py", "def f():\n" + "    x = 1\n" * 40, functions_are_short),
        ("jitgrad/utils.py", "", every_name_says_something),
        ("jitgrad/a.py", "def f(ctx): pass", every_name_says_something),
        ("jitgrad/a.py", "sys._getframe(1)", only_origin_and_the_observer_look_at_frames),
        (
            "jitgrad/a.py",
            "from functools import cached_property\nclass C:\n    @cached_property\n    def f(self): pass",
            no_property_keeps_a_lock_in_a_forked_child,
        ),
        ("jitgrad/a.py", "x = 1", every_module_says_in_one_sentence_what_it_is),
        ("docs/a.py", "# TO" + "DO", no_unfinished_business),
    ],
)
def test_a_broken_rule_is_found(name: str, text: str, rule: Callable[[File], Iterator[str]]):
    tree = ast.parse(text)

    assert [*rule(File(name, text, ast.get_docstring(tree), tuple(ast.walk(tree))))]
