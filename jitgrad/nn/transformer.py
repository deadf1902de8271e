"""Layers and stacks of transformers (A. Vaswani et al., "Attention is all you need", NeurIPS 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.nn.attention import MultiheadAttention
from jitgrad.nn.container import ModuleList
from jitgrad.nn.layers import Dropout, Linear
from jitgrad.nn.module import Module
from jitgrad.nn.norm import LayerNorm
from jitgrad.ops.activations import gelu, relu
from jitgrad.ops.creation import full
from jitgrad.ops.placement import placing
from jitgrad.ops.triangles import triu


def _function_named(activation: Any) -> Callable[[Any], Tensor]:
    named: dict[Any, Callable[[Any], Tensor]] = {"relu": relu, "gelu": gelu}
    if callable(activation):
        return activation  # type: ignore[no-any-return]
    if activation not in named:
        raise ArgumentError(f"a transformer's activation is 'relu', 'gelu' or a function, got {shown(activation)}")
    return named[activation]


class _Layer(Module):
    """Base class: self-attention and two linear maps, with norms before (``norm_first``) or after each part."""

    norms = 2

    @placing
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.activation: Callable[[Any], Tensor] = _function_named(activation)
        self.norm_first: bool = norm_first
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, "dtype": dtype}
        self.self_attn: MultiheadAttention = MultiheadAttention(d_model, nhead, **attention)
        if self.norms == 3:
            self.multihead_attn: MultiheadAttention = MultiheadAttention(d_model, nhead, **attention)
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        for k in range(1, self.norms + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
            setattr(self, f"dropout{k}", Dropout(dropout))

    def _added(self, k: int, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        """``x`` plus what ``part`` number ``k`` makes of it, normalised before or after."""
        norm, drop = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        if self.norm_first:
            return x + drop(part(norm(x)))  # type: ignore[no-any-return]
        return norm(x + drop(part(x)))  # type: ignore[no-any-return]

    def _forward_part(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a network of two linear maps."""

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Tensor:
        """Masks as in :class:`MultiheadAttention`."""

        def attention(x: Tensor) -> Tensor:
            masks = {"key_padding_mask": src_key_padding_mask, "attn_mask": src_mask, "is_causal": is_causal}
            return self.self_attn(x, x, x, need_weights=False, **masks)[0]  # type: ignore[no-any-return]

        return self._added(2, self._added(1, src, attention), self._forward_part)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to ``memory``, then a network of two linear maps."""

    norms = 3

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Masks as in :class:`MultiheadAttention`."""

        def own(x: Tensor) -> Tensor:
            masks = {"key_padding_mask": tgt_key_padding_mask, "attn_mask": tgt_mask, "is_causal": tgt_is_causal}
            return self.self_attn(x, x, x, need_weights=False, **masks)[0]  # type: ignore[no-any-return]

        def other(x: Tensor) -> Tensor:
            masks = {"key_padding_mask": memory_key_padding_mask, "attn_mask": memory_mask, "is_causal": memory_is_causal}
            return self.multihead_attn(x, memory, memory, need_weights=False, **masks)[0]  # type: ignore[no-any-return]

        return self._added(3, self._added(2, self._added(1, tgt, own), other), self._forward_part)


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer one after the other, and a norm at the end if one is given."""

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = False
    ) -> None:
        self.layers: ModuleList = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers: int = num_layers
        self.norm: Module | None = norm

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Tensor:
        """Masks as in :class:`MultiheadAttention`."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer one after the other, and a norm at the end if one is given."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers: ModuleList = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers: int = num_layers
        self.norm: Module | None = norm

    def forward(self, tgt: Any, memory: Any, *masks: Any, **named_masks: Any) -> Tensor:
        """Masks as in :class:`TransformerDecoderLayer`."""
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, *masks, **named_masks)
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class Transformer(Module):
    """An encoder and a decoder, each with a norm at the end."""

    @placing
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder: Any = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, dtype=dtype), num_encoder_layers, norm()
        )
        self.decoder: Any = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, dtype=dtype), num_decoder_layers, norm()
        )

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Masks as in :class:`MultiheadAttention`. That a mask is causal is a hint, which changes nothing."""
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Tensor:
        """The causal mask [sz, sz] to be added: -inf above the diagonal, else 0."""
        return triu(full((sz, sz), float("-inf"), dtype=np.float32), 1)
