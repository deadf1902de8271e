"""Random numbers as functions of random bits: uniform ones, and normal ones by the method of Box and Muller."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Array, Dtype
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import blockwise, scalar_functions
from jitgrad.ops.arithmetic import add, astype, multiply, subtract
from jitgrad.ops.comparison import bitwise_and, bitwise_left_shift, bitwise_right_shift
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
)


class NumberKind(NamedTuple):
    """Numbers that ``function`` makes of ``words`` tensors of random bits."""

    words: int
    function: Callable[..., Tensor]

    def read_ahead(self, count: int) -> ReadAhead | ReadAheadOfPairs:
        """Computes draws of this kind for the next ones, too; for several words those of ``count`` elements."""
        on_arrays = partial(_on_arrays, self.function)
        return ReadAhead(on_arrays) if self.words == 1 else ReadAheadOfPairs(on_arrays, count)


def _on_arrays(function: Callable[..., Tensor], *words: Array) -> Array:
    return function(*[Tensor(word) for word in words])._data  # type: ignore[no-any-return]


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
BITS = NumberKind(1, lambda bits: bits)  # as they are
UNITS = {dtype.itemsize: NumberKind(1, partial(_unit, dtype=dtype)) for dtype in _FLOATS}
NORMALS = {dtype.itemsize: NumberKind(1 + (dtype.itemsize == 8), partial(_normal, dtype=dtype)) for dtype in _FLOATS}
