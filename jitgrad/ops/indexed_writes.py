"""torch's in-place methods that write at places along an axis: into the memory of the tensor, without a copy of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexed_sums import added_elements, added_slices
from jitgrad.ops.indexing import INDEX_ADD, SCATTER_ADD
from jitgrad.ops.inplace import assign, set_item
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside
from jitgrad.ops.quick_writes import added_at
from jitgrad.ops.scattering import index_put, places_and_values, scatter, slices_key


@takes_dim()
def _index_fill(self: Tensor, axis: int, index: Operand | Sequence[int], value: Operand) -> Tensor:
    """``index_fill`` in place."""
    return _written(self, slices_key("index_fill_", self, axis, index), value)


@takes_dim(source="src")
def _index_copy(self: Tensor, axis: int, index: Operand | Sequence[int], src: Operand) -> Tensor:
    """``index_copy`` in place."""
    return _written(self, slices_key("index_copy_", self, axis, index), src)


@takes_dim()
def _scatter(
    self: Tensor, axis: int, index: Operand | Sequence[Any], src: Operand, *, reduce: str | None = None
) -> Tensor:
    """``scatter`` in place."""
    if reduce is not None:
        return assign(self, scatter(self, axis, index, src, reduce=reduce))
    with beside(self):
        return _written(self, *places_and_values(self, axis, asarray(index), src))


def _index_put(self: Tensor, indices: Sequence[Any], values: Operand, accumulate: bool = False) -> Tensor:
    """``index_put`` in place."""
    if accumulate:
        return assign(self, index_put(self, indices, values, True))
    return _written(self, tuple(i if isinstance(i, Tensor) else asarray(i) for i in indices), values)


@takes_dim(source="src")
def _index_add(self: Tensor, axis: int, index: Operand | Sequence[int], src: Operand, *, alpha: Any = 1) -> Tensor:
    """``index_add`` in place."""
    return _added(INDEX_ADD, self, *added_slices(self, index, src, alpha), normalize_axis("index_add_", axis, self.ndim))


@takes_dim()
def _scatter_add(self: Tensor, axis: int, index: Operand | Sequence[Any], src: Operand) -> Tensor:
    """``scatter_add`` in place."""
    return _added(SCATTER_ADD, self, *added_elements(self, index, src), normalize_axis("scatter_add_", axis, self.ndim))


def _written(x: Tensor, key: tuple[Any, ...], values: Any) -> Tensor:
    set_item(x, key, values)
    return x


def _added(op: OpDef, x: Tensor, index: Any, values: Any, axis: int) -> Tensor:
    if not added_at(op, x, index, values, axis):
        assign(x, apply(op, x, index, values, axis=axis))
    return x


PLACE_WRITERS: Mapping[str, Callable[..., Tensor]] = {
    "index_add_": _index_add,
    "index_copy_": _index_copy,
    "index_fill_": _index_fill,
    "index_put_": _index_put,
    "scatter_": _scatter,
    "scatter_add_": _scatter_add,
}
