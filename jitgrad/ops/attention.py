"""Attention: weighted means of values, with weights from products of queries and keys."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, multiply
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray, ones
from jitgrad.ops.joining import repeat
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import matrix_transpose
from jitgrad.ops.neural import dropout
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import softmax
from jitgrad.ops.triangles import tril


def causal_mask(rows: int, columns: int) -> Tensor:
    """Bools [rows, columns], true where a query may look at a key: at or before its own position."""
    return tril(ones((rows, columns), dtype=np.bool_))


def attention_weights(scores: Tensor, mask: Any) -> Tensor:
    """The softmax of ``scores`` plus a floating mask; or of those where a mask of bools is true, else zero."""
    if mask is None:
        return softmax(scores, -1)
    allowed = asarray(mask)
    if allowed.dtype != np.bool_:
        return softmax(add(scores, allowed), -1)
    return where(allowed, softmax(where(allowed, scores, float("-inf")), -1), 0.0)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(scale * query @ key.mT) @ value`` for query [..., l, e], key [..., s, e], value [..., s, v].

    A. Vaswani et al., "Attention is all you need", NeurIPS 2017. A query whose keys are all masked by bools gets
    zeros. ``dropout_p`` always drops: pass 0.0 for evaluation, as in torch.

    Args:
        attn_mask: bools, true where attention is allowed, or floats that are added to the scores.
        is_causal: each query sees the keys up to its own position.
        scale: 1 / sqrt(e) if omitted.
        enable_gqa: the heads of key and value, on axis -3, serve several heads of the query each.

    Raises:
        ShapeError: the last axes of query and key differ. ArgumentError: both a mask and ``is_causal``.
    """
    q, k, v = asarray(query), asarray(key), asarray(value)
    if q.shape[-1:] != k.shape[-1:]:
        raise ShapeError(f"scaled_dot_product_attention: query {q.aval} and key {k.aval} differ in their last axis")
    if is_causal and attn_mask is not None:
        raise ArgumentError("scaled_dot_product_attention: is_causal=True makes the mask itself: drop attn_mask")
    if enable_gqa:
        k, v = (repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    factor = 1.0 / sqrt(q.shape[-1]) if scale is None else scale
    if dropout_p == 0:
        return _attended(q, k, v, attn_mask, is_causal, factor)
    return matmul(dropout(dot_product_weights(q, k, attn_mask, is_causal, factor), dropout_p), v)


@composed
def _attended(q: Tensor, k: Tensor, v: Tensor, attn_mask: Any, is_causal: bool, factor: Any) -> Tensor:
    return matmul(dot_product_weights(q, k, attn_mask, is_causal, factor), v)


@composed
def dot_product_weights(q: Tensor, k: Tensor, attn_mask: Any, is_causal: bool, factor: Any) -> Tensor:
    """The softmax of ``factor`` times the products of queries and keys, under a mask."""
    scores = matmul(multiply(q, factor), matrix_transpose(k))
    if is_causal:
        with beside(scores):
            attn_mask = causal_mask(q.shape[-2], k.shape[-2])
    return attention_weights(scores, attn_mask)
