"""Orthogonal polynomials by their recurrences (M. Abramowitz, I. Stegun, "Handbook of mathematical functions", 22.7).

SciPy's names take the degree first, torch's take it second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, DtypeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, multiply, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.operand import Operand

# (k, x, p[k], p[k - 1]) -> p[k + 1]
_Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def _chebyshev(_k: int, x: Tensor, p: Tensor, before: Tensor) -> Tensor:
    return subtract(multiply(multiply(2.0, x), p), before)


def _hermite(k: int, x: Tensor, p: Tensor, before: Tensor) -> Tensor:
    return subtract(multiply(multiply(2.0, x), p), multiply(2.0 * k, before))


def _hermite_of_probability(k: int, x: Tensor, p: Tensor, before: Tensor) -> Tensor:
    return subtract(multiply(x, p), multiply(float(k), before))


def _laguerre(k: int, x: Tensor, p: Tensor, before: Tensor) -> Tensor:
    scaled = subtract(multiply(subtract(2.0 * k + 1.0, x), p), multiply(float(k), before))
    return multiply(scaled, 1.0 / (k + 1))


def _legendre(k: int, x: Tensor, p: Tensor, before: Tensor) -> Tensor:
    scaled = subtract(multiply(multiply(2.0 * k + 1.0, x), p), multiply(float(k), before))
    return multiply(scaled, 1.0 / (k + 1))


def _evaluated(name: str, n: Any, x: Tensor, first: Callable[[Tensor], Tensor], step: _Step) -> Tensor:
    """The polynomial of degree ``n``, an int or an array of degrees beside ``x``; 0 for a negative degree.

    Raises:
        DtypeError: ``x`` is complex. ArgumentError: a degree is no integer.
        TracedValueError: degrees that are only known when a compiled function runs.
    """
    if x.dtype.kind == "c":
        raise DtypeError(f"{name} of {x.aval}: the polynomials here are those of real numbers")
    degrees = np.asarray(n.concrete(name) if isinstance(n, Tensor) else n)
    if (degrees != np.floor(degrees)).any():
        raise ArgumentError(f"{name}: a degree is an integer, got {degrees.reshape(-1)[:5].tolist()}")
    x = x if x.dtype.kind == "f" else x.double()
    total = multiply(add(x, degrees.astype(x.dtype)), 0.0) if degrees.ndim else multiply(x, 0.0)
    before, p = add(multiply(x, 0.0), 1.0), first(x)
    for k in range(int(degrees.max(initial=-1)) + 1):
        if k > 1:
            before, p = p, step(k - 1, x, p, before)
        value = p if k else before
        total = where(equal(degrees, k), value, total) if degrees.ndim else value
    return total


def _twice(x: Tensor) -> Tensor:
    return multiply(2.0, x)


def _shifted(x: Operand) -> Tensor:
    return subtract(multiply(2.0, asarray(x)), 1.0)


def eval_chebyt(n: Any, x: Operand) -> Tensor:
    """Chebyshev's polynomial of the first kind: ``cos(n * acos(x))``."""
    return _evaluated("eval_chebyt", n, asarray(x), lambda x: x, _chebyshev)


def eval_chebyu(n: Any, x: Operand) -> Tensor:
    """Chebyshev's polynomial of the second kind."""
    return _evaluated("eval_chebyu", n, asarray(x), _twice, _chebyshev)


def eval_sh_chebyt(n: Any, x: Operand) -> Tensor:
    """:func:`eval_chebyt` at ``2 * x - 1``, orthogonal from 0 to 1."""
    return eval_chebyt(n, _shifted(x))


def eval_sh_chebyu(n: Any, x: Operand) -> Tensor:
    """:func:`eval_chebyu` at ``2 * x - 1``."""
    return eval_chebyu(n, _shifted(x))


def eval_hermite(n: Any, x: Operand) -> Tensor:
    """Hermite's polynomial for the weight ``exp(-x**2)``."""
    return _evaluated("eval_hermite", n, asarray(x), _twice, _hermite)


def eval_hermitenorm(n: Any, x: Operand) -> Tensor:
    """Hermite's polynomial for the weight ``exp(-x**2 / 2)``."""
    return _evaluated("eval_hermitenorm", n, asarray(x), lambda x: x, _hermite_of_probability)


def eval_laguerre(n: Any, x: Operand) -> Tensor:
    """Laguerre's polynomial."""
    return _evaluated("eval_laguerre", n, asarray(x), lambda x: subtract(1.0, x), _laguerre)


def eval_legendre(n: Any, x: Operand) -> Tensor:
    """Legendre's polynomial."""
    return _evaluated("eval_legendre", n, asarray(x), lambda x: x, _legendre)


def _whole(name: str, n: Any) -> Any:
    """Degrees with their fractions cut off, as torch takes them."""
    return np.trunc(n.concrete(name) if isinstance(n, Tensor) else n)


def chebyshev_polynomial_t(input: Operand, n: Any) -> Tensor:
    """:func:`eval_chebyt`."""
    return eval_chebyt(_whole("chebyshev_polynomial_t", n), input)


def chebyshev_polynomial_u(input: Operand, n: Any) -> Tensor:
    """:func:`eval_chebyu`."""
    return eval_chebyu(_whole("chebyshev_polynomial_u", n), input)


def chebyshev_polynomial_v(input: Operand, n: Any) -> Tensor:
    """Chebyshev's polynomial of the third kind: ``cos((n + 1/2) t) / cos(t / 2)`` for ``x = cos(t)``."""
    degree = _whole("chebyshev_polynomial_v", n)
    return _evaluated("chebyshev_polynomial_v", degree, asarray(input), lambda x: subtract(_twice(x), 1.0), _chebyshev)


def chebyshev_polynomial_w(input: Operand, n: Any) -> Tensor:
    """Chebyshev's polynomial of the fourth kind: ``sin((n + 1/2) t) / sin(t / 2)`` for ``x = cos(t)``."""
    degree = _whole("chebyshev_polynomial_w", n)
    return _evaluated("chebyshev_polynomial_w", degree, asarray(input), lambda x: add(_twice(x), 1.0), _chebyshev)


def shifted_chebyshev_polynomial_t(input: Operand, n: Any) -> Tensor:
    """:func:`chebyshev_polynomial_t` at ``2 * input - 1``."""
    return chebyshev_polynomial_t(_shifted(input), n)


def shifted_chebyshev_polynomial_u(input: Operand, n: Any) -> Tensor:
    """:func:`chebyshev_polynomial_u` at ``2 * input - 1``."""
    return chebyshev_polynomial_u(_shifted(input), n)


def shifted_chebyshev_polynomial_v(input: Operand, n: Any) -> Tensor:
    """:func:`chebyshev_polynomial_v` at ``2 * input - 1``."""
    return chebyshev_polynomial_v(_shifted(input), n)


def shifted_chebyshev_polynomial_w(input: Operand, n: Any) -> Tensor:
    """:func:`chebyshev_polynomial_w` at ``2 * input - 1``."""
    return chebyshev_polynomial_w(_shifted(input), n)


def hermite_polynomial_h(input: Operand, n: Any) -> Tensor:
    """:func:`eval_hermite`."""
    return eval_hermite(_whole("hermite_polynomial_h", n), input)


def hermite_polynomial_he(input: Operand, n: Any) -> Tensor:
    """:func:`eval_hermitenorm`."""
    return eval_hermitenorm(_whole("hermite_polynomial_he", n), input)


def laguerre_polynomial_l(input: Operand, n: Any) -> Tensor:
    """:func:`eval_laguerre`."""
    return eval_laguerre(_whole("laguerre_polynomial_l", n), input)


def legendre_polynomial_p(input: Operand, n: Any) -> Tensor:
    """:func:`eval_legendre`."""
    return eval_legendre(_whole("legendre_polynomial_p", n), input)
