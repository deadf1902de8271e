"""Philox4x32-10: random bits as a pure function of key, counter and position.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011: ten rounds
of a 32x32 -> 64 bit multiplication and exclusive ors turn a 128-bit counter and a 64-bit key into 128 random bits.
No state is carried from element to element, so any number of threads in any order draws the same numbers.

Element ``index`` of a draw at ``counter`` gets 64 bits: words 0 and 1 (index even) or 2 and 3 (index odd) of the block
``counter + index // 2``, the first of them in the high half. So n elements use up ``ceil(n / 2)`` blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.op import define_elementwise

MULTIPLIER_0, MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
WEYL_0, WEYL_1 = 0x9E3779B9, 0xBB67AE85  # the golden ratio and sqrt(3) - 1, added to the key at each round
ROUNDS = 10
LOW = 0xFFFFFFFF

u64 = np.uint64
Words = tuple[Any, Any, Any, Any]


def philox_bits(key: Any, counter: Any, index: Any) -> Any:
    """The bits of one element, as kernels compute them: uint64 scalars in, a uint64 scalar out.

    Straight-line integer arithmetic without branches and without signed types, for a compiler to inline, unroll and
    vectorise. Only 32-bit halves are multiplied, so no product is cut. ``u64`` is the only name it needs.
    """
    low = u64(0xFFFFFFFF)
    block = counter + (index >> u64(1))
    c0, c1, c2, c3 = block & low, block >> u64(32), u64(0), u64(0)
    k0, k1 = key & low, key >> u64(32)
    for _ in range(10):
        p0 = u64(0xD2511F53) * c0
        p1 = u64(0xCD9E8D57) * c2
        c0, c1 = (p1 >> u64(32)) ^ c1 ^ k0, p1 & low
        c2, c3 = (p0 >> u64(32)) ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + u64(0x9E3779B9)) & low, (k1 + u64(0xBB67AE85)) & low
    odd = u64(0) - (index & u64(1))  # all ones for the second half of a block
    return ((c0 ^ ((c0 ^ c2) & odd)) << u64(32)) | (c1 ^ ((c1 ^ c3) & odd))


def philox_block(key: int, block: int) -> tuple[int, int, int, int]:
    """The four 32-bit words of one block, in Python integers: the reference of tests."""
    c0, c1, c2, c3 = block & LOW, block >> 32 & LOW, block >> 64 & LOW, block >> 96 & LOW
    k0, k1 = key & LOW, key >> 32
    for _ in range(ROUNDS):
        p0, p1 = MULTIPLIER_0 * c0, MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & LOW, (p0 >> 32) ^ c3 ^ k1, p0 & LOW
        k0, k1 = (k0 + WEYL_0) & LOW, (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


def _blocks(key: int, block: Any) -> Words:
    """The four words of each block in a uint64 array, as uint64 arrays."""
    low, half = np.uint64(LOW), np.uint64(32)
    m0, m1 = np.uint64(MULTIPLIER_0), np.uint64(MULTIPLIER_1)
    c0, c1 = block & low, block >> half
    c2 = c3 = np.uint64(0)
    k0, k1 = key & LOW, key >> 32
    for _ in range(ROUNDS):
        p0, p1 = m0 * c0, m1 * c2
        c0, c1 = (p1 >> half) ^ (c1 ^ np.uint64(k0)), p1 & low
        c2, c3 = (p0 >> half) ^ (c3 ^ np.uint64(k1)), p0 & low
        k0, k1 = (k0 + WEYL_0) & LOW, (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


STRETCH = 1 << 14  # blocks worked on at a time: the dozen temporaries stay in the second-level cache


def philox_consecutive(key: int, counter: int, count: int) -> np.ndarray[Any, Any]:
    """uint64[count]: the bits of a draw's first elements; each block is computed once."""
    blocks = (count + 1) // 2
    out = np.empty((blocks, 2), np.uint64)
    half = np.uint64(32)
    for start in range(0, blocks, STRETCH):
        stop = min(start + STRETCH, blocks)
        c0, c1, c2, c3 = _blocks(key, np.arange(start, stop, dtype=np.uint64) + np.uint64(counter))
        out[start:stop, 0] = c0 << half | c1
        out[start:stop, 1] = c2 << half | c3
    return out.reshape(-1)[:count]


def _philox_eager(key: Any, counter: Any, index: Any) -> Any:
    if key.size == 1 and counter.size == 1 and index.size and _is_iota(index):
        bits = philox_consecutive(int(key.item()), int(counter.item()), index.size)
        return bits.reshape(np.broadcast_shapes(key.shape, counter.shape, index.shape))
    return philox_scattered(key, counter, index)


def _is_iota(index: Any) -> bool:
    flat = index.reshape(-1)
    return bool(flat[0] == 0 and flat[-1] == index.size - 1 and (np.diff(flat) == 1).all())


def philox_scattered(key: Any, counter: Any, index: Any) -> np.ndarray[Any, Any]:
    """The bits of elements at any positions; all operands uint64 arrays that broadcast."""
    key, counter, index = np.broadcast_arrays(key, counter, index)
    out = np.empty(index.shape, np.uint64)
    one, half = np.uint64(1), np.uint64(32)
    for k in np.unique(key):
        chosen = key == k
        c0, c1, c2, c3 = _blocks(int(k), counter[chosen] + (index[chosen] >> one))
        out[chosen] = np.where(index[chosen] & one, c2 << half | c3, c0 << half | c1)
    return out


def _bits_dtypes(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    dtype = np.dtype(np.uint64)
    return (dtype,) * len(avals), dtype


PHILOX_BITS = define_elementwise(
    "philox_bits(key, counter, index)",
    scalar="philox_bits(key, counter, index)",
    eager=_philox_eager,
    dtypes=_bits_dtypes,
    domain=("count", "count", "count"),
)
