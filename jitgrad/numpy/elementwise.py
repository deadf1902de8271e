"""NumPy's elementwise functions: the ops of the same meaning, and compositions for those that are no ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.numpy.arguments import FLOAT64, Ufunc, as_ufunc, float_of, floating, floats_of, tensor_of
from jitgrad.numpy.output import takes_out
from jitgrad.ops import arithmetic, comparison, complex_numbers, complex_parts, rounding, transcendental, trigonometric
from jitgrad.ops.complex_parts import is_complex
from jitgrad.ops.creation import zeros_like
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside_operands

CUBE_ROOT = define_elementwise(
    "cube_root(x)",
    scalar="cbrt(x)",
    eager=np.cbrt,
    vjp=(lambda g, out, _x: arithmetic.divide(g, arithmetic.multiply(3.0, arithmetic.square(out))),),
    domain=("nonzero",),
)

abs: Ufunc = as_ufunc(arithmetic.abs)
absolute: Ufunc = abs
add: Ufunc = as_ufunc(arithmetic.add)
acos: Ufunc = as_ufunc(trigonometric.acos)
arccos: Ufunc = acos
acosh: Ufunc = as_ufunc(trigonometric.acosh)
arccosh: Ufunc = acosh
asin: Ufunc = as_ufunc(trigonometric.asin)
arcsin: Ufunc = asin
asinh: Ufunc = as_ufunc(trigonometric.asinh)
arcsinh: Ufunc = asinh
atan: Ufunc = as_ufunc(trigonometric.atan)
arctan: Ufunc = atan
atan2: Ufunc = as_ufunc(trigonometric.atan2)
arctan2: Ufunc = atan2
atanh: Ufunc = as_ufunc(trigonometric.atanh)
arctanh: Ufunc = atanh
bitwise_and: Ufunc = as_ufunc(comparison.bitwise_and)
left_shift: Ufunc = as_ufunc(comparison.bitwise_left_shift)
bitwise_left_shift: Ufunc = left_shift
invert: Ufunc = as_ufunc(comparison.bitwise_invert)
bitwise_invert: Ufunc = invert
bitwise_not: Ufunc = invert
bitwise_or: Ufunc = as_ufunc(comparison.bitwise_or)
right_shift: Ufunc = as_ufunc(comparison.bitwise_right_shift)
bitwise_right_shift: Ufunc = right_shift
bitwise_xor: Ufunc = as_ufunc(comparison.bitwise_xor)
ceil: Ufunc = as_ufunc(rounding.ceil)
conj: Ufunc = as_ufunc(complex_parts.conj)
conjugate: Ufunc = conj
copysign: Ufunc = as_ufunc(arithmetic.copysign)
cos: Ufunc = as_ufunc(trigonometric.cos)
cosh: Ufunc = as_ufunc(trigonometric.cosh)
true_divide: Ufunc = as_ufunc(arithmetic.divide)
divide: Ufunc = true_divide
equal: Ufunc = as_ufunc(comparison.equal)
exp: Ufunc = as_ufunc(transcendental.exp)
exp2: Ufunc = as_ufunc(transcendental.exp2)
expm1: Ufunc = as_ufunc(transcendental.expm1)
fix: Ufunc = as_ufunc(rounding.fix)
floor: Ufunc = as_ufunc(rounding.floor)
floor_divide: Ufunc = as_ufunc(rounding.floor_divide)
fmod: Ufunc = as_ufunc(rounding.fmod)
greater: Ufunc = as_ufunc(comparison.greater)
greater_equal: Ufunc = as_ufunc(comparison.greater_equal)
hypot: Ufunc = as_ufunc(trigonometric.hypot)
isfinite: Ufunc = as_ufunc(comparison.isfinite)
isinf: Ufunc = as_ufunc(comparison.isinf)
isnan: Ufunc = as_ufunc(comparison.isnan)
less: Ufunc = as_ufunc(comparison.less)
less_equal: Ufunc = as_ufunc(comparison.less_equal)
log: Ufunc = as_ufunc(transcendental.log)
log10: Ufunc = as_ufunc(transcendental.log10)
log1p: Ufunc = as_ufunc(transcendental.log1p)
log2: Ufunc = as_ufunc(transcendental.log2)
logaddexp: Ufunc = as_ufunc(transcendental.logaddexp)
logical_and: Ufunc = as_ufunc(comparison.logical_and)
logical_not: Ufunc = as_ufunc(comparison.logical_not)
logical_or: Ufunc = as_ufunc(comparison.logical_or)
logical_xor: Ufunc = as_ufunc(comparison.logical_xor)
maximum: Ufunc = as_ufunc(arithmetic.maximum)
minimum: Ufunc = as_ufunc(arithmetic.minimum)
multiply: Ufunc = as_ufunc(arithmetic.multiply)
negative: Ufunc = as_ufunc(arithmetic.negative)
nextafter: Ufunc = as_ufunc(rounding.nextafter)
not_equal: Ufunc = as_ufunc(comparison.not_equal)
positive: Ufunc = as_ufunc(arithmetic.positive)
pow: Ufunc = as_ufunc(transcendental.pow)
power: Ufunc = pow
reciprocal: Ufunc = as_ufunc(arithmetic.reciprocal)
mod: Ufunc = as_ufunc(rounding.remainder)
remainder: Ufunc = mod
sign: Ufunc = as_ufunc(arithmetic.sign)
signbit: Ufunc = as_ufunc(comparison.signbit)
sin: Ufunc = as_ufunc(trigonometric.sin)
sinh: Ufunc = as_ufunc(trigonometric.sinh)
sqrt: Ufunc = as_ufunc(arithmetic.sqrt)
square: Ufunc = as_ufunc(arithmetic.square)
subtract: Ufunc = as_ufunc(arithmetic.subtract)
tan: Ufunc = as_ufunc(trigonometric.tan)
tanh: Ufunc = as_ufunc(trigonometric.tanh)
trunc: Ufunc = as_ufunc(rounding.trunc)


@composed
@beside_operands
def _float_power(x: Any, y: Any) -> Tensor:
    """``x ** y`` in float64."""
    return transcendental.pow(tensor_of(x, FLOAT64), tensor_of(y, FLOAT64))


def _fabs(x: Any) -> Tensor:
    """The absolute value, as a float."""
    return arithmetic.abs(float_of(x))


@composed
@beside_operands
def _logaddexp2(x: Any, y: Any) -> Tensor:
    """``log2(2**x + 2**y)``, without overflow."""
    log_2 = math.log(2.0)
    scaled = [arithmetic.multiply(v, log_2) for v in floats_of(x, y)]
    return arithmetic.divide(transcendental.logaddexp(*scaled), log_2)


@composed
@beside_operands
def _heaviside(x: Any, at_zero: Any) -> Tensor:
    """0 where ``x`` is negative, 1 where it is positive, and ``at_zero`` where it is 0."""
    number, given = floats_of(x, at_zero)
    step = arithmetic.multiply(arithmetic.add(arithmetic.sign(number), 1.0), 0.5)
    return comparison.where(comparison.equal(number, 0), arithmetic.multiply(given, 1.0), step)


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """``floor_divide(x, y)`` and ``remainder(x, y)``."""
    return rounding.floor_divide(x, y), rounding.remainder(x, y)


@composed
@beside_operands
def _fmax(x: Any, y: Any) -> Tensor:
    """The larger of two; of a number and NaN the number."""
    return _ignoring_nan(x, y, arithmetic.maximum(x, y))


@composed
@beside_operands
def _fmin(x: Any, y: Any) -> Tensor:
    """The smaller of two; of a number and NaN the number."""
    return _ignoring_nan(x, y, arithmetic.minimum(x, y))


def _ignoring_nan(x: Any, y: Any, chosen: Tensor) -> Tensor:
    return comparison.where(comparison.isnan(x), y, comparison.where(comparison.isnan(y), x, chosen))


@composed
def _radians(x: Any) -> Tensor:
    """``x`` degrees in radians."""
    return arithmetic.multiply(float_of(x), math.pi / 180)


@composed
def _degrees(x: Any) -> Tensor:
    """``x`` radians in degrees."""
    return arithmetic.multiply(float_of(x), 180 / math.pi)


float_power: Ufunc = as_ufunc(_float_power, "float_power")
rint: Ufunc = as_ufunc(lambda x: rounding.rint(float_of(x)), "rint")
fabs: Ufunc = as_ufunc(_fabs, "fabs")
cbrt: Ufunc = as_ufunc(lambda x: apply(CUBE_ROOT, x), "cbrt")
logaddexp2: Ufunc = as_ufunc(_logaddexp2, "logaddexp2")
heaviside: Ufunc = as_ufunc(_heaviside, "heaviside")
divmod: Ufunc = as_ufunc(_divmod, "divmod")
fmax: Ufunc = as_ufunc(_fmax, "fmax")
fmin: Ufunc = as_ufunc(_fmin, "fmin")
radians: Ufunc = as_ufunc(_radians, "deg2rad")
deg2rad: Ufunc = radians
degrees: Ufunc = as_ufunc(_degrees, "rad2deg")
rad2deg: Ufunc = degrees


@takes_out
def isposinf(x: Any, out: Any = None) -> Tensor:
    """Whether each element is positive infinity."""
    return comparison.equal(floating(x), math.inf)


@takes_out
def isneginf(x: Any, out: Any = None) -> Tensor:
    """Whether each element is negative infinity."""
    return comparison.equal(floating(x), -math.inf)


def real(val: Any) -> Tensor:
    """The real part, a view of complex ``val``; a real ``val`` itself."""
    return complex_parts.real(given) if is_complex(given := tensor_of(val)) else given


def imag(val: Any) -> Tensor:
    """The imaginary part, a view of complex ``val``; zeros for a real one."""
    return complex_parts.imag(given) if is_complex(given := tensor_of(val)) else zeros_like(given)


@composed
def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of each number with the positive real axis, in radians, or in degrees."""
    out = complex_numbers.angle(float_of(z))
    return _degrees(out) if deg else out


def isreal(x: Any) -> Tensor:
    """Whether the imaginary part of each element is 0."""
    return comparison.equal(imag(x), 0)


def iscomplex(x: Any) -> Tensor:
    """Whether the imaginary part of each element is not 0."""
    return comparison.not_equal(imag(x), 0)


def iscomplexobj(x: Any) -> bool:
    """Whether ``x``, a tensor, an array or a number, has a complex dtype."""
    return is_complex(x) if isinstance(x, Tensor) else np.iscomplexobj(x)


def isrealobj(x: Any) -> bool:
    """Whether ``x``, a tensor, an array or a number, has no complex dtype."""
    return not iscomplexobj(x)


@composed
def sinc(x: Any) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0; around it by the series, so that the derivatives are exact as well."""
    y = arithmetic.multiply(floating(x), math.pi)
    near = comparison.less(arithmetic.abs(y), 0.5)
    square_of = arithmetic.square(comparison.where(near, y, 0.0))
    series: Any = 0.0
    for k in range(8, -1, -1):
        series = arithmetic.add(arithmetic.multiply(series, square_of), (-1) ** k / math.factorial(2 * k + 1))
    far = comparison.where(near, 1.0, y)
    return comparison.where(near, series, arithmetic.divide(trigonometric.sin(far), far))


@takes_out
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """``a`` between the bounds, of which None is no bound."""
    low, high = (tensor_or_none(min if a_min is None else a_min), tensor_or_none(max if a_max is None else a_max))
    return arithmetic.clip(tensor_of(a), low, high)


def tensor_or_none(x: Any) -> Any:
    """``x`` as an operand; numbers stay numbers, which take the dtype of the other operand."""
    return tensor_of(x) if isinstance(x, (list, tuple)) else x


@takes_out
def round(a: Any, decimals: int = 0, out: Any = None) -> Tensor:
    """The nearest multiples of ``10**-decimals``, ties to even."""
    return rounding.round(tensor_of(a), decimals)


around = round


@composed
def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """``x`` with numbers in place of NaN and infinities: by default 0 and the largest and smallest of the dtype."""
    given = tensor_of(x)
    if is_complex(given):
        parts = [nan_to_num(part, copy, nan, posinf, neginf) for part in (real(given), imag(given))]
        return complex_parts.complex(*parts)
    if given.dtype.kind != "f":
        return given
    limits = np.finfo(given.dtype)
    out = comparison.where(comparison.isnan(given), nan, given)
    out = comparison.where(comparison.equal(given, math.inf), float(limits.max) if posinf is None else posinf, out)
    lowest = float(limits.min) if neginf is None else neginf
    return comparison.where(comparison.equal(given, -math.inf), lowest, out)
