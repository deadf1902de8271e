"""The walls between rooms: imports point down one list, at the top of the file, and every folder says what it imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jitgrad"

# Lowest first. A name stands for the file or folder of that name and for all in it, unless a longer name is listed too.
ROOMS = (
    "jitgrad.vecmath",
    "jitgrad.core",
    "jitgrad.eager",
    "jitgrad.device",
    "jitgrad.ops",
    "jitgrad.ops.user",
    "jitgrad.autograd",
    "jitgrad.nn",
    "jitgrad.optim",
    "jitgrad.amp",
    "jitgrad.cuda",
    "jitgrad.distributions",
    "jitgrad.utils",
    "jitgrad.numpy",
    "jitgrad.signal",
    "jitgrad.scipy",
    "jitgrad.testing",
    "jitgrad.guards",
    "jitgrad.compiler.cost",  # one table of weights, for fusion, lowering and the passes
    "jitgrad.compiler.tuning",  # the thresholds of a target
    "jitgrad.compiler.compiler_ops",  # ops that no user calls
    "jitgrad.compiler.convolution_ops",
    "jitgrad.compiler.fusion",
    "jitgrad.compiler.lowering",
    "jitgrad.compiler.memory",
    "jitgrad.compiler.passes",
    "jitgrad.compiler",
    "jitgrad.batching",
    "jitgrad.func",
    "jitgrad.hips",
    "jitgrad.lax",
    "jitgrad.tree_util",
    "jitgrad.tree",
    "jitgrad.flatten_util",
    "jitgrad.backends.llvm",
    "jitgrad.backends.codegen",
    "jitgrad.backends.base",  # what a target is
    "jitgrad.backends.cuda",  # kernels alone: no memory, no driver
    "jitgrad.runtime.executor",
    "jitgrad.runtime.library",
    "jitgrad.runtime",
    "jitgrad.backends.cpu",
    "jitgrad.backends.cuda_target",  # programs over the memory of a device
    "jitgrad.backends",  # targets: they bind kernels and runtime
    "jitgrad.eject",
    "jitgrad.jit",
    "jitgrad.inspect",
    "jitgrad.scipy.integrate",  # its functions are compiled
    "jitgrad.on_demand",  # imports the rooms above nn, optim and numpy when they are first used
    "jitgrad",  # __init__: the public names
    "jitgrad.torch",
    "jitgrad.jax",
    "jitgrad.cli",
    "jitgrad.__main__",
)
RANK = {room: k for k, room in enumerate(ROOMS)}

# Packages that take long to import, that are not always installed, or that few programs use: only these may be imported
# inside functions, and modules of jitgrad that import one of them at their top.
HEAVY = (
    "concurrent.futures numba llvmlite cupy cuda safetensors rich jinja2 pygments click scipy sklearn jitgrad.eject "
    "jitgrad.scipy jitgrad.compiler jitgrad.distributions"
).split()

LOW = ("jitgrad.compiler", "jitgrad.ops", "jitgrad.nn")  # only targets know compilers

IMPORTS = re.compile(r"\bimports? ([^.;]+)[.;]", re.IGNORECASE)  # in the docstring of a folder
EVERYTHING = "everything below it"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room(module: str) -> str:
    """The longest listed name that ``module`` is or lies in; only the package itself is in the room "jitgrad"."""
    parts = module.split(".")
    for k in range(len(parts), 1, -1):
        if ".".join(parts[:k]) in RANK:
            return ".".join(parts[:k])
    assert module == "jitgrad", f"{module} has no place in the list of rooms"
    return module


@dataclass(frozen=True, slots=True)
class Import:
    """One module that a file imports, at its top, in a function, or by ``import_module("...")``."""

    line: int
    name: str
    at_top: bool
    by_name: bool = False
    for_types: bool = False  # only type checkers see it

    @property
    def is_heavy(self) -> bool:
        return any(f"{self.name}.".startswith(f"{package}.") for package in HEAVY)

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}"


def imported_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"relative import in line {node.lineno}"
        full = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in FILES else node.module or "" for name in full)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
        yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))


def _is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id.endswith("TYPE_CHECKING")


@cache
def imports(module: str) -> tuple[Import, ...]:
    """Everything that the file of ``module`` imports, wherever in the file."""
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    typed = {id(part) for node in tree.body if _is_for_types(node) for part in node.body}
    return tuple(
        Import(node.lineno, name, id(node) in top, isinstance(node, ast.Call), id(node) in typed)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Call))
        for name in imported_names(node)
    )


def own(name: str) -> bool:
    return name == "jitgrad" or name.startswith("jitgrad.")


def own_imports(module: str) -> list[Import]:
    return [i for i in imports(module) if own(i.name)]


@cache
def imports_heavy_packages(module: str) -> bool:
    """Whether importing ``module`` imports a heavy package."""
    at_top = [i for i in imports(module) if i.at_top]
    return any(i.is_heavy or (i.name in FILES and i.name != module and imports_heavy_packages(i.name)) for i in at_top)


def folder(module: str) -> str:
    return module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]


def points_up(module: str, i: Import) -> bool:
    return own(i.name) and RANK[room(i.name)] > RANK[room(module)]


def is_hidden(module: str, i: Import) -> bool:
    """Imports inside functions hide what a file depends on; heavy packages, and modules that import one, may wait."""
    may_wait = i.at_top or i.for_types or i.by_name or i.is_heavy
    return not may_wait and not (own(i.name) and imports_heavy_packages(i.name))


def is_unseen_by_type_checkers(module: str, i: Import) -> bool:
    return own(i.name) and i.by_name


def is_a_compiler_below_targets(module: str, i: Import) -> bool:
    return module.startswith(LOW) and i.name.split(".")[0] in ("numba", "llvmlite")


@pytest.mark.parametrize("mistake", [points_up, is_hidden, is_unseen_by_type_checkers, is_a_compiler_below_targets])
def test_no_import(mistake: Callable[[str, Import], bool]):
    assert not [f"{module}, {i}" for module in FILES for i in imports(module) if mistake(module, i)]


@pytest.mark.parametrize("level", [str, room], ids=["files", "rooms"])
def test_nothing_imports_itself_in_a_circle(level: Callable[[str], str]):
    graph: dict[str, set[str]] = {level(module): set() for module in FILES}
    for module in FILES:
        graph[level(module)] |= {level(i.name) for i in own_imports(module) if i.name in FILES} - {level(module)}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"circular import: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("package", [module for module in FILES if folder(module) == module])
def test_every_folder_says_what_it_imports(package: str):
    """In the first sentence of its docstring: "...; imports core, vecmath." A name stands for all in its folder, too."""
    docstring = ast.get_docstring(ast.parse(FILES[package].read_text(encoding="utf-8"))) or ""
    stated = IMPORTS.search(docstring.split("\n\n")[0])
    assert stated, f"{FILES[package]}: say what lives here and what it imports"
    if stated[1] == EVERYTHING:
        return
    allowed = set(re.findall(r"\w+", stated[1]))
    names = {i.name for module in FILES if folder(module) == package for i in own_imports(module)}
    unnamed = {name for name in names if not name.startswith(package) and not allowed & set(name.split("."))}

    assert not unnamed, f"the docstring of {package} does not name them"


def test_nothing_lies_loose_in_the_package():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_every_room_is_inhabited():
    inhabited = {room(module) for module in FILES}

    assert set(ROOMS) == inhabited
