"""Factorials and relatives of the gamma function."""

from __future__ import annotations

import math

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply, subtract
from jitgrad.ops.comparison import equal, greater, less, logical_and, where
from jitgrad.ops.gamma import gamma, gammaln
from jitgrad.ops.operand import Operand
from jitgrad.ops.rounding import floor
from jitgrad.ops.transcendental import exp


def factorial(n: Operand, exact: bool = False) -> Tensor:
    """``gamma(n + 1)``, floating; 0 for ``n < 0``.

    Raises:
        ArgumentError: ``exact=True``, for the result is a float and differentiable.
    """
    if exact:
        raise ArgumentError("factorial: exact=True gives Python ints, which have no gradient; use math.factorial(n)")
    below = less(n, 0)
    return where(below, 0.0, gamma(add(where(below, 1.0, n), 1.0)))


def gammasgn(x: Operand) -> Tensor:
    """The sign of ``gamma(x)``; NaN at -1, -2, ..."""
    half = multiply(floor(x), 0.5)
    below = subtract(1.0, multiply(4.0, subtract(half, floor(half))))
    pole = logical_and(less(x, 0.0), equal(x, floor(x)))
    return where(greater(x, 0.0), 1.0, where(pole, math.nan, below))


def rgamma(x: Operand) -> Tensor:
    """``1 / gamma(x)``; 0 at 0, -1, -2, ..."""
    pole = logical_and(less(x, 0.5), equal(x, floor(x)))
    return where(pole, 0.0, divide(1.0, gamma(where(pole, 1.0, x))))


def poch(z: Operand, m: Operand) -> Tensor:
    """``gamma(z + m) / gamma(z)``, the rising factorial, for positive ``z`` and ``z + m``."""
    usual = logical_and(less(add(z, m), 170.0), less(z, 170.0))
    x, y = where(usual, z, 1.0), where(usual, m, 1.0)
    from_logarithms = subtract(gammaln(add(z, m)), gammaln(z))
    return where(usual, divide(gamma(add(x, y)), gamma(x)), exp(from_logarithms))


def multigammaln(a: Operand, d: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``d``, for ``a > (d - 1) / 2``.

    Raises:
        ArgumentError: ``d`` is not a positive Python int.
    """
    if not isinstance(d, int) or isinstance(d, bool) or d < 1:
        raise ArgumentError(f"multigammaln: the dimension must be a positive Python int, got {shown(d)}")
    total = gammaln(a)
    for j in range(1, d):
        total = add(total, gammaln(subtract(a, 0.5 * j)))
    return add(total, 0.25 * d * (d - 1) * math.log(math.pi))


def mvlgamma(input: Operand, p: int) -> Tensor:
    """:func:`multigammaln` by torch's name."""
    return multigammaln(input, p)
