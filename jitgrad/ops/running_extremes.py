"""Positions of the largest and smallest elements so far along an axis."""

from __future__ import annotations

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.comparison import greater_equal, isnan, less_equal, logical_or, where
from jitgrad.ops.creation import detached, iota
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import cut
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside

_FEW = 1 << 11  # elements, of which one more pass takes less time than three calls


def _running_position(x: Array, *, axis: int, largest: bool) -> Array:
    extreme = (np.maximum if largest else np.minimum).accumulate(x, axis)
    attains = np.equal(x, extreme)
    if x.dtype.kind == "f":
        attains |= np.isnan(x)
    if x.ndim == 1 and x.size > _FEW:
        places = np.flatnonzero(attains)  # the first element is always there
        return np.repeat(places, np.diff(places, append=x.size))
    places = np.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - axis - 1))
    found: Array = np.maximum.accumulate(attains * places, axis)
    return found


RUNNING_POSITION = define(
    "running_position(x, *, axis, largest)",
    kind=Kind.OPAQUE,
    library_kernel=True,
    per_line=True,
    eager=_running_position,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, np.dtype(np.int64)),
    domain=("real",),
    sample_attrs={"axis": 0, "largest": True},
)


def running_position(x: Tensor, axis: int, largest: bool) -> Tensor:
    """The int64 positions of the largest (smallest) elements so far along ``axis``: the last of equals; NaN stays.

    On a device by doubling (W. D. Hillis, G. L. Steele, "Data parallel algorithms", 1986), in log2 n steps.
    """
    if x.device == "cpu":
        return apply(RUNNING_POSITION, x, axis=axis, largest=largest)
    values, n = detached(x), x.shape[axis]
    with beside(x):
        indices = iota(x.shape, axis)
    step = 1
    while step < n:
        late, early = cut(values, axis, step, n), cut(values, axis, 0, n - step)
        keeps = greater_equal(late, early) if largest else less_equal(late, early)
        keeps = logical_or(keeps, isnan(late)) if x.dtype.kind == "f" else keeps
        best = where(keeps, cut(indices, axis, step, n), cut(indices, axis, 0, n - step))
        values = concat([cut(values, axis, 0, step), where(keeps, late, early)], axis)
        indices = concat([cut(indices, axis, 0, step), best], axis)
        step *= 2
    return indices
