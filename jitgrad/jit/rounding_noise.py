"""Random numbers for disturbances, and what they look at in the elements that they change."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_WORD = (1 << 64) - 1
BLOCK = 1 << 14  # elements moved at a time


@cache
def random_noise(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Random numbers between -1 and 1, drawn once: runs read them from different places."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, 4 * BLOCK).astype(dtype)


@cache
def random_factors(dtype: np.dtype[Any], roundings: float) -> np.ndarray[Any, Any]:
    """Random numbers up to ``roundings`` away from 1."""
    return np.asarray(1 + random_noise(dtype) * dtype.type(roundings * np.finfo(dtype).eps / 2), dtype)


@cache
def limits(dtype: np.dtype[Any]) -> tuple[float, float, Any]:
    """Half of the distance from 1 to the next number, the least normal number, and the least of all."""
    info = np.finfo(dtype)
    return float(info.eps) / 2, float(info.tiny), info.smallest_subnormal


def mixed(state: int) -> int:
    """The random number, and state, after ``state``: many times faster than NumPy's for single ones.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
    """
    z = (state + 0x9E37_79B9_7F4A_7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _WORD
    return z ^ (z >> 31)


def has_subnormals(flat: np.ndarray[Any, Any]) -> bool:
    return bool(np.any((np.abs(flat) < np.finfo(flat.dtype).tiny) & (flat != 0)))


def is_short(flat: np.ndarray[Any, Any]) -> Any:
    """Whether the lower half of each mantissa is 0, as that of integers and simple fractions is."""
    dtype, low = _lower_half(flat.dtype)
    return (np.ascontiguousarray(flat).view(dtype) & low) == 0


@cache
def _lower_half(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], Any]:
    """The integers of the size of a float, and one that has the bits of the lower half of its mantissa."""
    bits = dtype.itemsize * 8
    whole = np.dtype(f"u{bits // 8}")
    return whole, whole.type({16: 0x1F, 32: 0xFFF, 64: 0x3FFFFFF}[bits])
