"""The normal distribution of vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.linalg import cholesky, solve
from jitgrad.ops.arithmetic import add, multiply, square, subtract
from jitgrad.ops.creation import eye
from jitgrad.ops.diagonals import diagonal
from jitgrad.ops.movement import SUM, matrix_transpose, reshape
from jitgrad.ops.operand import Operand, is_number
from jitgrad.ops.reduce import sum
from jitgrad.ops.transcendental import exp, log


@dataclass(frozen=True)
class FrozenMultivariateNormal:
    """The distribution with its parameters, as ``multivariate_normal(mean, cov)`` gives it."""

    mean: Any
    cov: Any

    def logpdf(self, x: Operand) -> Tensor:
        """The logarithm of the density at the vectors ``x``, as `MultivariateNormal.logpdf` takes them."""
        return MultivariateNormal().logpdf(x, self.mean, self.cov)

    def pdf(self, x: Operand) -> Tensor:
        """The density at the vectors ``x``."""
        return exp(self.logpdf(x))


class MultivariateNormal:
    """SciPy's ``multivariate_normal``."""

    def __call__(self, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> FrozenMultivariateNormal:
        """The distribution with these parameters. Raises ArgumentError if ``allow_singular``, as `logpdf` does."""
        _refuse_singular(allow_singular)
        return FrozenMultivariateNormal(mean, cov)

    def logpdf(
        self, x: Operand, mean: Operand | None = None, cov: Operand = 1, allow_singular: bool = False
    ) -> Tensor:
        """The logarithm of the density at the vectors ``x``, which lie along the last axis.

        ``cov`` is a matrix, its diagonal, or a number times the identity. NumPy's LinAlgError where
        it is not positive definite.

        Raises:
            ShapeError: ``x``, ``mean`` and ``cov`` are not of one dimension.
            ArgumentError: ``allow_singular=True``: the density is computed from a Cholesky factor.
        """
        _refuse_singular(allow_singular)
        size = _dimension(mean, cov)
        points = _points(x, mean, size)
        shape = aval_of(SUM, points).shape
        centred = points if mean is None else subtract(points, mean)
        factor = cholesky(_matrix(cov, size, points))
        white = solve(factor, matrix_transpose(reshape(centred, (-1, size))))
        log_determinant = multiply(2.0, sum(log(diagonal(factor))))
        constant = add(log_determinant, size * math.log(2.0 * math.pi))
        return reshape(multiply(-0.5, add(sum(square(white), axis=0), constant)), shape[:-1])

    def pdf(self, x: Operand, mean: Operand | None = None, cov: Operand = 1, allow_singular: bool = False) -> Tensor:
        """The density, as `logpdf` takes it."""
        return exp(self.logpdf(x, mean, cov, allow_singular))


def _refuse_singular(allow_singular: bool) -> None:
    if allow_singular:
        raise ArgumentError(
            "multivariate_normal: allow_singular=True is not supported; add a small multiple of the identity to cov"
        )


def _shape(x: Any) -> tuple[int, ...]:
    return () if x is None else aval_of(SUM, x).shape


def _dimension(mean: Any, cov: Any) -> int:
    shapes = [s for s in (_shape(mean), _shape(cov)) if s]
    sizes = {n for shape in shapes for n in shape}
    if len(sizes) > 1 or len(_shape(mean)) > 1 or len(_shape(cov)) > 2:
        raise ShapeError(f"multivariate_normal: a mean of shape {_shape(mean)} and a covariance of shape {_shape(cov)}; "
                         "they must be (d,) and (d, d), (d,) or ()")
    return sizes.pop() if sizes else 1


def _points(x: Any, mean: Any, size: int) -> Any:
    """``x`` with the vectors along its last axis; numbers are vectors of one element."""
    shape = _shape(x)
    is_vector = shape == (1,) == _shape(mean)  # whose density is a number, as in SciPy and JAX
    if size == 1 and len(shape) <= 1 and not is_vector:
        return reshape(x, (*shape, 1))
    if not shape or shape[-1] != size:
        raise ShapeError(f"multivariate_normal: x of shape {shape} has no vectors of {size} elements along its last axis")
    return x


def _matrix(cov: Any, size: int, points: Any) -> Any:
    if len(_shape(cov)) == 2:
        return cov
    dtype = aval_of(SUM, points if is_number(cov) else cov).dtype
    return multiply(eye(size, dtype=dtype if dtype.kind == "f" else np.dtype(np.float64)), cov)


multivariate_normal: MultivariateNormal = MultivariateNormal()
