"""jax.nn: activations with jax's names and defaults, in ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitgrad.core.config import get_default_dtype
from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.core.tensor import Tensor
from jitgrad.jax import initializers
from jitgrad.ops import activations as _activations
from jitgrad.ops import arithmetic as _arithmetic
from jitgrad.ops import reduce as _reduce
from jitgrad.ops.comparison import equal as _equal
from jitgrad.ops.comparison import where as _where
from jitgrad.ops.creation import arange as _arange
from jitgrad.ops.creation import asarray as _asarray
from jitgrad.ops.gates import glu as _glu
from jitgrad.ops.movement import expand_dims as _expand_dims
from jitgrad.ops.movement import moveaxis as _moveaxis
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.trigonometric import tanh
from jitgrad.scipy.special.sums import logsumexp

relu, relu6, selu, elu, celu = (
    _activations.relu, _activations.relu6, _activations.selu, _activations.elu, _activations.celu,
)  # fmt: skip
silu = swish = _activations.silu
mish, leaky_relu, soft_sign, log_sigmoid = (
    _activations.mish, _activations.leaky_relu, _activations.softsign, _activations.logsigmoid,
)  # fmt: skip
hard_sigmoid = _activations.hardsigmoid
hard_silu = hard_swish = _activations.hardswish


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """``x`` times the normal distribution function, by default approximated by tanh, as in jax."""
    return _activations.gelu(x, "tanh" if approximate else "none")


def softplus(x: Any) -> Tensor:
    """``log(1 + exp(x))``, also of large ``x``."""
    return _activations.softplus(x, 1.0, float("inf"))


def hard_tanh(x: Any) -> Tensor:
    """``x`` cut to [-1, 1]."""
    return _activations.hardtanh(x)


def squareplus(x: Any, b: Any = 4) -> Tensor:
    """``(x + sqrt(x**2 + b)) / 2`` (J. T. Barron, "Squareplus", 2021)."""
    x = _asarray(x)
    return _arithmetic.multiply(0.5, _arithmetic.add(x, _arithmetic.sqrt(_arithmetic.add(_arithmetic.square(x), b))))


def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half along ``axis`` times the sigmoid of the second. Raises ShapeError if there are no two halves."""
    return _glu(x, axis)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """``exp(x)`` over its sum along ``axis``; with ``where`` of those elements alone, the others are 0."""
    if where is None:
        return _reduce.softmax(x, axis)
    return _where(where, _reduce.softmax(_where(where, x, -float("inf")), axis), 0.0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """The logarithm of `softmax`; with ``where`` -inf for the others."""
    if where is None:
        return _reduce.log_softmax(x, axis)
    return _where(where, _reduce.log_softmax(_where(where, x, -float("inf")), axis), -float("inf"))


def standardize(x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5) -> Tensor:
    """``x`` minus its mean over the root of its variance plus ``epsilon``, along ``axis``."""
    x = _asarray(x)
    centre = _reduce.mean(x, axis, keepdims=True) if mean is None else mean
    spread = _reduce.var(x, axis, keepdims=True, correction=0) if variance is None else variance
    return _arithmetic.multiply(_arithmetic.subtract(x, centre), _arithmetic.rsqrt(_arithmetic.add(spread, epsilon)))


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """Ones where the class is that of ``x``, in the default floating dtype; zeros alone for classes out of range."""
    labels = _asarray(x)
    hot = _equal(_expand_dims(labels, -1), _arange(num_classes, dtype=labels.dtype))
    out = _arithmetic.astype(hot, get_default_dtype() if dtype is None else dtype)
    return out if axis in (-1, out.ndim - 1) else _moveaxis(out, -1, axis)


__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "initializers", "leaky_relu",
    "log_sigmoid", "log_softmax", "logsumexp", "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign",
    "softmax", "softplus", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.jax.nn", globals())
