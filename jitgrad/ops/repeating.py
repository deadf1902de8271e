"""Elements repeated as often as an array says: the length depends on values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.comparison import less
from jitgrad.ops.indexing import as_constant, take
from jitgrad.ops.movement import SUM
from jitgrad.ops.operand import Operand, apply, contents_of
from jitgrad.ops.positions import REPEATED_POSITIONS, length_in_call


def repeated_by_counts(x: Operand, repeats: Any, axis: int, length: int, output_size: int | None) -> Tensor:
    """The ``length`` slices of ``x`` along ``axis``, each as often as ``repeats`` says.

    A trace takes the sum of ``repeats`` from the call that it is made for, and is right for calls with that sum.
    """
    dtype, shape = repeats.dtype, np.shape(repeats)
    if dtype.kind not in "iu" or shape != (length,):
        raise ArgumentError(f"repeat: repeats must be one count or {length} counts, got {shown(repeats)}")
    total = length_in_call(repeats, "repeat", partial(apply, SUM, repeats, axis=(0,)))
    counts = contents_of(repeats, "repeat") if total is None else None
    if bool(less(repeats, 0).any()) if counts is None else (counts < 0).any():
        raise ArgumentError(f"repeat: repeats must be one count or {length} counts, got {shown(repeats)}")
    total = int(counts.sum()) if counts is not None else total
    if output_size not in (None, total):
        raise ArgumentError(f"repeat: output_size={output_size}, but repeats={shown(repeats)} give {total}")
    if counts is None:
        return take(x, apply(REPEATED_POSITIONS, repeats, total=total), axis)
    return take(x, as_constant(np.repeat(np.arange(length), counts)), axis)
