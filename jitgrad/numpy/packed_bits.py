"""packbits and unpackbits: eight elements as the bits of a byte."""

from __future__ import annotations

from typing import Literal

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError, DtypeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.ops.arithmetic import astype, multiply
from jitgrad.ops.comparison import bitwise_and, not_equal
from jitgrad.ops.joining import pad
from jitgrad.ops.movement import expand_dims, moveaxis, reshape
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import sum as sum_

BitOrder = Literal["big", "little"]


def _weights(what: str, bitorder: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{what}: bitorder is 'big' or 'little', got {shown(bitorder)}")
    weights = 2 ** np.arange(8, dtype=np.uint8)
    return weights[::-1].copy() if bitorder == "big" else weights


def packbits(a: Operand, /, axis: int | None = None, bitorder: BitOrder = "big") -> Tensor:
    """Bytes of which each has eight elements of ``a`` along ``axis`` as bits, 1 where they are not 0; zeros fill the last.

    Raises DtypeError for floats.
    """
    x, weights = tensor_of(a), _weights("packbits", bitorder)
    if x.dtype.kind not in "biu":
        raise DtypeError(f"packbits: expected bools or integers, got {x.aval}: compare first, as in x > 0")
    x = reshape(x, (-1,)) if axis is None else x
    along = normalize_axis("packbits", 0 if axis is None else axis, x.ndim)
    bits = moveaxis(astype(not_equal(x, 0), np.uint8), along, -1)
    count = bits.shape[-1]
    bits = pad(bits, [*[(0, 0)] * (bits.ndim - 1), (0, -count % 8)])
    groups = reshape(bits, (*bits.shape[:-1], -(-count // 8), 8))
    return moveaxis(astype(sum_(multiply(groups, weights), -1), np.uint8), -1, along)


def unpackbits(a: Operand, /, axis: int | None = None, count: int | None = None, bitorder: BitOrder = "big") -> Tensor:
    """The bits of bytes as elements along ``axis``: the first ``count``, or all but the last ``-count``; zeros beyond.

    Raises DtypeError for anything but uint8.
    """
    x, weights = tensor_of(a), _weights("unpackbits", bitorder)
    if x.dtype != np.uint8:
        raise DtypeError(f"unpackbits: expected uint8, got {x.aval}: use astype(np.uint8)")
    x = reshape(x, (-1,)) if axis is None else x
    along = normalize_axis("unpackbits", 0 if axis is None else axis, x.ndim)
    bytes_ = moveaxis(x, along, -1)
    bits = astype(not_equal(bitwise_and(expand_dims(bytes_, -1), weights), 0), np.uint8)
    bits = reshape(bits, (*bytes_.shape[:-1], bytes_.shape[-1] * 8))
    length = bits.shape[-1]
    wanted = length if count is None else length + count if count < 0 else count
    if wanted < 0:
        raise ArgumentError(f"unpackbits: count={count} leaves out more than the {length} bits that there are")
    bits = pad(bits, [*[(0, 0)] * (bits.ndim - 1), (0, wanted - length)]) if wanted > length else bits[..., :wanted]
    return moveaxis(bits, -1, along)
