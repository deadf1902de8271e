"""Products of the elements so far along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.monoid import sum_dtype
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, multiply
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import cut, place
from jitgrad.ops.operand import apply


def _cumulative_prod(x: Any, *, axis: int) -> Any:
    return np.multiply.accumulate(x, axis, sum_dtype(np.asarray(x).dtype))


def _cumulative_prod_vjp(g: Tensor, _out: Any, x: Tensor, *, axis: int) -> Tensor:
    """The gradient through the products by doubling, which divides by no element: it is exact at zeros."""
    n = x.shape[axis]
    products, steps = [x], [1]
    while 2 * steps[-1] < n:
        products.append(_doubled(products[-1], axis, steps[-1]))
        steps.append(2 * steps[-1])
    for values, step in zip(reversed(products), reversed(steps), strict=True) if n > 1 else ():
        later, earlier = cut(values, axis, step, n), cut(values, axis, 0, n - step)
        g_later = cut(g, axis, step, n)
        kept = concat([cut(g, axis, 0, step), multiply(g_later, earlier)], axis)
        index = tuple((0, 1, m) for m in later.shape)
        g = add(kept, place(multiply(g_later, later), x.shape, index))
    return g


def _doubled(values: Tensor, axis: int, step: int) -> Tensor:
    """The products of up to ``2 * step`` elements before each, of those of ``step``."""
    n = values.shape[axis]
    later = multiply(cut(values, axis, step, n), cut(values, axis, 0, n - step))
    return concat([cut(values, axis, 0, step), later], axis)


CUMULATIVE_PROD = define(
    "cumulative_prod(x, *, axis)",
    kind=Kind.OPAQUE,
    per_line=True,
    eager=_cumulative_prod,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, sum_dtype(avals[0].dtype)),
    vjp=(_cumulative_prod_vjp,),
    domain=("real",),
    sample_attrs={"axis": 0},
)


def cumulative_prod(x: Tensor, axis: int) -> Tensor:
    """The products of the elements so far along ``axis``, one after the other.

    On a device, and of complex numbers, by doubling (W. D. Hillis, G. L. Steele, "Data parallel algorithms", 1986), in
    log2 n steps.
    """
    by_doubling = x.device != "cpu" or x.dtype.kind == "c"
    return _by_doubling(x, axis) if by_doubling else apply(CUMULATIVE_PROD, x, axis=axis)


@composed
def _by_doubling(values: Tensor, axis: int) -> Tensor:
    step = 1
    while step < values.shape[axis]:
        values, step = _doubled(values, axis, step), 2 * step
    return values
