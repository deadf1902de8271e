"""Attention of several heads as one function of inputs and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add
from jitgrad.ops.attention import causal_mask, dot_product_weights
from jitgrad.ops.comparison import logical_and, logical_not, where
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.joining import concat, pad
from jitgrad.ops.linalg import linear, matmul
from jitgrad.ops.movement import broadcast_to, expand_dims, flatten, permute_dims, reshape, squeeze, swapaxes
from jitgrad.ops.neural import dropout
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import mean


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """:class:`jitgrad.nn.MultiheadAttention` of query, key and value [length, (batch,) features], with its parameters.

    ``bias_k`` and ``bias_v`` [1, 1, embed_dim] are one more key and value, and ``add_zero_attn`` adds zeros as another.
    ``static_k`` and ``static_v`` [batch * heads, length, features of a head] replace projected keys and values. Raises
    ArgumentError if ``query`` has other features or they do not divide into heads, ShapeError for an unfitting mask.
    """
    inputs = [asarray(x) for x in (query, key, value)]
    alone, width = inputs[0].ndim == 2, embed_dim_to_check
    if inputs[0].shape[-1] != width or width % num_heads:
        raise ArgumentError(f"multi_head_attention_forward: {inputs[0].aval} for {num_heads} heads of {width} features")
    inputs = [expand_dims(x, 0) if alone else swapaxes(x, 0, 1) for x in inputs]
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(inputs, in_proj_weight, separate, in_proj_bias)
    k, v = _with_row(k, bias_k), _with_row(v, bias_v)
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    k, v = (x if s is None else reshape(asarray(s), (*q.shape[:2], -1, q.shape[-1])) for x, s in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (pad(x, ((0, 0), (0, 0), (0, 1), (0, 0))) for x in (k, v))
    more = (bias_k is not None) + bool(add_zero_attn)
    mask = _mask(q, k, key_padding_mask, attn_mask, is_causal, more)
    weights = dropout(dot_product_weights(q, k, mask, False, q.shape[-1] ** -0.5), dropout_p, training)
    out = _joined(weights, v, out_proj_weight, out_proj_bias, alone)
    weights = mean(weights, 1) if average_attn_weights and need_weights else weights
    return out, (squeeze(weights, 0) if alone else weights) if need_weights else None


def _projected(inputs: list[Tensor], whole: Any, separate: Any, bias: Any) -> list[Tensor]:
    """Queries, keys and values [batch, length, embed_dim]."""
    n = inputs[0].shape[-1]
    bias = None if bias is None else asarray(bias)
    if separate is None:
        return [_projection(x, asarray(whole), bias, j * n, n) for j, x in enumerate(inputs)]
    biases = [None if bias is None else bias[j * n : (j + 1) * n] for j in range(3)]
    return [linear(x, w, b) for x, w, b in zip(inputs, separate, biases, strict=True)]


@composed
def _projection(x: Tensor, weight: Tensor, bias: Tensor | None, start: int, n: int) -> Tensor:
    """``x`` projected by the ``n`` rows of ``weight`` from ``start`` on."""
    part = slice(start, start + n)
    return linear(x, weight[part], None if bias is None else bias[part])


@composed
def _joined(weights: Tensor, v: Tensor, out_weight: Tensor, out_bias: Tensor | None, alone: bool) -> Tensor:
    """The outputs of all heads side by side, projected: [length, (batch,) features]."""
    heads = permute_dims(matmul(weights, v), (0, 2, 1, 3))
    out = linear(flatten(heads, 2), out_weight, out_bias)
    return squeeze(out, 0) if alone else swapaxes(out, 0, 1)


def _with_row(x: Tensor, row: Any) -> Tensor:
    """``x`` [batch, length, features] with ``row`` [1, 1, features] as one element more of each sequence."""
    return x if row is None else concat([x, broadcast_to(asarray(row), (x.shape[0], 1, x.shape[2]))], 1)


def _heads(x: Tensor, count: int) -> Tensor:
    """[batch, heads, length, features of a head]."""
    return permute_dims(reshape(x, (*x.shape[:2], count, x.shape[2] // count)), (0, 2, 1, 3))


def _mask(q: Tensor, k: Tensor, padding: Any, mask: Any, is_causal: bool, more: int) -> Tensor | None:
    """Both masks as one, in the sense of :func:`attention_weights`, to broadcast against the scores.

    All may look at the last ``more`` keys, of which the masks know nothing.
    """
    (batch, heads, rows, _), columns = q.shape, k.shape[2] - more
    masks: list[Tensor] = []
    if mask is not None:
        given = asarray(mask)
        if given.ndim == 3:
            given = reshape(given, (batch, heads, rows, columns))
        elif given.shape != (rows, columns):
            raise ShapeError(f"MultiheadAttention: attn_mask must have shape {(rows, columns)}, got {given.aval}")
        masks.append(logical_not(given) if given.dtype == np.bool_ else given)
    elif is_causal:
        with beside(q):
            masks.append(causal_mask(rows, columns))
    if padding is not None:
        given = reshape(asarray(padding), (batch, 1, 1, columns))
        masks.append(logical_not(given) if given.dtype == np.bool_ else given)
    masks = [_widened(m, more) for m in masks]
    if len(masks) < 2:
        return masks[0] if masks else None
    if all(m.dtype == np.bool_ for m in masks):
        return logical_and(*masks)
    return add(*(where(m, 0.0, float("-inf")) if m.dtype == np.bool_ else m for m in masks))


def _widened(mask: Tensor, more: int) -> Tensor:
    if not more:
        return mask
    with beside(mask):
        free = zeros((*mask.shape[:-1], more), dtype=mask.dtype)
    return concat([mask, logical_not(free) if mask.dtype == np.bool_ else free], -1)
