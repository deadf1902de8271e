"""Selection between arrays without a branch for each element."""

from __future__ import annotations

from typing import Any

import numpy as np

MANY_ELEMENTS = 1024  # with fewer elements, a call costs more than the branches
AT_ONCE = 1 << 14  # elements of which differences are made at a time
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def select_by_mask(condition: Any, yes: Any, no: Any) -> Any:
    """``numpy.where(condition, yes, no)`` for a boolean condition, with the same bits.

    NumPy's loop branches for every element. An unpredictable branch takes 6 ns, arithmetic of bits 0.6 to 1.3 ns.
    """
    if np.size(condition) < MANY_ELEMENTS or not all(isinstance(x, (np.ndarray, np.generic, int, float)) for x in (yes, no)):
        return np.where(condition, yes, no)
    dtype = np.result_type(yes, no)
    word = _WORDS.get(dtype.itemsize)
    if word is None or condition.dtype != np.bool_:
        return np.where(condition, yes, no)
    a, b = (np.asarray(x, dtype).view(word) for x in (yes, no))
    if condition.size > AT_ONCE and all(x.ndim == 0 or _is_flat(x, condition.shape) for x in (condition, a, b)):
        return _by_blocks(condition, a, b).view(dtype)
    chosen, difference = condition.astype(word), a ^ b
    fits = np.ndim(difference) == 0 or difference.shape == condition.shape
    chosen = np.multiply(chosen, difference, out=chosen if fits else None)  # the difference, or no bits
    return np.bitwise_xor(chosen, b, out=chosen).view(dtype)


def _is_flat(x: Any, shape: tuple[int, ...]) -> bool:
    return bool(x.shape == shape and x.flags.c_contiguous)


def _by_blocks(condition: Any, a: Any, b: Any) -> Any:
    """The words of ``a`` or ``b``, block by block: differences stay in the cache."""
    out = np.empty(condition.shape, a.dtype)
    parts = [x if x.ndim == 0 else x.reshape(-1) for x in (condition, a, b, out)]
    for start in range(0, condition.size, AT_ONCE):
        chosen, x, y, to = (part if part.ndim == 0 else part[start : start + AT_ONCE] for part in parts)
        np.bitwise_xor(x, y, out=to)
        np.multiply(to, chosen.astype(a.dtype), out=to)
        np.bitwise_xor(to, y, out=to)
    return out
