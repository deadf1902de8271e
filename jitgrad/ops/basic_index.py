"""``x[index]`` for ints, slices, None and '...' in eager execution: prepared once for each shape and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import EllipsisType
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import record
from jitgrad.core.tensor import Tensor

ViewCall = tuple[OpDef, Mapping[str, Any]]
_ndarray = np.ndarray
_PLAIN = frozenset({int, EllipsisType, type(None)})


def basic_view(x: Tensor, index: Any, steps_of: Callable[[Shape, Any], tuple[ViewCall, ...]]) -> Tensor | None:
    """``x[index]`` by the view ops that ``steps_of(shape, index)`` gives; None where these are to be applied."""
    data = x._data
    if type(data) is not _ndarray or current_interpreter.get() is not current_interpreter.eager:
        return None
    entries = tuple([_hashable(entry) for entry in index]) if type(index) is tuple else (_hashable(index),)
    if _OTHER in entries:
        return None
    steps, rest = _steps(data.shape, entries, steps_of)
    if None in entries or (x._requires_grad and grad_enabled.get()):  # NumPy gives new axes other strides
        for op, attrs in steps:
            part = Tensor(op.eager(x._data, **attrs))
            _share(x, part, ((op, attrs),))
            record(op, (x,), attrs, part)
            x = part
        return x
    view = Tensor(data[rest])
    _share(x, view, steps)
    return view


def _share(x: Tensor, view: Tensor, steps: tuple[ViewCall, ...]) -> None:
    if view._data.size:  # without elements there is nothing to share
        storage = view._memory = x._storage
        storage.share_through(x, view, steps)


_OTHER = object()


def _hashable(entry: Any) -> Any:
    """An entry of an index as part of a key; `_OTHER` for arrays, tensors and what is no index."""
    if type(entry) in _PLAIN:
        return entry
    if type(entry) is slice:
        bounds = (entry.start, entry.stop, entry.step)
        if all([bound is None or type(bound) is int for bound in bounds]):
            return bounds
    return _OTHER


@lru_cache(maxsize=8192)
def _steps(
    shape: Shape, entries: tuple[Any, ...], steps_of: Callable[[Shape, Any], tuple[ViewCall, ...]]
) -> tuple[tuple[ViewCall, ...], tuple[Any, ...]]:
    """The view ops of an index, and that index for NumPy, which gives a view even of one element."""
    index = tuple([slice(*entry) if type(entry) is tuple else entry for entry in entries])
    return steps_of(shape, index), index if Ellipsis in index else (*index, Ellipsis)
