"""Complete elliptic integrals by the arithmetic-geometric mean, and losses of single residuals.

M. Abramowitz, I. Stegun, "Handbook of mathematical functions", 17.6.
"""

from __future__ import annotations

import math

from jitgrad.core.tensor import Tensor
from jitgrad.ops import arithmetic
from jitgrad.ops.arithmetic import add, divide, multiply, sqrt, square, subtract
from jitgrad.ops.comparison import equal, less, less_equal, logical_and, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand
from jitgrad.ops.trigonometric import hypot, sin

_STEPS = 13  # from 1 and 1e-154: 9 steps, of which each takes the root of the quotient, and 4 that double the correct digits


def _mean(b: Tensor) -> Tensor:
    """The arithmetic-geometric mean of 1 and ``b``, positive."""
    a = add(multiply(b, 0.0), 1.0)
    for _ in range(_STEPS):
        a, b = multiply(add(a, b), 0.5), sqrt(multiply(a, b))
    return a


def ellipkm1(p: Operand) -> Tensor:
    """The complete elliptic integral of the first kind at ``m = 1 - p``, accurate near 1; inf at 0, NaN below."""
    x = asarray(p)
    x = x if x.dtype.kind == "f" else x.double()
    positive = less(0.0, x)
    finite = logical_and(positive, less(x, math.inf))
    value = divide(math.pi / 2, _mean(sqrt(where(finite, x, 1.0))))
    return where(finite, value, where(equal(x, 0.0), math.inf, where(positive, 0.0, math.nan)))


def ellipk(m: Operand) -> Tensor:
    """The complete elliptic integral of the first kind of the parameter ``m``, the square of the modulus."""
    return ellipkm1(subtract(1.0, m))


def ellipe(m: Operand) -> Tensor:
    """The complete elliptic integral of the second kind of the parameter ``m``, the square of the modulus."""
    x = asarray(m)
    x = x if x.dtype.kind == "f" else x.double()
    inside = logical_and(less(x, 1.0), less(-math.inf, x))
    x_inside = where(inside, x, 0.0)
    b = sqrt(subtract(1.0, x_inside))
    a, total, weight = add(multiply(b, 0.0), 1.0), multiply(x_inside, 0.5), 1.0
    for _ in range(_STEPS):
        gap = multiply(subtract(a, b), 0.5)
        a, b = multiply(add(a, b), 0.5), sqrt(multiply(a, b))
        total = add(total, multiply(weight, square(gap)))
        weight *= 2.0
    value = multiply(divide(math.pi / 2, a), subtract(1.0, total))
    return where(inside, value, where(equal(x, 1.0), 1.0, where(equal(x, -math.inf), math.inf, math.nan)))


def huber(delta: Operand, r: Operand) -> Tensor:
    """``r**2 / 2`` where ``|r| <= delta``, else ``delta * (|r| - delta / 2)``; inf for a negative ``delta``."""
    size = arithmetic.abs(asarray(r))
    outside = multiply(delta, subtract(size, multiply(delta, 0.5)))
    value = where(less_equal(size, delta), multiply(0.5, square(r)), outside)
    return where(less(delta, 0.0), math.inf, value)


def pseudo_huber(delta: Operand, r: Operand) -> Tensor:
    """``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``, a smooth :func:`huber`; 0 at ``delta = 0``, inf below it."""
    d, infinite = where(less(0.0, delta), delta, 1.0), equal(arithmetic.abs(r), math.inf)
    x = where(infinite, 1.0, r)
    # delta * (hypot(delta, r) - delta), without its cancellation
    value = multiply(d, multiply(x, divide(x, add(hypot(d, x), d))))
    value = where(infinite, math.inf, value)
    return where(less(delta, 0.0), math.inf, where(equal(delta, 0.0), 0.0, value))


def spherical_bessel_j0(input: Operand) -> Tensor:
    """The spherical Bessel function of order 0: ``sin(x) / x``, 1 at 0."""
    x = asarray(input)
    x = x if x.dtype.kind == "f" else x.double()
    zero = less(arithmetic.abs(x), 1e-3)
    series = subtract(1.0, multiply(divide(square(x), 6.0), subtract(1.0, divide(square(x), 20.0))))
    usual = where(zero, 1.0, x)
    return where(zero, series, where(equal(arithmetic.abs(x), math.inf), 0.0, divide(sin(usual), usual)))
