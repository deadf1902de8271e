"""Random numbers that need rejection: gamma, Poisson and binomial ones, drawn by NumPy with a key from a generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, divide, minimum, multiply, negative, sqrt, subtract
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.gamma import gammainc, gammaincc, gammaln
from jitgrad.ops.operand import Operand
from jitgrad.ops.random import Generator, default_generator
from jitgrad.ops.transcendental import exp

_STEP = 1e-3  # of the difference quotient, relative to where the distribution changes: its error is about 1e-11


def _source(key: Array) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=int(key.reshape(-1)[0])))


def _like_last(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    return Aval(avals[-1].shape, avals[-1].dtype)


def _gamma(key: Array, shape: Array) -> Array:
    known = shape > 0
    drawn = np.asarray(_source(key).standard_gamma(np.where(known, shape, 1.0)))  # a number for a single shape
    return np.where(known, np.maximum(drawn.astype(shape.dtype), np.finfo(shape.dtype).tiny), np.nan).astype(shape.dtype)


def _gamma_gradient(g: Tensor, out: Tensor, _key: Any, shape: Tensor) -> Tensor:
    return multiply(g, astype(_slope_by_shape(astype(shape, np.float64), astype(out, np.float64)), g.dtype))


def _slope_by_shape(a: Tensor, x: Tensor) -> Tensor:
    """How the quantile ``x`` of the gamma distribution of shape ``a`` moves with ``a``.

    M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018: the derivative of the
    distribution function by ``a``, here a difference quotient of order 4 of its smaller tail, over the density.
    """
    step = multiply(_STEP, minimum(a, sqrt(a)))
    changes = []
    for tail in (gammainc, gammaincc):
        near = subtract(tail(add(a, step), x), tail(subtract(a, step), x))
        far = subtract(tail(add(a, multiply(2.0, step)), x), tail(subtract(a, multiply(2.0, step)), x))
        changes.append(divide(subtract(multiply(8.0, near), far), multiply(12.0, step)))
    density = exp(subtract(subtract(xlogy(subtract(a, 1.0), x), x), gammaln(a)))
    return divide(where(greater(x, a), changes[1], negative(changes[0])), density)


STANDARD_GAMMA = define(
    "standard_gamma(key, shape)",
    kind=Kind.OPAQUE,
    eager=_gamma,
    abstract=_like_last,
    vjp=(None, _gamma_gradient),
    register=False,
)


def _poisson(key: Array, rate: Array) -> Array:
    known = rate >= 0
    drawn = _source(key).poisson(np.where(known, rate, 0.0))
    return np.where(known, drawn, np.nan).astype(rate.dtype)


POISSON = define(
    "poisson(key, rate)", kind=Kind.OPAQUE, eager=_poisson, abstract=_like_last, vjp=(None, None), register=False
)


def _binomial(key: Array, count: Array, p: Array) -> Array:
    known = (p >= 0) & (p <= 1) & (count >= 0)
    drawn = _source(key).binomial(np.where(known, count, 0).astype(np.int64), np.where(known, p, 0.0))
    return np.where(known, drawn, np.nan).astype(p.dtype)


BINOMIAL = define(
    "binomial(key, count, p)", kind=Kind.OPAQUE, eager=_binomial, abstract=_like_last, vjp=(None, None, None), register=False
)


def standard_gamma(shape: Operand) -> Tensor:
    """One number of the gamma distribution of rate 1 for each element of the floating tensor ``shape``.

    Gradients flow to ``shape``, once: not their own gradients. Where it is not positive, NaN.
    """
    return apply_op(STANDARD_GAMMA, _key(), asarray(shape))  # type: ignore[no-any-return]


def poisson(rate: Operand, generator: Generator | None = None) -> Tensor:
    """Counts of events at ``rate``, a floating tensor, and like it; NaN where it is negative."""
    return apply_op(POISSON, _key(generator), asarray(rate))  # type: ignore[no-any-return]


def binomial(count: Operand, p: Tensor) -> Tensor:
    """How many of ``count`` trials, like ``p`` in shape, succeed that do so with probability ``p``; like ``p``."""
    return apply_op(BINOMIAL, _key(), asarray(count), p)  # type: ignore[no-any-return]


def _key(generator: Generator | None = None) -> Tensor:
    """One number, which ops on a device take from the host."""
    return (generator or default_generator).bits(())[0]
