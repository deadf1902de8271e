"""How each op is applied to whole arrays: a rule for each kind of ops, and for those that are of no kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.batching.application import Application
from jitgrad.batching.indexing_rules import INDEXING_RULES
from jitgrad.batching.product_rules import PRODUCT_RULES
from jitgrad.core.aval import Shape
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import Kind, OpDef
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.convolution import FOLD, UNFOLD
from jitgrad.ops.creation import COPY, FULL
from jitgrad.ops.decompositions import CHOLESKY, EIG, EIGH, FAILING_MINOR, QR, REFLECTIONS, SVD
from jitgrad.ops.factors import LU_FACTORS, SLOGDET_BY_FACTORS
from jitgrad.ops.fourier import TRANSFORMS
from jitgrad.ops.identity import ANY_EXAMPLE, UPDATED
from jitgrad.ops.indexing import PUT_SLICE
from jitgrad.ops.integers import EXPONENT, GCD
from jitgrad.ops.inverses import DETERMINANT, INVERSE, PSEUDO_INVERSE, SLOGDET
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.labels import CHECK_CLASSES
from jitgrad.ops.lu import LU, ROW_ORDER
from jitgrad.ops.matrix_exponential import MATRIX_EXP
from jitgrad.ops.movement import (
    BROADCAST_TO,
    EXPAND_DIMS,
    PERMUTE_DIMS,
    PLACE,
    RESHAPE,
    SLICE,
    SQUEEZE,
    broadcast_to,
    reshape,
)
from jitgrad.ops.placement import MOVE
from jitgrad.ops.reduce import any as any_

# The result(s) of an op for all examples, along axis 0; NotImplemented where it can only be applied to one example after
# the other. At least one operand is mapped.
BatchingRule = Callable[[Application], Any]


def _leading(a: Application) -> Any:
    """The op takes any axes before those it works on."""
    return apply_op(a.op, *a.operands, **a.attrs)


def _aligned(a: Application) -> Any:
    """Elementwise: the operands broadcast."""
    ndim = max(aval.ndim for aval in a.avals)
    return apply_op(a.op, *[a.aligned(k, ndim) for k in range(len(a.operands))], **a.attrs)


def _whole(a: Application) -> Any:
    return apply_op(a.op, *map(a.whole, range(len(a.operands))), **a.attrs)


def _axes_one_further(a: Application) -> Any:
    """Attribute ``axis`` or ``axes`` (one or several) names axes of the operand or the result."""
    name = "axis" if "axis" in a.attrs else "axes"
    axis = a.attrs[name]
    moved = tuple(k + 1 for k in axis) if isinstance(axis, tuple) else axis + 1
    return apply_op(a.op, *a.operands, **{**a.attrs, name: moved})


def _per_line(a: Application) -> Any:
    if a.aval(0).ndim and a.attrs.get("axis", 0) is not None:
        return _axes_one_further(a)
    expected = a.op.abstract(a.avals, a.attrs)  # all elements are one line, also a number
    lines = reshape(a.operands[0], (a.size, -1))
    return reshape(apply_op(a.op, lines, **{**a.attrs, "axis": 1}), (a.size, *expected.shape))  # type: ignore[union-attr]


def _concat(a: Application) -> Any:
    return apply_op(a.op, *map(a.whole, range(len(a.operands))), axis=a.attrs["axis"] + 1)


# --- movement ----------------------------------------------------------------------------------------------------


def _broadcast_to(a: Application) -> Any:
    shape: Shape = a.attrs["shape"]
    return broadcast_to(a.aligned(0, len(shape)), (a.size, *shape))


def _reshape(a: Application) -> Any:
    return apply_op(RESHAPE, a.operands[0], shape=(a.size, *a.attrs["shape"]))


def _permute_dims(a: Application) -> Any:
    return apply_op(PERMUTE_DIMS, a.operands[0], axes=(0, *[k + 1 for k in a.attrs["axes"]]))


def _sliced(a: Application) -> Any:
    """Attribute ``index`` has a (start, step, length) for each axis, and ``shape`` a length, if there is one."""
    attrs = {**a.attrs, "index": ((0, 1, a.size), *a.attrs["index"])}
    if "shape" in attrs:
        attrs["shape"] = (a.size, *attrs["shape"])
    return apply_op(a.op, *map(a.whole, range(len(a.operands))), **attrs)


def _full(a: Application) -> Any:
    shape, dtype = a.attrs["shape"], a.attrs["dtype"]
    value = a.column(0, len(shape))
    return broadcast_to(value if value.dtype == dtype else astype(value, dtype), (a.size, *shape))


def _any_example(a: Application) -> Any:
    """One condition for all examples, also for those of a vmap around this one."""
    return apply_op(ANY_EXAMPLE, any_(a.operands[0], axis=0))


_BY_KIND: Mapping[Kind, BatchingRule] = {Kind.ELEMENTWISE: _aligned, Kind.REDUCE: _axes_one_further}

_BY_OP: Mapping[OpDef, BatchingRule] = {
    ANY_EXAMPLE: _any_example,
    UPDATED: _whole,  # its eager function does not broadcast
    BROADCAST_TO: _broadcast_to,
    RESHAPE: _reshape,
    PERMUTE_DIMS: _permute_dims,
    EXPAND_DIMS: _axes_one_further,
    SQUEEZE: _axes_one_further,
    SLICE: _sliced,
    PLACE: _sliced,
    PUT_SLICE: _sliced,
    FULL: _full,
    CONCAT: _concat,
    GCD: _aligned,
    **dict.fromkeys((COPY, MOVE, EXPONENT, CHECK_CLASSES), _leading),
    **dict.fromkeys((UNFOLD, FOLD), _leading),
    SLOGDET_BY_FACTORS: _whole,  # its operands do not broadcast
    **dict.fromkeys((LU_FACTORS, INVERSE, DETERMINANT, SLOGDET, PSEUDO_INVERSE, MATRIX_EXP), _leading),
    **dict.fromkeys((CHOLESKY, EIG, EIGH, SVD, QR, LU, ROW_ORDER, FAILING_MINOR, REFLECTIONS), _leading),
    **dict.fromkeys(TRANSFORMS, _axes_one_further),
    **INDEXING_RULES,
    **PRODUCT_RULES,
}


def batching_rule(op: OpDef) -> BatchingRule | None:
    """The rule for ``op``; None: it can only be applied to one example after the other."""
    return _BY_OP.get(op) or (_per_line if op.per_line else _BY_KIND.get(op.kind))
