"""The walls between rooms: imports point down one list, at the top of the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jitgrad"

# Lowest first. A name stands for the file or folder of that name and for all in it, unless a longer name is listed too.
ROOMS = (
    "jitgrad.core",
    "jitgrad.vecmath",
    "jitgrad.eager",
    "jitgrad.ops",
    "jitgrad.ops.user",
    "jitgrad.autograd",
    "jitgrad.nn",
    "jitgrad.optim",
    "jitgrad.testing",
    "jitgrad.guards",
    "jitgrad.compiler.cost",  # one table of weights, for fusion, lowering and the passes
    "jitgrad.compiler.fusion",
    "jitgrad.compiler.lowering",
    "jitgrad.compiler.memory",
    "jitgrad.compiler.passes",
    "jitgrad.compiler",
    "jitgrad.backends.llvm",
    "jitgrad.backends.codegen",
    "jitgrad.backends.base",  # what a target is
    "jitgrad.backends.cpu",
    "jitgrad.backends",
    "jitgrad.runtime.executor",
    "jitgrad.runtime.library",
    "jitgrad.runtime",
    "jitgrad.jit",
    "jitgrad.inspect",
    "jitgrad",  # __init__: the public names
    "jitgrad.cli",
    "jitgrad.__main__",
)
RANK = {room: k for k, room in enumerate(ROOMS)}

# What may be imported inside functions: heavy or optional packages.
LAZY = re.compile(r"(numba|llvmlite|cupy|cuda|safetensors|rich|jinja2|pygments|click|sklearn)(\.|$)")


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


def imports(path: Path) -> Iterator[tuple[ast.stmt, str, bool]]:
    """(statement, imported module, whether it is at the top of the file)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield node, full if full in FILES else node.module or "", id(node) in top


def own(name: str) -> bool:
    return name == "jitgrad" or name.startswith("jitgrad.")


@pytest.mark.parametrize("module", FILES)
def test_imports_point_down(module: str):
    here = RANK[room(module)]
    upwards = [
        f"line {node.lineno}: {name}"
        for node, name, _ in imports(FILES[module])
        if own(name) and RANK[room(name)] > here
    ]

    assert not upwards, f"{module} imports what lies above it"


@pytest.mark.parametrize("module", FILES)
def test_imports_are_at_the_top(module: str):
    hidden = [
        f"line {node.lineno}: {name}"
        for node, name, top in imports(FILES[module])
        if not top and (own(name) or not LAZY.match(name))
    ]

    assert not hidden, f"{module}: imports inside functions hide a wrong direction"


def test_no_file_imports_itself_in_a_circle():
    graph = {
        module: {name for _, name, _ in imports(path) if name in FILES and name != module}
        for module, path in FILES.items()
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"circular import: {' -> '.join(error.args[1])}")

    assert len(order) == len(FILES)


def test_every_room_is_inhabited():
    inhabited = {room(module) for module in FILES}

    assert set(ROOMS) == inhabited


def test_vector_mathematics_stands_alone():
    for module, path in FILES.items():
        if module.startswith("jitgrad.vecmath"):
            outside = {name for _, name, _ in imports(path) if own(name)}
            assert all(name.startswith("jitgrad.vecmath") for name in outside), module


@pytest.mark.parametrize("module", [m for m in FILES if room(m).startswith(("jitgrad.compiler", "jitgrad.ops", "jitgrad.nn"))])
def test_only_code_generators_and_backends_know_numba(module: str):
    numba = [name for _, name, _ in imports(FILES[module]) if name.split(".")[0] in ("numba", "llvmlite")]

    assert not numba
