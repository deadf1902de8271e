"""Dirichlet's distribution, and the multinomial one."""

from __future__ import annotations

from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import gammaln
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import SUM, expand_dims, reshape
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import sum
from jitgrad.ops.transcendental import exp


class Dirichlet:
    """The distribution of probabilities that sum to 1; SciPy's ``dirichlet``."""

    def logpdf(self, x: Operand, alpha: Operand) -> Tensor:
        """The logarithm of the density; ``x`` has its K probabilities along the first axis, or K - 1 of them.

        That they sum to 1 is not checked.

        Raises:
            ShapeError: ``alpha`` has not one axis, or the first axis of ``x`` not K or K - 1 elements.
        """
        points, weights = aval_of(SUM, x), aval_of(SUM, alpha)
        if weights.ndim != 1 or points.ndim == 0 or not 0 <= weights.shape[0] - points.shape[0] <= 1:
            raise ShapeError(f"dirichlet: x of {points} needs alpha of as many elements as its first axis, or one more, "
                             f"got {weights}")
        if points.shape[0] < weights.shape[0]:
            x = concat([x, expand_dims(subtract(1.0, sum(x, axis=0)), 0)], axis=0)
        constant = subtract(sum(gammaln(alpha)), gammaln(sum(alpha)))
        powers = reshape(subtract(alpha, 1.0), (-1, *[1] * (points.ndim - 1)))
        return subtract(sum(xlogy(powers, x), axis=0), constant)

    def pdf(self, x: Operand, alpha: Operand) -> Tensor:
        """The density, as `logpdf` takes it."""
        return exp(self.logpdf(x, alpha))


dirichlet: Dirichlet = Dirichlet()


class Multinomial:
    """The distribution of the counts of ``n`` draws; SciPy's ``multinomial``."""

    def logpmf(self, x: Operand, n: Operand, p: Operand) -> Tensor:
        """The logarithm of the probability of counts ``x``, along the last axis; -inf if they do not sum to ``n``.

        That the probabilities ``p`` sum to 1 is not checked.
        """
        ways = subtract(gammaln(add(n, 1.0)), sum(gammaln(add(x, 1.0)), axis=-1))
        return where(equal(sum(x, axis=-1), n), add(ways, sum(xlogy(x, p), axis=-1)), -float("inf"))

    def pmf(self, x: Operand, n: Operand, p: Operand) -> Tensor:
        """The probability of counts ``x``, as `logpmf` takes them."""
        return exp(self.logpmf(x, n, p))


multinomial: Multinomial = Multinomial()
