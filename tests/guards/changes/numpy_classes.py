"""NumPy's classes in Python code, which is not followed: objects of them change between two calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from tests.guards.changes import new_table

CASES, case = new_table()


def _polynomial(read: Callable[[Any], Any]) -> Any:
    p = Polynomial([1.0, 2.0, 3.0])
    return lambda x: x * read(p), lambda: setattr(p, "coef", np.array([5.0, 2.0, 3.0, 4.0]))


@case
def arithmetic_of_a_polynomial():
    return _polynomial(lambda p: (p * 2)(0.0))


@case
def negative_of_a_polynomial():
    return _polynomial(lambda p: (-p)(0.0))


@case
def length_of_a_polynomial():
    return _polynomial(len)


@case
def items_of_a_polynomial():
    return _polynomial(sum)


@case
def equality_of_a_polynomial():
    return _polynomial(lambda p: 2.0 if p == Polynomial([1.0, 2.0, 3.0]) else 3.0)


@case
def derivative_of_a_chebyshev_series():
    p = Chebyshev([1.0, 2.0])
    return lambda x: x * p.deriv()(0.0), lambda: setattr(p, "coef", np.array([1.0, 5.0]))


@case
def an_item_of_poly1d():
    p = np.poly1d([1.0, 2.0, 3.0])
    return lambda x: x * p[0], lambda: p.coeffs.__setitem__(2, 7.0)


@case
def an_item_of_a_masked_array():
    m = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    return lambda x: x * m[0], lambda: m.__setitem__(0, 9.0)


@case
def the_mask_of_a_masked_array():
    m = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    return lambda x: x * float((m * 2).sum()), lambda: m.__setitem__(0, np.ma.masked)
