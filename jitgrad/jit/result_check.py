"""Refuses parts of a result that a compiled call cannot make anew: iterators, and objects that hold traced tensors."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType, CoroutineType, FunctionType, ModuleType
from typing import Any

from jitgrad.core.errors import UnguardableError
from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor
from jitgrad.guards.denylist import is_consumed_by_reading
from jitgrad.guards.object_state import instance_dict, slots_of

_MAX_OBJECTS = 10_000  # that are looked at: an object may lead to a data set
_PARTS = "return its parts in a tuple, list or dict, or make a container of its class with optree.register_pytree_node"


def check_constant(name: str, x: Any, stored: Collection[int]) -> None:
    """Check ``x``, a part of the result that is no tensor: each later call returns this same object.

    ``stored`` has the ids of tensors that a call puts in their places again.

    Raises:
        UnguardableError: it is an iterator, generator or coroutine, which is used up by its first use, or it holds a
            traced tensor, which has no data in later calls.
    """
    what = f"@jit function {name!r} returns or stores an instance of {type(x).__name__}"
    if isinstance(x, (CoroutineType, AsyncGeneratorType)) or is_consumed_by_reading(x):
        if isinstance(x, CoroutineType):
            x.close()  # else Python warns that nobody awaited it
        raise UnguardableError(
            f"{what}, which can be used only once, and whose code would run outside of the trace: return a list or a tuple"
            " of what it gives, or decorate the function that the generator or coroutine calls"
        )
    if (path := _path_to_traced(x, stored)) is not None:
        raise UnguardableError(f"{what}, whose {path} is a traced tensor and has no data in later calls: {_PARTS}")


def _path_to_traced(root: Any, stored: Collection[int]) -> str | None:
    """Where in ``root`` a traced tensor is, such as ``.layers[0].weight``."""
    waiting, seen = deque([("", root)]), {id(root)}
    while waiting and len(seen) < _MAX_OBJECTS:
        path, holder = waiting.popleft()
        for step, part in _parts(holder):
            if isinstance(part, Tensor):
                if type(part._data) is Value and id(part) not in stored:
                    return path + step
            elif id(part) not in seen:
                seen.add(id(part))
                waiting.append((path + step, part))
    return None


def _parts(x: Any) -> Iterator[tuple[str, Any]]:
    """What ``x`` holds, with the text that leads to it."""
    if isinstance(x, (type, ModuleType)):
        return
    if isinstance(x, dict):
        yield from ((f"[{key!r}]", value) for key, value in x.items())
    elif isinstance(x, (list, tuple, set, frozenset, deque)):
        yield from ((f"[{k}]", value) for k, value in enumerate(x))
    elif isinstance(x, FunctionType):
        yield from _variables(x)
    elif isinstance(x, partial):
        yield from _parts((x.func, *x.args))
        yield from _parts(x.keywords)
    else:
        yield from ((f".{name}", value) for name, value in (*(instance_dict(x) or {}).items(), *slots_of(x).items()))


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables of outer functions that ``function`` reads, except those that are not assigned yet."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            yield f"variable {name}", cell.cell_contents
