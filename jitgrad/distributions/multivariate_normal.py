"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions import constraints
from jitgrad.distributions.distribution import Distribution
from jitgrad.ops.arithmetic import square, subtract
from jitgrad.ops.creation import asarray
from jitgrad.ops.decompositions import CHOLESKY, symmetrised
from jitgrad.ops.diagonals import diagonal
from jitgrad.ops.inverses import INVERSE
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import broadcast_to, expand_dims, matrix_transpose, reshape, squeeze
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside
from jitgrad.ops.random import randn
from jitgrad.ops.reduce import sum
from jitgrad.ops.transcendental import log
from jitgrad.ops.triangular import triangular_solve

_LOG_2PI = math.log(2.0 * math.pi)


class MultivariateNormal(Distribution):
    """Vectors [d] of mean ``loc`` [..., d], with one of three matrices [..., d, d].

    Args:
        covariance_matrix: the covariances.
        precision_matrix: their inverse.
        scale_tril: their lower Cholesky factor, with which no factorisation is needed.
    """

    arg_constraints: ClassVar[constraints.Conditions] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    has_rsample = True

    def __init__(
        self, loc: Operand, covariance_matrix: Operand | None = None, precision_matrix: Operand | None = None,
        scale_tril: Operand | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        names = ("covariance_matrix", "precision_matrix", "scale_tril")
        given = dict(zip(names, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        matrices = {name: asarray(x) for name, x in given.items() if x is not None}
        if len(matrices) != 1:
            raise ArgumentError(f"MultivariateNormal: give one of {', '.join(names)}, got {sorted(matrices) or 'none'}")
        ((name, matrix),), mean = matrices.items(), asarray(loc)
        size = mean.shape[-1] if mean.ndim else 0
        if not size or matrix.shape[-2:] != (size, size):
            raise ShapeError(f"MultivariateNormal: loc {mean.aval} needs {name} [..., {size}, {size}], got {matrix.aval}")
        batch = np.broadcast_shapes(mean.shape[:-1], matrix.shape[:-2])
        self.loc: Tensor = broadcast_to(mean, (*batch, size))
        super().__init__(batch, (size,), validate_args, {"loc": self.loc, **matrices})
        self.scale_tril: Tensor = broadcast_to(_factor(name, matrix), (*batch, size, size))

    @property
    def support(self) -> constraints.Constraint:
        return constraints.real_vector

    @property
    def covariance_matrix(self) -> Tensor:
        return matmul(self.scale_tril, matrix_transpose(self.scale_tril))

    @property
    def precision_matrix(self) -> Tensor:
        return apply(INVERSE, self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return sum(square(self.scale_tril), -1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        with beside(self.loc):
            noise = randn(*self.extended(sample_shape), dtype=self.loc.dtype)
        return self.loc + squeeze(matmul(self.scale_tril, expand_dims(noise, -1)), -1)

    def half_log_determinant(self) -> Tensor:
        """Half the logarithm of the determinant of the covariances."""
        return sum(log(diagonal(self.scale_tril, 0, -2, -1)), -1)

    def log_prob(self, value: Operand) -> Tensor:
        value = self.checked(value)
        distance = distances(self.scale_tril, subtract(value, self.loc))
        return -0.5 * (self.event_shape[0] * _LOG_2PI + distance) - self.half_log_determinant()

    def entropy(self) -> Tensor:
        """The differential entropy."""
        return 0.5 * self.event_shape[0] * (1.0 + _LOG_2PI) + self.half_log_determinant()


def _factor(name: str, matrix: Tensor) -> Tensor:
    """The lower Cholesky factor of the covariances that ``matrix`` gives, under its ``name``."""
    if name == "scale_tril":
        return matrix
    covariances = matrix if name == "covariance_matrix" else apply(INVERSE, matrix)
    return apply(CHOLESKY, symmetrised(covariances))


def distances(factor: Tensor, away: Tensor) -> Tensor:
    """The squared lengths [...] of ``factor**-1 @ x`` for the vectors ``x`` of ``away`` [..., d]."""
    if factor.ndim > 2:
        return sum(square(triangular_solve(factor, expand_dims(away, -1), upper=False)), (-2, -1))
    columns = matrix_transpose(reshape(away, (-1, away.shape[-1])))  # one solution for all
    return reshape(sum(square(triangular_solve(factor, columns, upper=False)), 0), away.shape[:-1])
