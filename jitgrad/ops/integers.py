"""Divisors of integers, the exponents of floats, and which elements are among others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Aval, Dtype, broadcast_shapes
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import abs as abs_
from jitgrad.ops.arithmetic import astype, clip, multiply, negative, subtract
from jitgrad.ops.comparison import equal, greater, less, logical_not, where
from jitgrad.ops.creation import asarray, detached, full
from jitgrad.ops.indexing import take
from jitgrad.ops.movement import flatten
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.rounding import floor_divide
from jitgrad.ops.sorting import searchsorted, sort
from jitgrad.ops.transcendental import exp2


def _gcd_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    dtype = np.result_type(*(a.dtype for a in avals))
    if dtype.kind not in "iu":
        raise DtypeError(f"gcd and lcm take integers, got {avals[0]} and {avals[1]}")
    return Aval(broadcast_shapes("gcd", avals), dtype)


GCD: OpDef = define(
    "gcd(x, y)", kind=Kind.OPAQUE, eager=np.gcd, abstract=_gcd_aval, vjp=None, domain=("index", "index")
)
_LARGEST_EXPONENT = 1 << 16  # larger ones give 0 or infinity as well
EXPONENT: OpDef = define(
    "exponent(x)",
    kind=Kind.OPAQUE,
    eager=lambda x: np.frexp(x)[1],
    abstract=lambda avals, _attrs: Aval(avals[0].shape, np.dtype(np.int32)),
    vjp=None,
)


def gcd(x: Operand, y: Operand) -> Tensor:
    """The greatest common divisor of integers per element; not negative."""
    return apply(GCD, asarray(x), asarray(y))


def lcm(x: Operand, y: Operand) -> Tensor:
    """The least common multiple of integers per element; not negative, and 0 if one is 0."""
    left, right = asarray(x), asarray(y)
    divisor = gcd(left, right)
    nothing = equal(divisor, 0)
    return abs_(multiply(floor_divide(left, where(nothing, 1, divisor)), right))


def ldexp(x: Operand, exponent: Operand) -> Tensor:
    """``x * 2**exponent`` for integer exponents, rounded once, however large they are."""
    n = asarray(exponent)
    if n.dtype.kind not in "iub":
        raise DtypeError(f"ldexp: the exponents must be integers, got {n.aval}")
    given = asarray(x)
    number = astype(given, np.result_type(given.dtype, np.float16), copy=False)
    if number.dtype == np.float16:  # float32 holds all products that float16 does not round to 0 or infinity
        return astype(ldexp(astype(number, np.float32), n), np.float16)
    if n.dtype.itemsize > 2:
        n = clip(n, None if n.dtype.kind == "u" else -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    n = astype(n, np.int32)
    limits = np.finfo(number.dtype)
    highest, lowest = int(limits.maxexp) - 1, int(limits.minexp)
    # only the last product may be denormal, or it would be rounded twice: as in musl's scalbn
    for _ in range(2):
        part = where(greater(n, highest), highest, where(less(n, lowest), lowest + int(limits.nmant) + 1, 0))
        number = multiply(number, _power_of_2(part, number.dtype))
        n = subtract(n, part)
    return multiply(number, _power_of_2(clip(n, lowest, highest), number.dtype))


def _power_of_2(n: Tensor, dtype: Dtype) -> Tensor:
    """``2**n``, in float64 first: NumPy's float32 function is not exact."""
    return astype(exp2(astype(n, np.float64)), dtype)


class MantissaAndExponent(NamedTuple):
    """``mantissa * 2**exponent``, with ``0.5 <= abs(mantissa) < 1``."""

    mantissa: Tensor
    exponent: Tensor


def frexp(x: Operand) -> MantissaAndExponent:
    """Each float as a mantissa and an int32 exponent of 2; 0, infinity and NaN are their own mantissa."""
    number = asarray(x)
    number = astype(number, np.result_type(number.dtype, np.float16), copy=False)
    exponent = apply(EXPONENT, detached(number))
    return MantissaAndExponent(ldexp(number, negative(exponent)), exponent)


@composed
@beside_operands
def isin(x: Operand, among: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element of ``x`` is one of ``among``, whose shape does not matter; NaN is none."""
    values, others = asarray(x), flatten(asarray(among))
    if not others.shape[0]:
        found = full(values.shape, False, dtype=np.bool_, device=values.device)
    else:
        dtype = np.result_type(values.dtype, others.dtype)
        ordered, wanted = sort(astype(others, dtype), axis=-1), astype(values, dtype)
        places = clip(searchsorted(ordered, wanted), 0, others.shape[0] - 1)
        found = equal(take(ordered, places, 0), wanted)
    return logical_not(found) if invert else found
