"""The bits of numbers as numbers of another dtype, and counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import DtypeError, ShapeError
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, multiply, subtract
from jitgrad.ops.comparison import bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import reshape
from jitgrad.ops.operand import Operand, apply


def _as_asked(avals: Sequence[Aval], *, dtype: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    return (avals[0].dtype,), np.dtype(dtype)


BITS_AS = define_elementwise(
    "bits_as(x, *, dtype)",
    scalar=None,
    eager=lambda x, *, dtype: np.asarray(x).view(dtype).copy(),
    dtypes=_as_asked,
    domain=("real",),
    takes_complex=True,
    register=False,  # it takes pairs of dtypes of one size alone
)


def bits_as(x: Operand, dtype: Any) -> Tensor:
    """``x`` with its bits read as numbers of ``dtype``: a copy, without gradient.

    A last axis of n elements has n times as many shorter ones, or fewer longer ones, in the order of a little-endian memory.

    Raises:
        ShapeError: there is no last axis to change, or its bytes are no multiple of those of ``dtype``.
        DtypeError: the bytes of a complex dtype would have to be split or joined.
    """
    given, wanted = aval_of(BITS_AS, x), np.dtype(dtype)
    size, asked = given.dtype.itemsize, wanted.itemsize
    if size == asked:
        return apply(BITS_AS, x, dtype=wanted)
    called = f"view of {given} as {wanted}"
    if max(size, asked) > 8:
        raise DtypeError(f"{called}: complex numbers are not split here; take x.real and x.imag first")
    if not given.shape or (given.shape[-1] * size) % asked:
        raise ShapeError(f"{called}: the bytes of the last axis must be a multiple of {asked}")
    whole = apply(BITS_AS, x, dtype=np.dtype(f"u{size}"))
    return apply(BITS_AS, _split(whole, asked) if size > asked else _joined(whole, asked), dtype=wanted)


def _split(whole: Tensor, size: int) -> Tensor:
    """Unsigned integers as shorter ones of ``size`` bytes, the lowest first."""
    dtype, short = whole.dtype.type, np.dtype(f"u{size}")
    last = dtype(np.iinfo(short).max)
    starts = range(0, 8 * whole.dtype.itemsize, 8 * size)
    parts = [astype(bitwise_and(bitwise_right_shift(whole, dtype(k)), last), short) for k in starts]
    return reshape(stack(parts, -1), (*whole.shape[:-1], whole.shape[-1] * len(parts)))


def _joined(parts: Tensor, size: int) -> Tensor:
    """Unsigned integers as longer ones of ``size`` bytes, of which the first are the lowest."""
    width, long = parts.dtype.itemsize, np.dtype(f"u{size}")
    count = size // width
    rows = astype(reshape(parts, (*parts.shape[:-1], parts.shape[-1] // count, count)), long)
    whole = rows[..., 0]
    for k in range(1, count):
        whole = bitwise_or(whole, bitwise_left_shift(rows[..., k], long.type(8 * width * k)))
    return whole


def population_count(x: Operand) -> Tensor:
    """How many bits of each integer are set, in the dtype of ``x`` (H. Warren, Hacker's Delight, 5-1).

    Raises DtypeError for others than integers.
    """
    bits = _unsigned("population_count", x)
    width = 8 * bits.dtype.itemsize
    each = bits.dtype.type

    def pattern(byte: int) -> Any:
        return each(int.from_bytes(bytes([byte]) * (width // 8), "little"))

    def shifted(v: Tensor, k: int) -> Tensor:
        return bitwise_right_shift(v, each(k))

    bits = subtract(bits, bitwise_and(shifted(bits, 1), pattern(0x55)))
    bits = add(bitwise_and(bits, pattern(0x33)), bitwise_and(shifted(bits, 2), pattern(0x33)))
    bits = bitwise_and(add(bits, shifted(bits, 4)), pattern(0x0F))
    if width > 8:
        bits = shifted(multiply(bits, pattern(0x01)), width - 8)
    return astype(bits, aval_of(BITS_AS, x).dtype)


def clz(x: Operand) -> Tensor:
    """How many bits of each integer are zero before the first that is set, in the dtype of ``x``.

    Raises DtypeError for others than integers.
    """
    bits = _unsigned("clz", x)
    width = 8 * bits.dtype.itemsize
    k = 1
    while k < width:
        bits = bitwise_or(bits, bitwise_right_shift(bits, bits.dtype.type(k)))
        k *= 2
    return astype(subtract(bits.dtype.type(width), population_count(bits)), aval_of(BITS_AS, x).dtype)


def _unsigned(name: str, x: Operand) -> Tensor:
    given = aval_of(BITS_AS, x)
    if given.dtype.kind not in "iu":
        raise DtypeError(f"{name}: expected integers, got {given}")
    return apply(BITS_AS, x, dtype=np.dtype(f"u{given.dtype.itemsize}"))


def view(x: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """``x`` in another shape, as `jitgrad.reshape`; with a dtype in place of a shape its bits, as `bits_as`: a copy.

    Raises what these raise.
    """
    if dtype is not None:
        return bits_as(x, dtype)
    if len(shape) == 1 and isinstance(shape[0], (np.dtype, type, str)):
        return bits_as(x, shape[0])
    return reshape(x, *shape)
