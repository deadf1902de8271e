"""jax.nn: activations with jax's names and defaults, in ops; initializers; imports core, jax, ops, scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitgrad.core.config import get_default_dtype
from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.core.tensor import Tensor
from jitgrad.jax.nn import initializers
from jitgrad.ops import activations as _activations
from jitgrad.ops import arithmetic as _arithmetic
from jitgrad.ops import reduce as _reduce
from jitgrad.ops import transcendental as _transcendental
from jitgrad.ops.attention import scaled_dot_product_attention as _attention
from jitgrad.ops.comparison import equal as _equal
from jitgrad.ops.comparison import logical_and as _logical_and
from jitgrad.ops.comparison import where as _where
from jitgrad.ops.creation import arange as _arange
from jitgrad.ops.creation import asarray as _asarray
from jitgrad.ops.creation import full as _full
from jitgrad.ops.gates import glu as _glu
from jitgrad.ops.joining import repeat as _repeat
from jitgrad.ops.movement import expand_dims as _expand_dims
from jitgrad.ops.movement import moveaxis as _moveaxis
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.triangles import tril as _tril
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


def identity(x: Any) -> Tensor:
    """``x``."""
    return _asarray(x)


def log1mexp(x: Any) -> Tensor:
    """``log(1 - exp(-x))`` for ``x >= 0`` (M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012)."""
    small = _where(_asarray(x) < 0.6931471805599453, x, 1.0)
    large = _where(_asarray(x) < 0.6931471805599453, 1.0, x)
    near = _transcendental.log(_arithmetic.negative(_transcendental.expm1(_arithmetic.negative(small))))
    far = _transcendental.log1p(_arithmetic.negative(_transcendental.exp(_arithmetic.negative(large))))
    return _where(_asarray(x) < 0.6931471805599453, near, far)


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: float | None = None, is_causal: bool = False
) -> Tensor:
    """Attention of queries [batch, t, heads, width] to keys and values [batch, s, heads, width].

    ``mask`` is true where attention is allowed, ``bias`` is added to the products; both broadcast to
    [batch, heads, t, s]. Fewer heads of keys and values serve several of the queries.

    Raises ShapeError: see `jitgrad.nn.functional.scaled_dot_product_attention`.
    """
    q, k, v = (_asarray(x) for x in (query, key, value))
    alone = q.ndim == 3
    q, k, v = (_moveaxis(_expand_dims(x, 0) if alone else x, -3, -2) for x in (q, k, v))
    shared = q.shape[-3] // max(k.shape[-3], 1)
    if shared > 1:
        k, v = (_repeat(x, shared, -3) for x in (k, v))
    added = None if bias is None else _asarray(bias)
    if mask is not None and added is not None:
        added = _where(mask, added, -float("inf"))
    elif mask is not None:
        added = _asarray(mask)
    if is_causal and added is not None:
        lower = _tril(_full((q.shape[-2], k.shape[-2]), True, dtype="bool"))
        added = _logical_and(lower, added) if added.dtype.kind == "b" else _where(lower, added, -float("inf"))
    out = _moveaxis(_attention(q, k, v, added, is_causal=is_causal and added is None, scale=scale), -3, -2)
    return out[0] if alone else out


__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "squareplus",
    "standardize", "swish", "tanh",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.jax.nn", globals())
