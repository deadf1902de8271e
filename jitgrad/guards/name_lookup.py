"""From a name in the code to its value: closure cells, globals, builtins and imports, and on through modules."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any

from jitgrad.core.origin import Origin
from jitgrad.guards.bytecode import Chain
from jitgrad.guards.denylist import imported_module, is_library_module
from jitgrad.guards.guard import MISSING, Check, Path, cell_contents


@dataclass(slots=True)
class Resolution:
    """Where a chain leads: the value, how to write it, the attributes it takes from there, the reads to guard."""

    value: Any
    path: Path
    attrs: deque[str] = field(default_factory=deque)
    checks: list[Check] = field(default_factory=list)


def follow(
    chain: Chain, function: FunctionType, cells: Mapping[str, CellType], *, file: str, home: str
) -> Resolution | None:
    """Follow ``root.attr...`` as far as modules go; None for a local, or what a module lacks.

    ``cells`` are those that come from outside ``function``. Globals of other modules than ``home`` are written with
    their module. What libraries hold is trusted, so only user modules and the first name need checks.
    """
    origin = Origin(file, chain.line)
    found = _root(chain, function, cells, origin, home)
    if found is None:
        return None
    found.attrs.extend(chain.attrs)
    while found.attrs and isinstance(found.value, ModuleType):
        module, name = found.value, found.attrs.popleft()
        found.value, found.path = getattr(module, name, MISSING), found.path.attr(name)
        if found.value is MISSING:
            return None
        if name in module.__dict__ and not is_library_module(module.__name__):
            found.checks.append(Check("item", module.__dict__, name, found.value, found.path, origin))
    return found


def _root(
    chain: Chain, function: FunctionType, cells: Mapping[str, CellType], origin: Origin, home: str
) -> Resolution | None:
    name, scope = chain.root, function.__globals__
    if chain.kind == "import":
        return Resolution(imported_module(name, scope), Path("module", name))
    if chain.kind == "free":
        cell = cells.get(name)
        if cell is None:  # a local of the function around
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
