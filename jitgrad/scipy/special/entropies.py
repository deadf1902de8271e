"""Entropy and relative entropy of single probabilities."""

from __future__ import annotations

import math

from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply, negative, subtract
from jitgrad.ops.comparison import equal, greater, greater_equal, isnan, less, logical_and, logical_or, where
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.operand import Operand
from jitgrad.ops.transcendental import log


def entr(x: Operand) -> Tensor:
    """``-x log(x)``, 0 at 0 and -inf below."""
    below = less(x, 0.0)
    inside = where(below, 1.0, x)
    return where(below, -math.inf, negative(xlogy(inside, inside)))


def rel_entr(x: Operand, y: Operand) -> Tensor:
    """``x log(x / y)``; 0 for ``x = 0 <= y``, infinite where one is negative or only ``y`` is 0."""
    inside = logical_and(greater(x, 0.0), greater(y, 0.0))
    p, q = where(inside, x, 1.0), where(inside, y, 1.0)
    empty = logical_and(equal(x, 0.0), greater_equal(y, 0.0))
    unknown = logical_or(isnan(x), isnan(y))
    ratio = divide(p, q)
    usual = logical_and(greater(ratio, 0.0), less(ratio, math.inf))
    value = where(usual, log(where(usual, ratio, 1.0)), subtract(log(p), log(q)))
    value = where(inside, multiply(p, value), math.inf)
    return where(unknown, math.nan, where(empty, 0.0, value))


def kl_div(x: Operand, y: Operand) -> Tensor:
    """``x log(x / y) - x + y``, the summand of the Kullback-Leibler divergence of unnormalised weights."""
    inside = logical_and(greater_equal(x, 0.0), greater(y, 0.0))
    change = subtract(where(inside, y, 0.0), where(inside, x, 0.0))
    return add(rel_entr(x, y), change)
