"""torch's nn.utils.parametrizations: weights that are normalised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError
from jitgrad.core.missing_names import Lookup, raising
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module
from jitgrad.nn.utils.parametrize import register_parametrization
from jitgrad.ops.arithmetic import maximum, sqrt, square
from jitgrad.ops.inplace import assign
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import flatten, moveaxis
from jitgrad.ops.placement import beside
from jitgrad.ops.random import randn
from jitgrad.ops.reduce import sum as sum_

__all__ = ["spectral_norm", "weight_norm"]

_INSTEAD = {
    "orthogonal": "register_parametrization takes a module that maps x to linalg.solve(I + A, I - A), Cayley's map, for "
    "A = x.triu(1) - x.triu(1).mT"
}


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The 2-norm of each slice of ``v`` along ``dim``, with all axes kept; of all of ``v`` for None and -1."""
    if dim is None or dim == -1:
        return sqrt(sum_(square(v)))
    axes = tuple(k for k in range(v.ndim) if k != dim % v.ndim)
    return sqrt(sum_(square(v), axes, keepdims=True)) if axes else sqrt(square(v))


class _WeightNorm(Module):
    """``g * v / |v|`` (T. Salimans, D. P. Kingma, arXiv:1602.07868)."""

    def __init__(self, dim: int | None) -> None:
        self.dim: int | None = dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / norm_except(v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train lengths and directions of the slices of ``module.<name>`` along ``dim`` apart; returns ``module``."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class SpectralNorm(Module):
    """A tensor, as a matrix with its axis ``dim`` as rows, divided by its largest singular value.

    That is estimated by the power method, which goes on in training at each use (T. Miyato et al., arXiv:1802.05957). A
    step of it begins with the vector over the columns, or with that over the rows if ``from_rows``.
    """

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12, from_rows: bool = False
    ) -> None:
        if n_power_iterations < 1:
            raise ArgumentError(f"spectral_norm: n_power_iterations must be at least 1, got {n_power_iterations}")
        self.dim: int = dim % weight.ndim
        self.n_power_iterations: int = n_power_iterations
        self.eps: float = eps
        self.starts_from_rows: bool = from_rows
        if weight.ndim > 1:
            matrix = self.matrix_of(weight)
            with beside(weight), no_grad():
                for name, n in zip(("_u", "_v"), matrix.shape, strict=True):
                    self.register_buffer(name, unit(randn(n, dtype=weight.dtype), eps))
                self.iterate(matrix, 15)

    def matrix_of(self, weight: Tensor) -> Tensor:
        """``weight`` [rows, everything else]."""
        return flatten(moveaxis(weight, self.dim, 0), 1)

    def iterate(self, matrix: Tensor, count: int) -> None:
        """``count`` steps of the power method."""
        u, v = self._u, self._v
        with no_grad():
            for _ in range(count):
                if self.starts_from_rows:
                    assign(v, unit(matmul(u, matrix), self.eps))
                assign(u, unit(matmul(matrix, v), self.eps))
                if not self.starts_from_rows:
                    assign(v, unit(matmul(u, matrix), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = self.matrix_of(weight)
        if self.training:
            self.iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # they change at the next use, and backward reads these
        return weight / sum_(u * matmul(matrix, v))

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight


def axis_of_rows(module: Module, dim: int | None) -> int:
    """``dim``; for None 1 of transposed convolutions, else 0."""
    return int(type(module).__name__.startswith("ConvTranspose")) if dim is None else dim


def unit(x: Tensor, eps: float) -> Tensor:
    """``x`` divided by its 2-norm, or by ``eps`` if that is larger."""
    return x / maximum(sqrt(sum_(square(x))), eps)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide ``module.<name>`` by its largest singular value, as `SpectralNorm` does; returns ``module``.

    ``dim`` is the axis of the rows: 1 for transposed convolutions, else 0, unless it is given.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"spectral_norm: {type(module).__name__} has no parameter {name!r}")
    return register_parametrization(module, name, SpectralNorm(weight, n_power_iterations, axis_of_rows(module, dim), eps))


if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.nn.utils.parametrizations", globals(), _INSTEAD)
