"""Numbers of jax.random as a pure function of a key, by the same Philox bits as `jitgrad.Generator`.

A key is a uint64 vector of two: the key of Philox, and the first block. Draws of one key and shape are the same wherever
they happen, also under `jit` and `vmap`; they are not JAX's numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, prod
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.config import get_default_dtype
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.linalg import cholesky
from jitgrad.ops import random as _random
from jitgrad.ops.arithmetic import add, astype, divide, multiply, negative, sign, subtract
from jitgrad.ops.comparison import less
from jitgrad.ops.creation import asarray, iota, tensor
from jitgrad.ops.draws import STANDARD_GAMMA
from jitgrad.ops.indexing import take
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import broadcast_to, expand_dims, reshape, squeeze
from jitgrad.ops.normal_distribution import ndtr, ndtri
from jitgrad.ops.philox import PHILOX_BITS
from jitgrad.ops.random_numbers import UINT64
from jitgrad.ops.reduce import argmax
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.sorting import argsort
from jitgrad.ops.transcendental import log, log1p
from jitgrad.ops.trigonometric import tan

_SPLIT, _FOLD = 2**63, 2**62  # first blocks of bits that are no draws


class _Keyed(_random.Generator):
    """A generator without state, whose numbers are those of its key."""

    def __init__(self, key: Any, first_block: int = 0) -> None:
        words = asarray(key)
        if words.shape != (2,) or words.dtype != UINT64:
            raise ArgumentError(f"a key is a uint64 vector of 2, as jax.random.key(seed) makes it; got {words.aval}")
        self.word, self.first = words[0], add(words[1], np.uint64(first_block))

    def _known(self, shape: Shape, kind: Any) -> None:
        return None

    def bits(self, shape: Shape, per_element: int = 1) -> tuple[Tensor, ...]:
        blocks, places = (prod(shape) + 1) // 2, iota(shape, None, UINT64)
        firsts = [add(self.first, np.uint64(k * blocks)) if k else self.first for k in range(per_element)]
        return tuple(apply_op(PHILOX_BITS, self.word, first, places) for first in firsts)


def float_dtype(dtype: Any) -> Any:
    """``dtype``, or the default one: that of `jitgrad.set_default_dtype`."""
    return get_default_dtype() if dtype is None else dtype


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def _from_words(words: Tensor) -> Tensor:
    return stack([words, multiply(words, np.uint64(0))], -1)


def key(seed: int) -> Tensor:
    """The key of ``seed``, an int taken modulo 2**64."""
    return tensor(np.array([seed % 2**64, 0], UINT64))


PRNGKey = key


def split(key: Any, num: int | Sequence[int] = 2) -> Tensor:
    """``num`` new keys [num, 2], or [*num, 2], to be used in place of ``key``."""
    return _from_words(_Keyed(key, _SPLIT).bits(_shape(num))[0])


def key_bits(key: Any, shape: Shape = (1,)) -> Tensor:
    """Words of random bits; ops whose numbers need an unknown count of bits draw from one."""
    (words,) = _Keyed(key).bits(shape)
    return words


def fold_in(key: Any, data: Any) -> Tensor:
    """A new key of ``key`` and the integer ``data``, which may be traced."""
    source = _Keyed(key, _FOLD)
    number = astype(asarray(data), UINT64)
    return _from_words(apply_op(PHILOX_BITS, source.word, source.first, number))


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Tensor:
    """Uniform numbers in [minval, maxval)."""
    return _random.uniform(minval, maxval, _shape(shape), dtype=float_dtype(dtype), generator=_Keyed(key))


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Normal numbers with mean 0 and standard deviation 1."""
    return _random.randn(_shape(shape), dtype=float_dtype(dtype), generator=_Keyed(key))


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Normal numbers in [lower, upper], by the inverse of the distribution function."""
    low, high = (ndtr(asarray(end, dtype=float_dtype(dtype))) for end in (lower, upper))
    u = uniform(key, np.broadcast_shapes(low.shape, high.shape) if shape is None else shape, dtype)
    return ndtri(add(low, multiply(u, subtract(high, low))))


def randint(key: Any, shape: Any, minval: int, maxval: int, dtype: Any = None) -> Tensor:
    """Integers in [minval, maxval), int64 unless ``dtype`` says otherwise."""
    return _random.randint(minval, maxval, _shape(shape), dtype=dtype, generator=_Keyed(key))


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Tensor:
    """True with probability ``p``."""
    return less(uniform(key, np.shape(p) if shape is None else shape), p)


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """-1 or 1, each as likely."""
    return astype(subtract(multiply(2, astype(bernoulli(key, 0.5, _shape(shape)), np.int64)), 1), dtype or np.int64)


def _open_uniform(key: Any, shape: Any, dtype: Any) -> Tensor:
    return subtract(1.0, uniform(key, shape, dtype))  # in (0, 1]


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the exponential distribution of rate 1."""
    return negative(log(_open_uniform(key, shape, dtype)))


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the standard Gumbel distribution."""
    tiny = np.finfo(np.dtype(float_dtype(dtype))).tiny
    return negative(log(add(exponential(key, shape, dtype), tiny)))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the Laplace distribution of scale 1."""
    u = subtract(_open_uniform(key, shape, dtype), 0.5)
    return negative(multiply(sign(u), log1p(negative(multiply(2.0 - 2.0**-23, multiply(sign(u), u))))))


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the standard logistic distribution."""
    half = 2.0**-25
    u = add(multiply(uniform(key, shape, dtype), 1.0 - 2 * half), half)
    return subtract(log(u), log1p(negative(u)))


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Numbers of the standard Cauchy distribution."""
    return tan(multiply(pi, subtract(uniform(key, shape, dtype), 0.5)))


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Numbers of the gamma distribution of shape ``a`` and rate 1; gradients flow to ``a``."""
    a = asarray(a, dtype=dtype) if dtype is not None else multiply(asarray(a), float_dtype(None).type(1))
    (bits,) = _Keyed(key).bits((1,))
    drawn: Tensor = apply_op(STANDARD_GAMMA, bits, broadcast_to(a, a.shape if shape is None else _shape(shape)))
    return drawn


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Probabilities [..., k] of the Dirichlet distribution of the concentrations ``alpha`` [..., k]."""
    alpha = asarray(alpha)
    drawn = gamma(key, alpha, None if shape is None else (*_shape(shape), alpha.shape[-1]), dtype)
    return divide(drawn, sum_(drawn, axis=-1, keepdims=True))


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Vectors of the normal distribution of this mean [..., n] and covariance [..., n, n]."""
    mean = asarray(mean)
    z = normal(key, mean.shape if shape is None else (*_shape(shape), mean.shape[-1]), dtype or mean.dtype)
    return add(mean, squeeze(cholesky(cov) @ expand_dims(z, -1), -1))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Tensor:
    """Classes in proportion to ``exp(logits)`` along ``axis``: the largest of logits plus Gumbel noise."""
    logits = asarray(logits)
    before = () if shape is None else _shape(shape)[: len(_shape(shape)) - (logits.ndim - 1)]
    noise = gumbel(key, (*before, *logits.shape), logits.dtype if logits.dtype.kind == "f" else None)
    return argmax(add(noise, logits), axis=axis if axis < 0 else axis + len(before))


def permutation(key: Any, x: Any, axis: int = 0) -> Tensor:
    """``arange(x)`` of an int, or an array along ``axis``, in random order."""
    if isinstance(x, (int, np.integer)):
        return _random.randperm(int(x), generator=_Keyed(key))
    x = asarray(x)
    return take(x, _random.randperm(x.shape[axis], generator=_Keyed(key)), axis=axis)


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
    """Elements of ``a`` along ``axis``, or of ``arange(a)``, with the probabilities ``p``; one each without ``replace``.

    Raises ArgumentError if there are not as many elements as are asked for.
    """
    count = int(a) if isinstance(a, (int, np.integer)) else asarray(a).shape[axis]
    wanted = _shape(shape)
    if not replace:
        if prod(wanted) > count:
            raise ArgumentError(f"choice: {prod(wanted)} of {count} elements without replacement")
        order = _random.randperm(count, generator=_Keyed(key)) if p is None else argsort(
            negative(add(gumbel(key, (count,)), log(asarray(p))))
        )  # fmt: skip
        chosen = reshape(order[: prod(wanted)], wanted)
    elif p is None:
        chosen = randint(key, wanted, 0, count)
    else:
        chosen = categorical(key, log(asarray(p)), shape=wanted)
    return chosen if isinstance(a, (int, np.integer)) else take(asarray(a), chosen, axis=axis)
