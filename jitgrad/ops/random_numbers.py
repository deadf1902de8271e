"""Random numbers as functions of random bits: uniform ones, and normal ones by the method of Box and Muller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Array, Dtype
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.eager.loops import Loop
from jitgrad.eager.numpy_errors import quietly
from jitgrad.eager.scalar_eval import blockwise, scalar_functions
from jitgrad.ops.arithmetic import add, astype, multiply, subtract
from jitgrad.ops.comparison import bitwise_and, bitwise_left_shift, bitwise_right_shift
from jitgrad.ops.philox import PHILOX_BITS, philox_consecutive
from jitgrad.ops.read_ahead import ReadAhead, ReadAheadOfPairs

UINT64 = np.dtype(np.uint64)
# random bits of a uniform number: all that the dtype can hold evenly spaced in [0, 1)
MANTISSA = {2: 11, 4: 24, 8: 53}


@blockwise
def _box_muller(u: Array, v: Array) -> Any:
    functions = scalar_functions()
    return functions["normal_radius"](u) * functions["cos_turns"](v)


# One op, not a product of log and cos: NumPy and kernels round those two differently.
BOX_MULLER = define_elementwise(
    "box_muller(u, v)",
    scalar="normal_radius(u) * cos_turns(v)",
    eager=_box_muller,
    vjp=None,
    domain=("probability", "probability"),
    one_loop=True,
)


class NumberKind(NamedTuple):
    """Numbers that ``function`` makes of ``words`` tensors of random bits."""

    name: str
    words: int
    function: Callable[..., Tensor]

    def read_ahead(self, count: int) -> ReadAhead | ReadAheadOfPairs:
        """Computes draws of this kind for the next ones, too; for several words those of ``count`` elements."""
        return ReadAhead(self.draw) if self.words == 1 else ReadAheadOfPairs(self.draw_pairs, count)

    def draw(self, key: int, counter: int, count: int) -> Array:
        """The numbers of a draw at ``counter``, [count]."""
        blocks = (count + 1) // 2
        firsts = [counter + k * blocks for k in range(self.words)]
        if count <= DRAWN_AT_ONCE:
            return self._stretch(key, firsts, count)
        parts = [(k, min(DRAWN_AT_ONCE, count - k)) for k in range(0, count, DRAWN_AT_ONCE)]
        first = self._stretch(key, firsts, DRAWN_AT_ONCE)
        out = empty_buffer((count,), first.dtype)
        out[:DRAWN_AT_ONCE] = first
        for k, length in parts[1:]:
            out[k : k + length] = self._stretch(key, [c + k // 2 for c in firsts], length)
        return out

    def _stretch(self, key: int, firsts: Sequence[int], count: int) -> Array:
        """Some of these numbers, from the blocks ``firsts`` of each word on."""
        ufunc = _loop(self).ready(count * _PASSES)
        if ufunc is not None:
            return quietly(ufunc, UINT64.type(key), *map(UINT64.type, firsts), _positions()[:count])  # type: ignore[no-any-return]
        return self.function(*[Tensor(philox_consecutive(key, first, count)) for first in firsts])._data  # type: ignore[no-any-return]

    def draw_pairs(self, key: int, counter: int, count: int, draws: int) -> Array:
        """The numbers of ``draws`` draws of two words for each element, one after the other, [draws, count]."""
        blocks = (count + 1) // 2
        ufunc = _loop(self).ready(draws * count * _PASSES)
        if ufunc is not None:
            firsts = np.arange(draws, dtype=UINT64)[:, None] * UINT64.type(2 * blocks) + UINT64.type(counter)
            return quietly(ufunc, UINT64.type(key), firsts, firsts + UINT64.type(blocks), _positions()[:count])  # type: ignore[no-any-return]
        words = philox_consecutive(key, counter, draws * 4 * blocks).reshape(draws, 2, 2 * blocks)[:, :, :count]
        return self.function(Tensor(words[:, 0]), Tensor(words[:, 1]))._data  # type: ignore[no-any-return]


DRAWN_AT_ONCE = (
    1 << 15
)  # elements worked on at a time: the temporaries of NumPy's functions stay in the second-level cache
_PASSES = 8  # NumPy's functions take so many times longer for an element than those of other loops


@cache
def _loop(kind: NumberKind) -> Loop:
    """The loop of ``kind`` over the positions in a draw, for a key and the first block of each word."""

    def numbers(key: Tensor, *counters_and_index: Tensor) -> Tensor:
        *counters, index = counters_and_index
        return kind.function(*[apply_op(PHILOX_BITS, key, counter, index) for counter in counters])

    count = kind.words + 2
    return Loop(kind.name, numbers, [UINT64] * count, [True] * (count - 1) + [False])


@cache
def _positions() -> Array:
    return np.arange(DRAWN_AT_ONCE, dtype=UINT64)


def _unit(bits: Tensor, dtype: Dtype) -> Tensor:
    """The top bits of each element as a number in [0, 1); every step of it is exact."""
    kept = MANTISSA[dtype.itemsize]
    # through a signed integer, which CPUs convert to floats faster
    integers = np.dtype(np.int64 if kept > 31 else np.int32)
    top = astype(bitwise_right_shift(bits, 64 - kept), integers)
    if dtype.itemsize == 2:
        return astype(multiply(astype(top, np.dtype(np.float32)), 2.0**-kept), dtype)
    return multiply(astype(top, dtype), 2.0**-kept)


def _normal(*words: Tensor, dtype: Dtype) -> Tensor:
    """Normal numbers from one word for each element, for float64 two."""
    if dtype.itemsize < 8:
        (bits,) = words
        high, low = bitwise_right_shift(bits, 32), bitwise_and(bits, 0xFFFFFFFF)
        # u in (0, 1] has all 32 bits near 0, where the tail of the distribution is
        u = multiply(add(astype(astype(high, np.dtype(np.int64)), np.dtype(np.float32)), 1.0), 2.0**-32)
        v = _unit(bitwise_left_shift(low, 32), np.dtype(np.float32))
    else:
        first, second = words
        u = subtract(1.0, _unit(first, dtype))
        v = _unit(second, dtype)
    z = apply_op(BOX_MULLER, u, v)
    return z if z.dtype == dtype else astype(z, dtype)


_FLOATS: list[Dtype] = [np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)]
BITS = NumberKind("bits", 1, lambda bits: bits)  # as they are
UNITS = {dtype.itemsize: NumberKind("uniform", 1, partial(_unit, dtype=dtype)) for dtype in _FLOATS}
NORMALS = {
    dtype.itemsize: NumberKind("normal", 1 + (dtype.itemsize == 8), partial(_normal, dtype=dtype)) for dtype in _FLOATS
}
