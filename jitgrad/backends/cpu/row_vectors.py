"""How many vectors at a time loops over short rows take.

LLVM's loop takes four vectors at a time, then half vectors, then single elements. Rows of a few vectors go through all three,
or through the last two alone. Fewer vectors at a time then take 0.6 to 0.9 of the time.
"""

from __future__ import annotations

_USUAL = 4  # as in `jitgrad.backends.llvm.unroll`
_LEAST_GAIN = 0.9  # of the usual loop's time: above, a kernel of its own does not pay

# The time of one vector in a loop of so many of them, over that of one vector among many. Measured with softmax, layer norm and
# cross entropy, forward and backward, with rows of 17 to 257 float32 and float64 elements, on an AMD machine (Zen 5).
_VECTOR = {4: 0.95, 2: 1.0, 1: 1.1}
_HALF_VECTORS = 2.5  # to begin with them after whole vectors
_HALF_BY_LANES, _ELEMENT_BY_LANES = 10.0, 7.5  # a half vector and an element: next to 16 lanes they weigh less than next to 8
_LEAST_STEP = 16  # elements of an iteration from which on LLVM adds a loop of half vectors


def row_vectors(n: int, itemsize: int, vector_bytes: int) -> int | None:
    """The best number of vectors at a time for rows of ``n`` elements of ``itemsize`` bytes; None for the usual one.

    It was measured with vectors of 64 bytes, so code for CPUs without AVX-512 has the usual one always.
    """
    lanes = vector_bytes // itemsize
    if n <= lanes:
        return None
    best = min(_VECTOR, key=lambda count: _time(n, lanes, count))
    return best if _time(n, lanes, best) < _LEAST_GAIN * _time(n, lanes, _USUAL) else None


def _time(n: int, lanes: int, count: int) -> float:
    """The time of a row in a loop of ``count`` vectors at a time."""
    step = lanes * count
    whole, rest = n // step, n % step
    halves, elements = divmod(rest, lanes // 2) if step >= _LEAST_STEP else (0, rest)
    entered = _HALF_VECTORS if whole and halves else 0.0
    return whole * count * _VECTOR[count] + entered + (halves * _HALF_BY_LANES + elements * _ELEMENT_BY_LANES) / lanes
