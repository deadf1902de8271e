"""jax.random's distributions that are functions of its simpler ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.dispatch import apply_op
from jitgrad.core.tensor import Tensor
from jitgrad.jax import keys as _random
from jitgrad.numpy.linalg import qr
from jitgrad.ops.arithmetic import abs, add, astype, divide, multiply, negative, sign, sqrt, subtract
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray
from jitgrad.ops.diagonals import diagonal
from jitgrad.ops.draws import BINOMIAL, POISSON
from jitgrad.ops.movement import broadcast_to, expand_dims
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.rounding import ceil
from jitgrad.ops.transcendental import exp, log, log1p, pow


def _shape_of(shape: Any, *parameters: Any) -> tuple[int, ...]:
    if shape is None:
        return np.broadcast_shapes(*(np.shape(p) for p in parameters))
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def _floats(x: Any, dtype: Any) -> Tensor:
    given = asarray(x)
    wanted = dtype or (given.dtype if given.dtype.kind == "f" else None)
    return astype(given, _random.float_dtype(wanted))


def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Tensor:
    """Random bits: unsigned integers of ``dtype``."""
    return astype(_random.key_bits(key, _shape_of(shape)), np.dtype(dtype))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers of the beta distribution; gradients flow to ``a`` and ``b``."""
    keys, wanted = _random.split(key), _shape_of(shape, a, b)
    x = _random.gamma(keys[0], _floats(a, dtype), wanted, dtype)
    return divide(x, add(x, _random.gamma(keys[1], _floats(b, dtype), wanted, dtype)))


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers of the chi-square distribution with ``df`` degrees of freedom."""
    return multiply(2.0, _random.gamma(key, divide(_floats(df, dtype), 2.0), shape, dtype))


def t(key: Any, df: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of Student's t distribution with ``df`` degrees of freedom."""
    keys, wanted = _random.split(key), _shape_of(shape)
    half = divide(_floats(df, dtype), 2.0)
    spread = sqrt(divide(half, _random.gamma(keys[1], half, wanted, dtype)))
    return multiply(_random.normal(keys[0], wanted, dtype), spread)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers whose logarithm is normal with standard deviation ``sigma``."""
    return exp(multiply(sigma, _random.normal(key, _shape_of(shape, sigma), dtype)))


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Logarithms of numbers of the gamma distribution, accurate for small ``a`` too."""
    keys, wanted, given = _random.split(key), _shape_of(shape, a), _floats(a, dtype)
    boosted = log(_random.gamma(keys[0], add(given, 1.0), wanted, dtype))
    return subtract(boosted, divide(_random.exponential(keys[1], wanted, dtype), given))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers of the Pareto distribution of exponent ``b``, from 1 on."""
    return exp(divide(_random.exponential(key, _shape_of(shape, b), dtype), b))


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the Weibull distribution."""
    return multiply(scale, pow(_random.exponential(key, shape, dtype), divide(1.0, concentration)))


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers of the Rayleigh distribution."""
    return multiply(scale, sqrt(multiply(2.0, _random.exponential(key, _shape_of(shape, scale), dtype))))


def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the Maxwell distribution of scale 1: lengths of normal vectors in space."""
    z = _random.normal(key, (*_shape_of(shape), 3), dtype)
    return sqrt(sum_(multiply(z, z), -1))


def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers of the triangular distribution on [left, right]."""
    u = _random.uniform(key, _shape_of(shape, left, mode, right), dtype)
    width = subtract(right, left)
    low = add(left, sqrt(multiply(multiply(u, width), subtract(mode, left))))
    high = subtract(right, sqrt(multiply(multiply(subtract(1.0, u), width), subtract(right, mode))))
    return where(multiply(u, width) < subtract(mode, left), low, high)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """How many trials it takes to succeed with probability ``p``: integers from 1 on."""
    wanted = _shape_of(shape, p)
    trials = ceil(divide(_random.exponential(key, wanted), negative(log1p(negative(asarray(p))))))
    return astype(where(trials < 1.0, 1.0, trials), dtype or np.int64)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Counts of events at the rate ``lam``."""
    rate = broadcast_to(_floats(lam, None), _shape_of(shape, lam))
    return astype(apply_op(POISSON, _random.key_bits(key), rate), dtype or np.int64)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """How many of ``n`` trials succeed that do so with probability ``p``, as floats."""
    wanted = _shape_of(shape, n, p)
    chance = broadcast_to(_floats(p, dtype), wanted)
    drawn: Tensor = apply_op(BINOMIAL, _random.key_bits(key), broadcast_to(_floats(n, dtype), wanted), chance)
    return drawn


def ball(key: Any, d: int, p: float = 2, shape: Any = (), dtype: Any = None) -> Tensor:
    """Uniform vectors [..., d] in the unit ball of the ``p`` norm (F. Barthe et al., 2005)."""
    keys, wanted = _random.split(key, 3), _shape_of(shape)
    size = pow(_random.gamma(keys[0], asarray(1.0 / p), (*wanted, d), dtype), 1.0 / p)
    point = multiply(_random.rademacher(keys[1], (*wanted, d)), size)
    length = add(sum_(pow(abs(point), p), -1), _random.exponential(keys[2], wanted, dtype))
    return divide(point, expand_dims(pow(length, 1.0 / p), -1))


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Tensor:
    """Uniform orthogonal matrices [..., n, n], or [..., n, m] with orthonormal columns or rows.

    The columns of Q of a normal matrix, with the signs of the diagonal of R (F. Mezzadri, 2007).
    """
    columns = n if m is None else m
    tall = (n, columns) if n >= columns else (columns, n)
    q, r = qr(_random.normal(key, (*_shape_of(shape), *tall), dtype))
    turned = multiply(q, expand_dims(sign(diagonal(r, 0, -2, -1)), -2))
    return turned if n >= columns else turned.mT
