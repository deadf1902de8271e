"""NumPy's polynomials as vectors of coefficients, the highest first."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import common_dtype, floating, refuse, tensor_of
from jitgrad.numpy.calculus import convolve
from jitgrad.numpy.creation import vander
from jitgrad.numpy.linalg import eigvals, lstsq
from jitgrad.ops import reduce
from jitgrad.ops.arithmetic import add, astype, divide, multiply, negative, sqrt, square, subtract
from jitgrad.ops.complex_parts import real
from jitgrad.ops.creation import zeros
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import broadcast_to, cut, expand_dims
from jitgrad.ops.placement import beside_operands


@beside_operands
def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with the coefficients ``p``, the highest first, at ``x``, by Horner's rule."""
    coefficients, at = tensor_of(p), tensor_of(x)
    dtype = common_dtype(coefficients, at)
    out = broadcast_to(astype(tensor_of(0), dtype), at.shape)
    for k in range(coefficients.shape[0]):
        out = add(multiply(out, at), coefficients[k])
    return out


@beside_operands
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool = False
) -> Tensor:
    """The coefficients of the polynomial of degree ``deg`` nearest to the points, by least squares weighted by ``w``.

    The columns of the Vandermonde matrix are scaled to length 1, as NumPy does.
    """
    refuse("polyfit", full=full or None, cov=cov or None)
    if deg < 0:
        raise ArgumentError(f"polyfit: the degree must not be negative, got {deg}")
    at, values = floating(x), floating(y)
    if at.ndim != 1 or not at.size or values.ndim not in (1, 2) or values.shape[0] != at.shape[0]:
        raise ShapeError(f"polyfit takes a vector x and one value or row of y for each, got {at.aval} and {values.aval}")
    matrix = vander(at, deg + 1)
    if w is not None:
        weights = floating(w)
        matrix = multiply(matrix, expand_dims(weights, 1))
        values = multiply(values, expand_dims(weights, 1) if values.ndim == 2 else weights)
    scale = sqrt(reduce.sum(square(matrix), 0))
    limit = at.shape[0] * float(np.finfo(at.dtype).eps) if rcond is None else rcond
    found = lstsq(divide(matrix, scale), values, limit)[0]
    return divide(found, expand_dims(scale, 1) if found.ndim == 2 else scale)


@beside_operands
def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials."""
    return add(*_as_long(a1, a2))


@beside_operands
def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference of two polynomials."""
    return subtract(*_as_long(a1, a2))


@beside_operands
def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of two polynomials."""
    return convolve(_vector("polymul", a1), _vector("polymul", a2))


def polyder(p: Any, m: int = 1) -> Tensor:
    """The ``m``-th derivative."""
    out = _vector("polyder", p)
    for _ in range(_order("polyder", m)):
        n = out.shape[0] - 1
        out = multiply(cut(out, 0, 0, n), np.arange(n, 0, -1))
    return out


@beside_operands
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The ``m``-th integral; ``k`` is the constant of each, or one for all, by default 0."""
    out, times = _vector("polyint", p), _order("polyint", m)
    constants = floating(0.0 if k is None else k)
    constants = broadcast_to(constants, (times,)) if constants.size == 1 else constants
    if constants.shape != (times,):
        raise ShapeError(f"polyint: {times} constants are needed, got {constants.aval}")
    for j in range(times):
        n = out.shape[0]
        out = concat([divide(out, np.arange(n, 0, -1)), constants[j : j + 1]], 0)
    return out


def _vector(function: str, p: Any) -> Tensor:
    coefficients = tensor_of(p)
    if coefficients.ndim > 1:
        raise ShapeError(f"{function} takes a vector of coefficients, got {coefficients.aval}")
    return coefficients if coefficients.ndim else expand_dims(coefficients, 0)


def _order(function: str, m: int) -> int:
    if m < 0:
        raise ArgumentError(f"{function}: the order must not be negative, got {m}")
    return m


def _as_long(a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    """Two vectors of coefficients of the same length, with zeros before the shorter one."""
    x, y = _vector("polyadd", a1), _vector("polyadd", a2)
    length = max(x.shape[0], y.shape[0])
    dtype = common_dtype(x, y)
    zeros = [np.zeros(length - p.shape[0], dtype) for p in (x, y)]
    return concat([zeros[0], astype(x, dtype)], 0), concat([zeros[1], astype(y, dtype)], 0)


@beside_operands
def roots(p: Any) -> Tensor:
    """Where the polynomial ``p`` is 0, as eigenvalues of its companion matrix; complex, also if all roots are real.

    Zeros before the first coefficient are left out, as in NumPy. In a compiled function, which does not know the values,
    the first coefficient must not be 0: the roots are NaN then.
    """
    coefficients = floating(_vector("roots", p))
    if not current_interpreter.get().tracing:
        nonzero = np.flatnonzero(coefficients.concrete("roots"))
        coefficients = cut(coefficients, 0, int(nonzero[0]) if nonzero.size else coefficients.shape[0], coefficients.shape[0])
    degree = coefficients.shape[0] - 1
    if degree < 1:
        return zeros((0,), dtype=np.result_type(coefficients.dtype, np.complex64))
    first = divide(negative(cut(coefficients, 0, 1, degree + 1)), coefficients[0])
    return eigvals(concat([expand_dims(first, 0), np.eye(degree - 1, degree, dtype=coefficients.dtype)], 0))


@beside_operands
def poly(seq_of_zeros: Any) -> Tensor:
    """The coefficients, the highest first, of the polynomial with these roots, or with a square matrix' eigenvalues.

    The coefficients of complex roots are complex, also where the roots come in conjugate pairs.
    """
    given = floating(seq_of_zeros)
    if given.ndim == 2 and given.shape[0] == given.shape[1]:
        found = poly(eigvals(given))
        return found if given.dtype.kind == "c" else real(found)
    if given.ndim != 1:
        raise ShapeError(f"poly takes a vector of roots or a square matrix, got {given.aval}")
    ones = np.ones(1, given.dtype)
    out = tensor_of(ones if given.size else ones[0])  # NumPy's polynomial without roots is a number
    for k in range(given.size):
        out = convolve(out, concat([ones, negative(cut(given, 0, k, k + 1))], 0))
    return out
