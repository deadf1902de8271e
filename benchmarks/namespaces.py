"""One small set of array functions per library, so that a workload is written once for all of them.

Names and arguments follow the array API standard; the neural ones (``layer_norm``, ``cross_entropy``, ``gelu``,
``silu``, ``softmax``) are each library's own where it has one, as its users would call.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

_SAME = ("exp", "log", "tanh", "sqrt", "sin", "square", "abs", "maximum", "minimum", "where", "matmul", "stack", "reshape")
_SAME += ("concat", "roll")  # called with positional arguments


def _compositions(xp: Any) -> dict[str, Any]:
    """Neural functions in terms of array functions, for libraries of arrays only."""

    def softmax(x: Any, axis: int = -1) -> Any:
        e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
        return e / xp.sum(e, axis=axis, keepdims=True)

    def cross_entropy(logits: Any, labels: Any) -> Any:
        shifted = logits - xp.max(logits, axis=-1, keepdims=True)
        log_total = xp.log(xp.sum(xp.exp(shifted), axis=-1))
        picked = xp.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
        return xp.mean(log_total - picked)

    def layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
        mean = xp.mean(x, axis=-1, keepdims=True)
        centred = x - mean
        variance = xp.mean(centred * centred, axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + eps) * weight + bias

    return {
        "softmax": softmax,
        "cross_entropy": cross_entropy,
        "layer_norm": layer_norm,
        "sigmoid": lambda x: 1 / (1 + xp.exp(-x)),
        "relu": lambda x: xp.maximum(x, 0),
        "silu": lambda x: x / (1 + xp.exp(-x)),
    }


def _scan(stack: Any) -> Any:
    """A loop in Python, for libraries without one."""

    def scan(turn: Any, carry: Any, xs: Any) -> Any:
        parts = []
        for x in xs:
            carry, part = turn(carry, x)
            parts.append(part)
        return carry, stack(parts)

    return scan


def numpy_namespace() -> SimpleNamespace:
    """NumPy, with ``erf`` element by element from ``math``: NumPy has none."""
    erf = np.vectorize(math.erf, otypes=[np.float64])
    xp = SimpleNamespace(**{name: getattr(np, name) for name in (*_SAME, "sum", "mean", "max", "take_along_axis")})
    xp.__dict__.update(_compositions(np))
    xp.permute_dims = np.transpose
    xp.erf = lambda x: erf(x).astype(x.dtype)
    xp.rsqrt = lambda x: 1 / np.sqrt(x)
    xp.scan = _scan(np.stack)
    xp.conv2d = _conv2d
    xp.gelu = lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)).astype(x.dtype))
    return xp


def _conv2d(x: Any, kernel: Any) -> Any:
    """Images [n, c, h, w] and kernels [k, c, a, b], without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], (2, 3))
    return np.einsum("nchwab,kcab->nkhw", windows, kernel, optimize=True)


def jitgrad_namespace() -> SimpleNamespace:
    """jitgrad."""
    import jitgrad as jg

    own = ("sum", "mean", "max", "sigmoid", "relu", "silu", "softmax", "cross_entropy", "permute_dims", "rsqrt", "gelu", "erf")
    own += ("conv2d",)
    xp = SimpleNamespace(**{name: getattr(jg, name) for name in (*_SAME, *own)})
    xp.layer_norm = lambda x, weight, bias: jg.layer_norm(x, x.shape[-1:], weight, bias)
    xp.scan = jg.lax.scan
    return xp


def torch_namespace() -> SimpleNamespace:
    """PyTorch."""
    import torch
    import torch.nn.functional as F

    own = ("sigmoid", "relu", "rsqrt", "softmax", "erf")
    xp = SimpleNamespace(**{name: getattr(torch, name) for name in (*_SAME, *own)})
    xp.stack = lambda xs, axis=0: torch.stack(list(xs), dim=axis)
    xp.sum = lambda x, axis=None, keepdims=False: torch.sum(x) if axis is None else torch.sum(x, axis, keepdims)
    xp.mean = lambda x, axis=None, keepdims=False: torch.mean(x) if axis is None else torch.mean(x, axis, keepdims)
    xp.max = lambda x, axis, keepdims=False: torch.amax(x, axis, keepdims)
    xp.softmax = lambda x, axis=-1: torch.softmax(x, axis)
    xp.permute_dims = torch.permute
    xp.scan = _scan(torch.stack)
    xp.silu, xp.gelu, xp.cross_entropy, xp.conv2d = F.silu, F.gelu, F.cross_entropy, F.conv2d
    xp.layer_norm = lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias)
    return xp


def jax_namespace() -> SimpleNamespace:
    """JAX."""
    import jax
    import jax.numpy as jnp

    xp = SimpleNamespace(**{name: getattr(jnp, name) for name in (*_SAME, "sum", "mean", "max")})
    xp.__dict__.update(_compositions(jnp))
    for name in ("sigmoid", "relu", "silu", "softmax"):
        setattr(xp, name, getattr(jax.nn, name))
    xp.permute_dims = jnp.permute_dims
    xp.concat = lambda xs, axis=0: jnp.concatenate(xs, axis)
    xp.rsqrt, xp.scan = jax.lax.rsqrt, jax.lax.scan
    xp.erf = jax.scipy.special.erf
    xp.conv2d = lambda x, kernel: jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID")
    xp.gelu = lambda x: jax.nn.gelu(x, approximate=False)
    return xp
