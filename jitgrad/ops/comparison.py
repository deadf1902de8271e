"""Comparisons, predicates, logic, bit operations and selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, float_dtype, like_ufunc, select_dtype
from jitgrad.core.errors import ShapeError
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.where import select_by_mask
from jitgrad.ops.operand import Operand, apply, as_result, host_array
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.positions import position_rows, true_positions

_NO_CHOICE: Any = None

# --- selection ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selected:
    """What a vjp returns for an operand that its op selects at some elements only.

    The gradient is ``gradient`` where ``condition`` equals ``kept``, and exactly zero elsewhere. Backward
    keeps it zero there through the ops that computed the operand, whose slopes may be infinite or NaN
    where nothing of them was selected. A condition that nothing else needs is a function that computes it. If
    ``applied``, ``gradient`` is zero already where it should be. ``activation``: the op is constant there, and has no
    other operand to select.
    """

    gradient: Tensor
    condition: Operand | Callable[[], Operand]
    kept: bool = True
    applied: bool = False
    activation: bool = False

    def tensor(self) -> Tensor:
        """The gradient, computed."""
        if self.applied:
            return self.gradient
        condition = self.condition() if callable(self.condition) else self.condition
        return where(condition, self.gradient, 0.0) if self.kept else where(condition, 0.0, self.gradient)


def only_where(condition: Operand, g: Tensor) -> Selected:
    """``g`` where ``condition`` is true: the gradient of what was selected there."""
    return Selected(g, condition)


def except_where(condition: Operand, g: Tensor) -> Selected:
    """``g`` where ``condition`` is false."""
    return Selected(g, condition, kept=False)


WHERE = define_elementwise(
    "where(condition, x, y)",
    scalar="x if condition else y",
    eager=select_by_mask,
    dtypes=select_dtype,
    vjp=(
        None,
        lambda g, _out, condition, _x, _y: only_where(condition, g),
        lambda g, _out, condition, _x, _y: except_where(condition, g),
    ),
    domain=("bool", "real", "real"),
    takes_complex=True,
    one_loop=True,
)


def where(condition: Operand, x: Operand = _NO_CHOICE, y: Operand = _NO_CHOICE) -> Tensor:
    """``x`` where ``condition`` is true, else ``y``, in the common dtype of the two.

    The gradient of the choice that is not selected is exactly zero, whatever its value, and so is the
    gradient of what that was computed from. Without choices it is ``nonzero(condition)``, a tuple.
    """
    if x is None and y is None:
        positions: Tensor = nonzero(condition)  # a tuple of them: no other call is typed for its sake
        return positions
    return apply(WHERE, condition, x, y)


@beside_operands
def nonzero(x: Operand, as_tuple: bool = True) -> Any:
    """The positions of the elements that are not zero: one int64 tensor per axis.

    With ``as_tuple=False`` one tensor [count, axes] with a position in each row, as torch gives them by default.

    The shape depends on the values: a @jit function has a program for each count of positions.
    """
    if not np.ndim(x):
        raise ShapeError("nonzero of a 0-d array: there is no axis to give positions along")
    if (data := host_array(x)) is not None:
        places = np.nonzero(data)
        return tuple([as_result(np.ascontiguousarray(k)) for k in places]) if as_tuple else as_result(np.array(places).T)
    mask = apply(NOT_EQUAL, x, 0)
    return true_positions(mask, "nonzero") if as_tuple else position_rows(mask, "nonzero")


def zero_gradient(g: Tensor, _out: Any, *_operands: Any) -> Selected:
    """The vjp of a piecewise constant function; zero even where ``g`` is infinite or NaN."""
    return only_where(False, g)


# --- comparisons -------------------------------------------------------------------------------------------------


def _comparison(name: str, symbol: str, ufunc: np.ufunc, **rest: Any) -> OpDef:
    return define_elementwise(
        f"{name}(x, y)",
        scalar=f"x {symbol} y",
        eager=ufunc,
        dtypes=like_ufunc(ufunc),
        domain=("real", "real"),
        **rest,
    )


EQUAL = _comparison("equal", "==", np.equal, takes_complex=True)
NOT_EQUAL = _comparison("not_equal", "!=", np.not_equal, takes_complex=True)
LESS = _comparison("less", "<", np.less)
LESS_EQUAL = _comparison("less_equal", "<=", np.less_equal)
GREATER = _comparison("greater", ">", np.greater)
GREATER_EQUAL = _comparison("greater_equal", ">=", np.greater_equal)


def _in_range(n: int, other: Any) -> int | float:
    """``n``; infinity of its sign where the dtype of ``other`` cannot hold it, which compares alike."""
    dtype = getattr(other, "dtype", None)
    if dtype is None or dtype.kind not in "iu":
        return n
    limits = np.iinfo(dtype)
    if n > limits.max:
        return float("inf")
    return n if n >= limits.min else float("-inf")


def _compare(op: OpDef, x: Operand, y: Operand) -> Tensor:
    if type(y) is int:
        y = _in_range(y, x)
    if type(x) is int:
        x = _in_range(x, y)
    return apply(op, x, y)


def equal(x: Operand, y: Operand) -> Tensor:
    """``x == y``, bool. NaN equals nothing."""
    return _compare(EQUAL, x, y)


def not_equal(x: Operand, y: Operand) -> Tensor:
    """``x != y``, bool."""
    return _compare(NOT_EQUAL, x, y)


def less(x: Operand, y: Operand) -> Tensor:
    """``x < y``, bool."""
    return _compare(LESS, x, y)


def less_equal(x: Operand, y: Operand) -> Tensor:
    """``x <= y``, bool."""
    return _compare(LESS_EQUAL, x, y)


def greater(x: Operand, y: Operand) -> Tensor:
    """``x > y``, bool."""
    return _compare(GREATER, x, y)


def greater_equal(x: Operand, y: Operand) -> Tensor:
    """``x >= y``, bool."""
    return _compare(GREATER_EQUAL, x, y)


eq = equal
ne = not_equal
lt = less
le = less_equal
gt = greater
ge = greater_equal

# --- predicates --------------------------------------------------------------------------------------------------


def _float_predicate(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    """The predicates of integers are those of the floats that equal them."""
    return float_dtype(avals)[0], np.dtype(np.bool_)


def _predicate(name: str, ufunc: np.ufunc, takes_complex: bool = True) -> OpDef:
    return define_elementwise(
        f"{name}(x)",
        scalar=f"{name}(x)",
        eager=ufunc,
        dtypes=_float_predicate,
        domain=("real",),
        takes_complex=takes_complex,
    )


ISNAN = _predicate("isnan", np.isnan)
ISINF = _predicate("isinf", np.isinf)
ISFINITE = _predicate("isfinite", np.isfinite)
SIGNBIT = _predicate("signbit", np.signbit, takes_complex=False)


def isnan(x: Operand) -> Tensor:
    """Whether each element is NaN, bool."""
    return apply(ISNAN, x)


def isinf(x: Operand) -> Tensor:
    """Whether each element is an infinity of either sign, bool."""
    return apply(ISINF, x)


def isfinite(x: Operand) -> Tensor:
    """Whether each element is neither NaN nor infinite, bool."""
    return apply(ISFINITE, x)


def signbit(x: Operand) -> Tensor:
    """Whether each element's sign bit is set (true for ``-0.0``), bool."""
    return apply(SIGNBIT, x)


# --- logic -------------------------------------------------------------------------------------------------------


def _logical(name: str, symbol: str, ufunc: np.ufunc) -> OpDef:
    return define_elementwise(
        f"{name}(x, y)",
        scalar=f"(x != 0) {symbol} (y != 0)",
        eager=ufunc,
        dtypes=like_ufunc(ufunc),
        domain=("bool", "bool"),
        takes_complex=True,
    )


LOGICAL_AND = _logical("logical_and", "&", np.logical_and)
LOGICAL_OR = _logical("logical_or", "|", np.logical_or)
LOGICAL_XOR = _logical("logical_xor", "^", np.logical_xor)
LOGICAL_NOT = define_elementwise(
    "logical_not(x)",
    scalar="x == 0",
    eager=np.logical_not,
    dtypes=like_ufunc(np.logical_not),
    domain=("bool",),
    takes_complex=True,
)


def logical_and(x: Operand, y: Operand) -> Tensor:
    """Whether both are nonzero, bool."""
    return apply(LOGICAL_AND, x, y)


def logical_or(x: Operand, y: Operand) -> Tensor:
    """Whether one of the two is nonzero, bool."""
    return apply(LOGICAL_OR, x, y)


def logical_xor(x: Operand, y: Operand) -> Tensor:
    """Whether exactly one of the two is nonzero, bool."""
    return apply(LOGICAL_XOR, x, y)


def logical_not(x: Operand) -> Tensor:
    """Whether each element is zero, bool."""
    return apply(LOGICAL_NOT, x)


# --- bits --------------------------------------------------------------------------------------------------------


def _bitwise(name: str, scalar: str, ufunc: np.ufunc) -> OpDef:
    return define_elementwise(f"{name}(x, y)", scalar=scalar, eager=ufunc, dtypes=like_ufunc(ufunc), domain=("int", "int"))


BITWISE_AND = _bitwise("bitwise_and", "x & y", np.bitwise_and)
BITWISE_OR = _bitwise("bitwise_or", "x | y", np.bitwise_or)
BITWISE_XOR = _bitwise("bitwise_xor", "x ^ y", np.bitwise_xor)
BITWISE_LEFT_SHIFT = _bitwise("bitwise_left_shift", "left_shift(x, y)", np.left_shift)
BITWISE_RIGHT_SHIFT = _bitwise("bitwise_right_shift", "right_shift(x, y)", np.right_shift)
BITWISE_INVERT = define_elementwise(
    "bitwise_invert(x)", scalar="~x", eager=np.invert, dtypes=like_ufunc(np.invert), domain=("int",)
)


def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """``x & y`` of integers or bools. Raises DtypeError for floats, as all bitwise functions do."""
    return apply(BITWISE_AND, x, y)


def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """``x | y`` of integers or bools."""
    return apply(BITWISE_OR, x, y)


def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """``x ^ y`` of integers or bools."""
    return apply(BITWISE_XOR, x, y)


def bitwise_left_shift(x: Operand, y: Operand) -> Tensor:
    """``x << y`` of integers; 0 where ``y`` is the width of the dtype or more."""
    return apply(BITWISE_LEFT_SHIFT, x, y)


def bitwise_right_shift(x: Operand, y: Operand) -> Tensor:
    """``x >> y`` of integers, keeping the sign; 0 or -1 where ``y`` is at least the dtype's width."""
    return apply(BITWISE_RIGHT_SHIFT, x, y)


def bitwise_invert(x: Operand) -> Tensor:
    """``~x`` of integers; ``not x`` of bools."""
    return apply(BITWISE_INVERT, x)


left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
invert = bitwise_invert
bitwise_not = bitwise_invert
