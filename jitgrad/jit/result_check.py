"""Parts of a result that are no tensors: the same object or a copy for each call, or refused, as iterators are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from types import AsyncGeneratorType, CoroutineType, FunctionType, ModuleType
from typing import Any
from weakref import ProxyTypes

import optree

from jitgrad.core.errors import UnguardableError
from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor
from jitgrad.guards.denylist import is_consumed_by_reading
from jitgrad.guards.environment import TEXT_STORED
from jitgrad.guards.object_state import instance_dict, slots_of
from jitgrad.guards.writes import has_traced_text
from jitgrad.jit.made_objects import MadeObjects

_MAX_OBJECTS = 10_000  # that are looked at: an object may lead to a data set
_PARTS = "return its parts in a tuple, list or dict, or make a container of its class with optree.register_pytree_node"


class ResultParts:
    """What to do with the parts of the result of the function ``name`` that are no tensors.

    ``existed`` says whether an object is known to be older than the call: every call returns that same object. Of what
    the function makes, ``made`` gives each call a copy. A call puts the values ``stored`` in their places again.
    """

    def __init__(self, name: str, existed: Callable[[Any], bool], stored: list[Any]) -> None:
        self.made: MadeObjects = MadeObjects(name, existed)
        self._name = name
        self._existed: Callable[[Any], bool] = existed
        self._values = stored
        self._stored = {id(x) for x in optree.tree_leaves(stored)}

    def flatten(self, result: Any) -> tuple[list[Any], Any]:
        """The leaves and the structure of ``result``, with what is stored: those of a pair of both, if that is anything."""
        tree = (result, self._values) if self._values else result
        leaves, treedef = optree.tree_flatten(tree, self._is_leaf, none_is_leaf=True)
        return leaves, treedef

    def _is_leaf(self, x: Any) -> bool:
        """Whether ``x`` is a container that every call returns as it is, with all that it holds then."""
        return not isinstance(x, tuple) and self._existed(x) and _path_to_traced(x, self._stored) is None

    def check(self, x: Any) -> int | None:
        """The position in ``made`` of the copies of ``x``; None if every call returns ``x``.

        Raises:
            UnguardableError: it is an iterator, generator or coroutine, which is used up by its first use, or it holds a
                traced tensor, which has no data in later calls, or it is made in the call and cannot be copied.
        """
        _check_constant(self._name, x, self._stored)
        return self.made.add(x)


def _check_constant(name: str, x: Any, stored: Collection[int]) -> None:
    """Refuse what is used up by its first use, and what holds a traced tensor."""
    what = f"@jit function {name!r} returns or stores an instance of {type(x).__name__}"
    if isinstance(x, (CoroutineType, AsyncGeneratorType)) or (is_consumed_by_reading(x) and type(x) not in ProxyTypes):
        if isinstance(x, CoroutineType):
            x.close()  # else Python warns that nobody awaited it
        raise UnguardableError(
            f"{what}, which can be used only once, and whose code would run outside of the trace: return a list or a tuple"
            " of what it gives, or decorate the function that the generator or coroutine calls"
        )
    if (path := _path_to_traced(x, stored)) is not None:
        raise UnguardableError(f"{what}, whose {path} is a traced tensor and has no data in later calls: {_PARTS}")
    if has_traced_text(x):
        raise UnguardableError(f"{what}: {TEXT_STORED}")


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
