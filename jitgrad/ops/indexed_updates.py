"""JAX's ``x.at[index].set(v)`` and others: new tensors with some elements replaced or added to."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, IndexingError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, divide, maximum, minimum, multiply, negative
from jitgrad.ops.comparison import equal, less, where
from jitgrad.ops.creation import arange, asarray, ones
from jitgrad.ops.inplace import with_added, with_changed, with_item
from jitgrad.ops.joining import pad
from jitgrad.ops.movement import broadcast_to, reshape
from jitgrad.ops.scattering import scatter_reduce
from jitgrad.ops.subscript import consumed, entries_of, expanded, get_item, is_array, is_mask
from jitgrad.ops.transcendental import pow

Update = Callable[[Tensor, Any, Any], Tensor]


class IndexedUpdates:
    """``x.at``, which takes an index."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> IndexedUpdate:
        return IndexedUpdate(self._tensor, index)


class IndexedUpdate:
    """``x.at[index]``: each method returns a new tensor, and the gradient reaches ``x`` and the values.

    Equal indices count each, but for `set`, where the last one does. ``mode`` says what an index out of bounds does: None
    and "promise_in_bounds": an error; "drop" and "fill": nothing, and `get` gives ``fill_value`` there, or else NaN, the
    smallest integer, or True; "clip": it is moved to the nearest element. Indices from -n on count from the end in all of
    them. ``unique_indices`` and ``indices_are_sorted``, which help JAX, change nothing.
    """

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor: Tensor, index: Any) -> None:
        self._tensor = tensor
        self._index = index

    def get(self, *, mode: Any = None, fill_value: Any = None, **hints: Any) -> Tensor:
        """``x[index]``."""
        _check(hints)
        how = _mode_of(mode)
        if how is None:
            return get_item(self._tensor, self._index)
        fill = _fill_of(self._tensor.dtype) if fill_value is None else fill_value
        return get_item(*_bounded(self._tensor, self._index, how, fill))

    def set(self, values: Any, **hints: Any) -> Tensor:
        """``x`` with ``values`` at the index; of equal indices the last counts."""
        return self._updated(with_item, values, hints)

    def add(self, values: Any, **hints: Any) -> Tensor:
        """``x`` with ``values`` added at the index."""
        return self._updated(with_added, values, hints)

    def subtract(self, values: Any, **hints: Any) -> Tensor:
        """``x`` with ``values`` subtracted at the index."""
        return self.add(negative(values), **hints)

    def multiply(self, values: Any, **hints: Any) -> Tensor:
        """``x`` multiplied by ``values`` at the index."""
        return self._updated(partial(_changed, multiply, "prod"), values, hints)

    mul = multiply

    def divide(self, values: Any, **hints: Any) -> Tensor:
        """``x`` divided by ``values`` at the index."""
        return divide(self._tensor, self._product_of(values, hints))

    def power(self, values: Any, **hints: Any) -> Tensor:
        """``x`` to the power ``values`` at the index."""
        return pow(self._tensor, self._product_of(values, hints))

    def min(self, values: Any, **hints: Any) -> Tensor:
        """The smaller of ``x`` and ``values`` at the index."""
        return self._updated(partial(_changed, minimum, "amin"), values, hints)

    def max(self, values: Any, **hints: Any) -> Tensor:
        """The larger of ``x`` and ``values`` at the index."""
        return self._updated(partial(_changed, maximum, "amax"), values, hints)

    def apply(self, ufunc: Callable[[Any], Any], **hints: Any) -> Tensor:
        """``x`` with ``ufunc(x[index])`` at the index. Raises IndexingError for arrays of integers, which may repeat."""
        if _names_elements(self._index):
            raise IndexingError("at[...].apply of arrays of integers, which may repeat: use x.at[i].set(f(x[i])) if none do")
        return self.set(ufunc(self.get(**hints)), **hints)

    def _updated(self, update: Update, values: Any, hints: dict[str, Any]) -> Tensor:
        """``update(x, index, values)``, within bounds as ``mode`` says; what is dropped goes to a place beyond each axis."""
        how = _mode_of(hints.pop("mode", None))
        _check(hints)
        if how is None:
            return update(self._tensor, self._index, values)
        wide, index = _bounded(self._tensor, self._index, how, 0)
        return get_item(update(wide, index, values), tuple(slice(n) for n in self._tensor.shape))

    def _product_of(self, values: Any, hints: dict[str, Any]) -> Tensor:
        """What each element is divided by, or is raised to: 1 where the index names none."""
        dtype = np.result_type(self._tensor.dtype, asarray(values).dtype)
        return IndexedUpdate(ones(self._tensor.shape, dtype=dtype), self._index).multiply(values, **hints)


def _names_elements(index: Any) -> bool:
    """Whether arrays of integers, which may repeat, are part of the index."""
    return any(is_array(entry) and not is_mask(entry) for entry in entries_of(index))


def _changed(op: Callable[[Any, Any], Tensor], reduction: str, x: Tensor, index: Any, values: Any) -> Tensor:
    """``x`` after ``x[index] = op(x[index], values)``; equal indices count each."""
    if not _names_elements(index):
        return with_changed(x, index, op, values)
    places = get_item(reshape(arange(x.size), x.shape), index)
    spread = broadcast_to(astype(asarray(values), x.dtype), places.shape)
    flat = scatter_reduce(reshape(x, (-1,)), 0, reshape(places, (-1,)), reshape(spread, (-1,)), reduction)
    return reshape(flat, x.shape)


def _bounded(x: Tensor, index: Any, how: str, fill: Any) -> tuple[Tensor, tuple[Any, ...]]:
    """``x`` and ``index`` with all of it in bounds: moved to the nearest element, or to one more, ``fill``, of its axis."""
    entries: list[Any] = []
    axis, widths = 0, [(0, 0)] * x.ndim
    for entry in expanded(x.shape, entries_of(index)):
        if entry is None or isinstance(entry, slice) or is_mask(entry):
            entries.append(entry)
        else:
            entries.append(_within(entry, x.shape[axis], how))
            widths[axis] = (0, 0 if how == "clip" else 1)
        axis += consumed(entry)
    wide = pad(x, widths, constant_values=fill) if any(after for _, after in widths) else x
    return wide, tuple(entries)


def _within(entry: Any, n: int, how: str) -> Any:
    """Indices of an axis of length ``n``, of which those out of bounds are moved to the nearest one, or to ``n``."""
    if not is_array(entry):
        i = operator.index(entry)
        nearest = builtins.max(builtins.min(i, n - 1), -n)
        return nearest if how == "clip" else i % n if i == nearest else n
    moved = maximum(minimum(entry, n - 1), -n)
    return moved if how == "clip" else where(equal(entry, moved), where(less(moved, 0), add(moved, n), moved), n)


def _mode_of(mode: Any) -> str | None:
    """None where indices must be in bounds, "clip" or "drop"; raises ArgumentError."""
    name = None if mode is None else str(getattr(mode, "name", mode)).lower()
    if name in (None, "promise_in_bounds"):
        return None
    if name in ("clip", "drop", "fill", "fill_or_drop"):
        return "clip" if name == "clip" else "drop"
    raise ArgumentError(f"at[...]: mode is None, 'promise_in_bounds', 'clip', 'drop' or 'fill', got {shown(mode)}")


def _fill_of(dtype: np.dtype[Any]) -> Any:
    """JAX's value for elements that are not there."""
    if dtype.kind in "fc":
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def _check(hints: dict[str, Any]) -> None:
    for name in hints:
        if name not in ("unique_indices", "indices_are_sorted", "wrap_negative_indices"):
            raise ArgumentError(f"at[...] takes mode=, unique_indices= and indices_are_sorted=, got {name}=")
    if hints.get("wrap_negative_indices") is False:
        raise ArgumentError("at[...] takes no wrap_negative_indices=False: negative indices count from the end; leave it out")
