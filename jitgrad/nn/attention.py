"""Attention of several heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.init import xavier_uniform_
from jitgrad.nn.layers import Linear
from jitgrad.nn.module import Module, Parameter
from jitgrad.ops.arithmetic import add, multiply
from jitgrad.ops.attention import attention_weights, causal_mask
from jitgrad.ops.comparison import logical_and, logical_not, where
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.linalg import linear, matmul
from jitgrad.ops.movement import expand_dims, matrix_transpose, permute_dims, reshape, squeeze, swapaxes
from jitgrad.ops.neural import dropout
from jitgrad.ops.placement import beside, placing
from jitgrad.ops.reduce import mean


class MultiheadAttention(Module):
    """Attention in ``num_heads`` subspaces (A. Vaswani et al., "Attention is all you need", NeurIPS 2017).

    Takes query, key and value [length, batch, features], or [batch, length, features] with ``batch_first``, or without
    the batch axis.
    """

    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None

    @placing
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(f"MultiheadAttention: embed_dim={embed_dim} does not divide into {num_heads} heads")
        self.embed_dim: int = embed_dim
        self.num_heads: int = num_heads
        self.dropout: float = dropout
        self.batch_first: bool = batch_first
        widths = (embed_dim, embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim)
        same = set(widths) == {embed_dim}
        for name, width in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), widths, strict=True):
            weight = None if same else Parameter(xavier_uniform_(zeros((embed_dim, width), dtype=dtype)))
            self.register_parameter(name, weight)
        whole = Parameter(xavier_uniform_(zeros((3 * embed_dim, embed_dim), dtype=dtype))) if same else None
        self.register_parameter("in_proj_weight", whole)
        self.register_parameter("in_proj_bias", Parameter(zeros((3 * embed_dim,), dtype=dtype)) if bias else None)
        self.out_proj: Linear = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if bias:
            self.out_proj.bias = Parameter(zeros((embed_dim,), dtype=dtype))

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values, and the weights [batch, (heads,) l, s] if ``need_weights``.

        Masks of bools are true where attention is not allowed, as in torch's module (its function has it the other way
        round); floating masks are added. ``is_causal`` without ``attn_mask`` makes the mask.
        """
        inputs = [asarray(x) for x in (query, key, value)]
        alone = inputs[0].ndim == 2
        if not alone and not self.batch_first:
            inputs = [swapaxes(x, 0, 1) for x in inputs]
        inputs = [expand_dims(x, 0) if alone else x for x in inputs]
        q, k, v = map(self._heads, self._projected(inputs))
        scores = matmul(multiply(q, q.shape[-1] ** -0.5), matrix_transpose(k))
        weights = attention_weights(scores, self._mask(scores, key_padding_mask, attn_mask, is_causal))
        weights = dropout(weights, self.dropout, self.training)
        heads = permute_dims(matmul(weights, v), (0, 2, 1, 3))
        out = self.out_proj(reshape(heads, (*heads.shape[:2], self.embed_dim)))
        out = squeeze(out, 0) if alone else out if self.batch_first else swapaxes(out, 0, 1)
        if not need_weights:
            return out, None
        weights = mean(weights, 1) if average_attn_weights else weights
        return out, squeeze(weights, 0) if alone else weights

    def _projected(self, inputs: list[Tensor]) -> list[Tensor]:
        """Queries, keys and values [batch, length, embed_dim]."""
        n = self.embed_dim
        whole, bias = self.in_proj_weight, self.in_proj_bias
        weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        if whole is not None:
            weights = [whole[j * n : (j + 1) * n] for j in range(3)]
        biases = [None if bias is None else bias[j * n : (j + 1) * n] for j in range(3)]
        return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def _heads(self, x: Tensor) -> Tensor:
        """[batch, heads, length, features of a head]."""
        parts = reshape(x, (*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads))
        return permute_dims(parts, (0, 2, 1, 3))

    def _mask(self, scores: Tensor, padding: Any, mask: Any, is_causal: bool) -> Tensor | None:
        """Both masks as one, in the sense of :func:`attention_weights`, to broadcast against the scores."""
        batch, heads, rows, columns = scores.shape
        masks: list[Tensor] = []
        if mask is not None:
            given = asarray(mask)
            if given.ndim == 3:
                given = reshape(given, (batch, heads, rows, columns))
            elif given.shape != (rows, columns):
                raise ShapeError(f"MultiheadAttention: attn_mask must have shape {(rows, columns)}, got {given.aval}")
            masks.append(logical_not(given) if given.dtype == np.bool_ else given)
        elif is_causal:
            with beside(scores):
                masks.append(causal_mask(rows, columns))
        if padding is not None:
            given = reshape(asarray(padding), (batch, 1, 1, columns))
            masks.append(logical_not(given) if given.dtype == np.bool_ else given)
        if len(masks) < 2:
            return masks[0] if masks else None
        if all(m.dtype == np.bool_ for m in masks):
            return logical_and(*masks)
        return add(*(where(m, 0.0, float("-inf")) if m.dtype == np.bool_ else m for m in masks))
