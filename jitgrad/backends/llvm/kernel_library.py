"""Integer operations with NumPy's meaning, written for scalars: branch-free, and safe where machine
division traps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.ops.philox import philox_bits


def floor_divide_int(x: Any, y: Any) -> Any:
    """``x // y`` rounded down; 0 for y == 0, and min // -1 wraps to min, as in NumPy."""
    if y == 0:
        return x - x
    if y < 0 and y + 1 == 0:
        return x * y
    return x // y


def remainder_int(x: Any, y: Any) -> Any:
    """``x % y`` with the sign of ``y``; 0 for y == 0, as in NumPy."""
    if y == 0 or (y < 0 and y + 1 == 0):
        return x - x
    return x % y


def fmod_int(x: Any, y: Any) -> Any:
    """The remainder with the sign of ``x``; 0 for y == 0, as in NumPy."""
    if y == 0 or (y < 0 and y + 1 == 0):
        return x - x
    r = x % y
    if r != 0 and (r < 0) != (x < 0):
        return r - y
    return r


def left_shift_int(x: Any, y: Any) -> Any:
    """``x << y``; 0 once every bit is out, as in NumPy."""
    if y < 0 or y >= 64:
        return x - x
    return x << y


def right_shift_int(x: Any, y: Any) -> Any:
    """``x >> y``; 0, or -1 for negative ``x``, once every bit is out, as in NumPy."""
    if y < 0 or y >= 64:
        return ((x >> 31) >> 32) >> 1
    return x >> y


INTEGER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor_divide_int": floor_divide_int,
    "remainder_int": remainder_int,
    "fmod_int": fmod_int,
    "left_shift_int": left_shift_int,
    "right_shift_int": right_shift_int,
    "philox_bits_u64": philox_bits,
}
