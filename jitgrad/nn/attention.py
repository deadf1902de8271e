"""Attention of several heads."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.init import xavier_normal_, xavier_uniform_
from jitgrad.nn.layers import Linear
from jitgrad.nn.module import Module, Parameter
from jitgrad.nn.multihead import multi_head_attention_forward
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.movement import swapaxes
from jitgrad.ops.placement import placing


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
    bias_k: Tensor | None
    bias_v: Tensor | None

    @placing
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
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
        self.add_zero_attn: bool = add_zero_attn
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
        for name in ("bias_k", "bias_v"):
            row = Parameter(xavier_normal_(zeros((1, 1, embed_dim), dtype=dtype))) if add_bias_kv else None
            self.register_parameter(name, row)

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
        turned = self.batch_first and asarray(query).ndim == 3
        q, k, v = (swapaxes(x, 0, 1) if turned else x for x in map(asarray, (query, key, value)))
        out, weights = multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=self.in_proj_weight is None, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )
        return swapaxes(out, 0, 1) if turned else out, weights
