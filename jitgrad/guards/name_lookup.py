"""Resolves a name in code to its value: cells, globals, builtins, imports and modules."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.bytecode import Chain, CodeFacts
from jitgrad.guards.denylist import imported_module, is_library_module
from jitgrad.guards.guard import MISSING, Check, Path, cell_contents


@dataclass(slots=True)
class Resolution:
    """The end of a chain: value, expression, attributes loaded from it, reads to guard."""

    value: Any
    path: Path
    attrs: deque[str] = field(default_factory=deque)
    checks: list[Check] = field(default_factory=list)


def follow(
    chain: Chain, function: FunctionType, cells: Mapping[str, CellType], *, file: str, home: str
) -> Resolution | None:
    """Follow ``root.attr...`` through modules; None for a local and a missing attribute.

    ``cells`` are the closure cells from outside ``function``. Globals of modules other than
    ``home`` are shown with their module. Libraries are trusted, so only user modules and the first
    name need checks.
    """
    origin = Origin(file, chain.line)
    resolution = _root(chain, function, cells, origin, home)
    if resolution is None:
        return None
    resolution.attrs.extend(chain.attrs)
    while resolution.attrs and isinstance(resolution.value, ModuleType):
        module, name = resolution.value, resolution.attrs.popleft()
        resolution.value, resolution.path = getattr(module, name, MISSING), resolution.path.attr(name)
        if resolution.value is MISSING:
            return None
        if name in module.__dict__ and not is_library_module(module.__name__):
            resolution.checks.append(Check("item", module.__dict__, name, resolution.value, resolution.path, origin))
    return resolution


def _root(
    chain: Chain, function: FunctionType, cells: Mapping[str, CellType], origin: Origin, home: str
) -> Resolution | None:
    name, scope = chain.root, function.__globals__
    if chain.kind == "import":
        return Resolution(imported_module(name, scope), Path("module", name))
    if chain.kind == "free":
        cell = cells.get(name)
        if cell is None:  # a local of the outer function
            return None
        value = cell_contents(cell)
        path = Path("closure cell", name) if name != "__class__" else Path("", "super()")
        check = Check("cell", cell, None, value, path, origin)
    elif name in scope:
        path = Path("global", name if function.__module__ == home else f"{function.__module__}.{name}")
        value = scope[name]
        check = Check("item", scope, name, value, path, origin)
    elif hasattr(builtins, name):
        path, value = Path("builtin", name), getattr(builtins, name)
        check = Check("absent", scope, name, MISSING, Path("global", name), origin)
    else:
        path, value = Path("global", name), MISSING
        check = Check("absent", scope, name, MISSING, path, origin)
    return Resolution(value, path, checks=[check])


def outside_stores(
    facts: CodeFacts, function: FunctionType, cells: Mapping[str, CellType]
) -> list[tuple[str, str, int]]:
    """(scope, name, line) of the code's assignments to outside names.

    ``t += 1`` changes a tensor in place and assigns the same object again, which is none.
    """
    stores = [("global", name, line) for name, line in facts.global_stores.items()]
    stores += [("nonlocal", name, line) for name, line in facts.free_stores.items() if name in cells]
    values = function.__globals__
    stores += [("global", n, k) for n, k in facts.global_updates.items() if not isinstance(values.get(n), Tensor)]
    stores += [
        ("nonlocal", name, line)
        for name, line in facts.free_updates.items()
        if name in cells and not isinstance(cell_contents(cells[name]), Tensor)
    ]
    return stores
