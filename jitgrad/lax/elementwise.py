"""jax.lax's elementwise functions: those of jitgrad under JAX's names."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as _np

from jitgrad.core.dispatch import aval_of as _aval_of
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy import elementwise as _numpy
from jitgrad.ops import arithmetic as _arithmetic
from jitgrad.ops import bessel as _bessel
from jitgrad.ops import bit_patterns as _bit_patterns
from jitgrad.ops import comparison as _comparison
from jitgrad.ops import complex_parts as _complex_parts
from jitgrad.ops import gamma as _gamma
from jitgrad.ops import normal_distribution as _normal_distribution
from jitgrad.ops import rounding as _rounding
from jitgrad.ops import special as _special
from jitgrad.ops import transcendental as _transcendental
from jitgrad.ops import trigonometric as _trigonometric
from jitgrad.ops.creation import asarray as _asarray
from jitgrad.ops.movement import reshape as _reshape
from jitgrad.scipy.special import incomplete_beta as _incomplete_beta

abs, add, mul, neg, sub = _arithmetic.abs, _arithmetic.add, _arithmetic.mul, _arithmetic.neg, _arithmetic.sub
max, min, rsqrt, sign, sqrt, square = (
    _arithmetic.maximum, _arithmetic.minimum, _arithmetic.rsqrt, _arithmetic.sign, _arithmetic.sqrt, _arithmetic.square,
)  # fmt: skip
reciprocal = _arithmetic.reciprocal
exp, exp2, expm1, log, log1p, logistic, pow = (
    _transcendental.exp, _transcendental.exp2, _transcendental.expm1, _transcendental.log, _transcendental.log1p,
    _transcendental.sigmoid, _transcendental.pow,
)  # fmt: skip
sin, cos, tan, sinh, cosh, tanh = (
    _trigonometric.sin, _trigonometric.cos, _trigonometric.tan, _trigonometric.sinh, _trigonometric.cosh, _trigonometric.tanh,
)  # fmt: skip
asin, acos, atan, asinh, acosh, atanh, atan2 = (
    _trigonometric.asin, _trigonometric.acos, _trigonometric.atan, _trigonometric.asinh, _trigonometric.acosh,
    _trigonometric.atanh, _trigonometric.atan2,
)  # fmt: skip
eq, ne, lt, le, gt, ge = (
    _comparison.equal, _comparison.not_equal, _comparison.less, _comparison.less_equal, _comparison.greater,
    _comparison.greater_equal,
)  # fmt: skip
bitwise_and, bitwise_or, bitwise_xor, bitwise_not, is_finite = (
    _comparison.bitwise_and, _comparison.bitwise_or, _comparison.bitwise_xor, _comparison.bitwise_invert, _comparison.isfinite,
)  # fmt: skip
shift_left, shift_right_arithmetic = _comparison.bitwise_left_shift, _comparison.bitwise_right_shift
ceil, floor, nextafter, rem = _rounding.ceil, _rounding.floor, _rounding.nextafter, _rounding.fmod
complex, conj, imag, real = _complex_parts.complex, _complex_parts.conj, _complex_parts.imag, _complex_parts.real
digamma, igamma, igammac, lgamma, polygamma, zeta = (
    _gamma.digamma, _gamma.gammainc, _gamma.gammaincc, _gamma.gammaln, _gamma.polygamma, _gamma.zeta,
)  # fmt: skip
bessel_i0e, bessel_i1e = _bessel.i0e, _bessel.i1e
clz, population_count = _bit_patterns.clz, _bit_patterns.population_count
betainc, cbrt = _incomplete_beta.betainc, _numpy.cbrt
erf, erfc, erf_inv = _special.erf, _special.erfc, _normal_distribution.erfinv


class RoundingMethod(Enum):
    """Where `round` brings numbers that are half way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Precision(Enum):
    """What JAX may lose in products; here nothing is lost, and it changes nothing."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def div(x: Any, y: Any) -> Tensor:
    """``x / y``; of integers the quotient towards zero."""
    if _aval_of(_arithmetic.DIVIDE, x).dtype.kind in "iu" and _aval_of(_arithmetic.DIVIDE, y).dtype.kind in "iu":
        numerator = _arithmetic.subtract(x, _rounding.fmod(x, y))
        return _rounding.floor_divide(numerator, y)
    return _arithmetic.divide(x, y)


def integer_pow(x: Any, y: int) -> Tensor:
    """``x ** y`` for a Python int ``y``."""
    if not isinstance(y, int):
        raise ArgumentError(f"lax.integer_pow: the exponent must be a Python int, got {type(y).__name__}")
    return _transcendental.pow(x, y)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Tensor:
    """The nearest integer; of halves the one away from zero, or the even one."""
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return _rounding.round(x)
    size = _arithmetic.abs(x)
    whole = _rounding.floor(size)
    half = _comparison.greater_equal(_arithmetic.subtract(size, whole), 0.5)
    away = _arithmetic.add(whole, _arithmetic.astype(half, whole.dtype))
    return _arithmetic.copysign(away, x)


def shift_right_logical(x: Any, y: Any) -> Tensor:
    """The bits of the integers ``x`` moved to the right by ``y``; zeros follow from the left."""
    given = _asarray(x)
    if given.dtype.kind not in "iu":
        raise DtypeError(f"lax.shift_right_logical: expected integers, got {given.aval}")
    unsigned = _np.dtype(f"u{given.dtype.itemsize}")
    moved = _comparison.bitwise_right_shift(_arithmetic.astype(given, unsigned), _arithmetic.astype(_asarray(y), unsigned))
    return _arithmetic.astype(moved, given.dtype)


def select(pred: Any, on_true: Any, on_false: Any) -> Tensor:
    """The elements of ``on_true`` where ``pred``, else those of ``on_false``."""
    return _comparison.where(pred, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Tensor:
    """Per element that of ``cases[which]``: two for a ``which`` of bools, of which false chooses the first."""
    if not cases:
        raise ArgumentError("lax.select_n: at least one case is needed, got none")
    chosen, out = _asarray(which), _asarray(cases[0])
    if chosen.dtype == _np.bool_ and len(cases) > 2:
        raise ArgumentError(f"lax.select_n: bools choose between two cases, got {len(cases)}")
    if chosen.dtype == _np.bool_:
        return _comparison.where(chosen, cases[-1], out)
    for k, case in enumerate(cases[1:], 1):
        out = _comparison.where(_comparison.equal(chosen, k), case, out)
    return out


def clamp(min: Any, x: Any, max: Any) -> Tensor:
    """``x`` cut to what is between ``min`` and ``max``."""
    return _arithmetic.clip(x, min, max)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Tensor:
    """``operand`` with its bits read as numbers of ``new_dtype``: shorter ones along one axis more, longer ones of the last axis.

    Raises ShapeError if the last axis has not as many elements as make one longer number.
    """
    x, wanted = _asarray(operand), _np.dtype(new_dtype)
    size, asked = x.dtype.itemsize, wanted.itemsize
    if size > asked:
        return _bit_patterns.bits_as(_reshape(x, (*x.shape, 1)), wanted)
    if size == asked:
        return _bit_patterns.bits_as(x, wanted)
    if x.shape[-1:] != (asked // size,):
        raise ShapeError(f"bitcast_convert_type of {x.aval} to {wanted}: expected a last axis of length {asked // size}")
    return _reshape(_bit_patterns.bits_as(x, wanted), x.shape[:-1])
