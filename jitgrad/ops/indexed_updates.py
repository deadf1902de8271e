"""JAX's ``x.at[index].set(v)`` and others: new tensors with some elements replaced or added to."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError, IndexingError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import divide, maximum, minimum, multiply, negative
from jitgrad.ops.inplace import with_added, with_changed, with_item
from jitgrad.ops.subscript import entries_of, get_item, is_array, is_mask
from jitgrad.ops.transcendental import pow


class IndexedUpdates:
    """``x.at``, which takes an index."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, index: Any) -> IndexedUpdate:
        return IndexedUpdate(self._tensor, index)


class IndexedUpdate:
    """``x.at[index]``: each method returns a new tensor, and the gradient reaches ``x`` and the values.

    ``unique_indices`` and ``indices_are_sorted``, which help JAX, are accepted; of ``mode`` only None is:
    an index out of bounds is an error.
    """

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor: Tensor, index: Any) -> None:
        self._tensor = tensor
        self._index = index

    def get(self, **hints: Any) -> Tensor:
        """``x[index]``."""
        _check(hints)
        return get_item(self._tensor, self._index)

    def set(self, values: Any, **hints: Any) -> Tensor:
        """``x`` with ``values`` at the index; of equal indices the last counts."""
        _check(hints)
        return with_item(self._tensor, self._index, values)

    def add(self, values: Any, **hints: Any) -> Tensor:
        """``x`` with ``values`` added at the index; equal indices add up."""
        _check(hints)
        return with_added(self._tensor, self._index, values)

    def subtract(self, values: Any, **hints: Any) -> Tensor:
        """``x`` with ``values`` subtracted at the index; equal indices add up."""
        return self.add(negative(values), **hints)

    def multiply(self, values: Any, **hints: Any) -> Tensor:
        """``x`` multiplied by ``values`` at an index without arrays of integers, whose elements could repeat."""
        return self._changed(multiply, values, hints)

    mul = multiply

    def divide(self, values: Any, **hints: Any) -> Tensor:
        """``x`` divided by ``values``, as :meth:`multiply`."""
        return self._changed(divide, values, hints)

    def power(self, values: Any, **hints: Any) -> Tensor:
        """``x`` to the power ``values``, as :meth:`multiply`."""
        return self._changed(pow, values, hints)

    def min(self, values: Any, **hints: Any) -> Tensor:
        """The smaller of ``x`` and ``values``, as :meth:`multiply`."""
        return self._changed(minimum, values, hints)

    def max(self, values: Any, **hints: Any) -> Tensor:
        """The larger of ``x`` and ``values``, as :meth:`multiply`."""
        return self._changed(maximum, values, hints)

    def _changed(self, op: Any, values: Any, hints: dict[str, Any]) -> Tensor:
        _check(hints)
        if any(is_array(entry) and not is_mask(entry) for entry in entries_of(self._index)):
            raise IndexingError(
                f"at[...].{op.__name__} of arrays of integers, which may repeat: use x.scatter_reduce, "
                "or x.at[index].set(...) of indices that do not"
            )
        return with_changed(self._tensor, self._index, op, values)


def _check(hints: dict[str, Any]) -> None:
    for name, value in hints.items():
        if name not in ("unique_indices", "indices_are_sorted") and value is not None:
            raise ArgumentError(f"at[...] takes no {name}=: an index out of bounds is an error here; leave it out")
