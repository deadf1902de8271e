"""The beta function, its logarithm and binomial coefficients."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import abs, add, divide, maximum, minimum, multiply, reciprocal, square, subtract
from jitgrad.ops.comparison import equal, greater_equal, less, logical_and, logical_not, logical_or, where
from jitgrad.ops.gamma import gamma, gammaln
from jitgrad.ops.operand import Operand
from jitgrad.ops.transcendental import exp, log, log1p
from jitgrad.scipy.special.factorials import gammasgn

# B(2k) / (2k (2k - 1)): Stirling's series for log gamma, 2**-50 of it off from 10 on
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_LARGE = 10.0
# up to here neither the product of two gamma functions nor that of their sum overflows
_PRODUCT_BOUND = 150.0


def _stirling_rest(x: Any) -> Tensor:
    """``gammaln(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2)`` for ``x >= 10``."""
    inverse = reciprocal(x)
    z = square(inverse)
    total: Any = _STIRLING[-1]
    for term in reversed(_STIRLING[:-1]):
        total = add(multiply(total, z), term)
    return multiply(total, inverse)


def betaln(a: Operand, b: Operand) -> Tensor:
    """``log |beta(a, b)|``; infinite at 0.

    If one of them is large, ``gammaln`` of it and of the sum cancel. They are subtracted in
    Stirling's series (DiDonato and Morris, ACM Transactions on Mathematical Software 18, 1992).
    """
    usual = logical_or(less(maximum(a, b), _LARGE), less(minimum(a, b), 0.0))
    infinite = equal(maximum(a, b), math.inf)
    small = where(usual, 1.0, minimum(a, b))
    large = where(logical_or(usual, infinite), _LARGE, maximum(a, b))
    both = add(small, large)
    change = add(multiply(subtract(large, 0.5), log1p(divide(small, large))), multiply(small, subtract(log(both), 1.0)))
    rest = subtract(_stirling_rest(large), _stirling_rest(both))
    series = where(infinite, -math.inf, add(gammaln(small), subtract(rest, change)))
    zero = equal(multiply(a, b), 0.0)
    plain = logical_and(usual, logical_not(zero))
    a, b = where(plain, a, 1.0), where(plain, b, 1.0)
    value = where(usual, subtract(add(gammaln(a), gammaln(b)), gammaln(add(a, b))), series)
    return where(zero, math.inf, value)


def beta(a: Operand, b: Operand) -> Tensor:
    """``gamma(a) gamma(b) / gamma(a + b)``."""
    usual = less(add(abs(a), abs(b)), _PRODUCT_BOUND)
    x, y = where(usual, a, 1.0), where(usual, b, 1.0)
    product = multiply(gamma(x), divide(gamma(y), gamma(add(x, y))))
    x, y = where(usual, 1.0, a), where(usual, 1.0, b)
    sign = multiply(multiply(gammasgn(x), gammasgn(y)), gammasgn(add(x, y)))
    return where(usual, product, multiply(sign, exp(betaln(x, y))))


def comb(N: Operand, k: Operand, *, exact: bool = False, repetition: bool = False) -> Tensor:
    """The number of choices of ``k`` among ``N``, as a floating number; 0 where ``k > N``.

    Raises:
        ArgumentError: ``exact=True``, for the result is a float and differentiable.
    """
    if exact:
        raise ArgumentError("comb: exact=True gives Python ints, which have no gradient; use math.comb(N, k)")
    if repetition:
        return comb(subtract(add(N, k), 1.0), k)
    possible = logical_and(logical_and(greater_equal(N, k), greater_equal(k, 0)), greater_equal(N, 0))
    total, part = where(possible, N, 1.0), where(possible, k, 1.0)
    ways = divide(1.0, multiply(add(total, 1.0), beta(add(subtract(total, part), 1.0), add(part, 1.0))))
    return where(possible, ways, 0.0)
