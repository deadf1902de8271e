"""Ops along an axis: running sums, positions of extrema; and binary searches.

A sum takes the elements of its line in order, in one thread, so results have the host's bits. An extremum is searched for by
one thread or by a warp: of equal elements the first is found in any case. Neighbouring threads have neighbouring columns.
Where there are few lines, long ones are left to the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.cuda.schedule import WARP
from jitgrad.backends.cuda_target.device_call import CallWriter, DeviceCall
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.core.monoid import sum_dtype
from jitgrad.core.op import OpDef
from jitgrad.ops.reduce import ARGMAX, ARGMIN, CUMULATIVE_SUM
from jitgrad.ops.sorting import SEARCHSORTED

_DTYPES = frozenset({"f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"})
_SEARCHED = frozenset({"f32", "f64", "i32", "i64"})
_ENOUGH_LINES = 1024
_SHORT = 1024  # elements for one thread that the device takes in any case
_OCCUPYING = 1 << 13  # lines, a thread for each of which occupies a GPU; with fewer, each has a warp


def find_lines(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> DeviceCall | None:
    """How a kernel computes ``op``; None for other ops, dtypes, and few long lines."""
    if op not in (ARGMAX, ARGMIN, CUMULATIVE_SUM, SEARCHSORTED) or not all(x.size for x in avals):
        return None
    dtype = dtype_name(avals[0].dtype)
    if dtype not in _DTYPES or any(x.dtype != avals[0].dtype for x in avals):
        return None
    if op is SEARCHSORTED:
        if dtype not in _SEARCHED:
            return None
        ordered, values = avals
        steps = ordered.size.bit_length()
        return DeviceCall(_search(dtype, attrs["side"]), (0, 1), (ordered.size, steps), values.size)
    shape, axis = avals[0].shape, attrs["axis"]
    length, width = (avals[0].size, 1) if axis is None else (shape[axis], prod(shape[axis + 1 :]))
    lines = avals[0].size // length
    by_warps = op is not CUMULATIVE_SUM and length >= WARP and (width == 1 or lines < _OCCUPYING)
    team = WARP if by_warps else 1
    if lines < _ENOUGH_LINES and length > _SHORT * team:
        return None
    held = dtype_name(sum_dtype(avals[0].dtype))
    if op is CUMULATIVE_SUM:
        first, step = ((length - 1) * width, -width) if attrs["reverse"] else (0, width)
        return DeviceCall(_running_sum(dtype, held), (0,), (length, width, first, step), lines)
    source = _position(dtype, held, ">" if op is ARGMAX else "<", team)
    return DeviceCall(source, (0,), (length, width), lines * team)


@lru_cache
def _running_sum(dtype: str, total: str) -> Source:
    writer = CallWriter({"y0": total, "x0": dtype}, ["length", "width", "first", "step"])
    with writer as out:
        out.line("j = t // width * width * length + t % width + first")
        out.line(f"total = to_{total}(x0[j])")
        out.line("y0[j] = total")
        with out.block("for k in range(1, length):"):
            out.line("j = j + step")
            out.line(f"total = total + to_{total}(x0[j])")
            out.line("y0[j] = total")
    return writer.source()


@lru_cache
def _position(dtype: str, held: str, better: str, team: int) -> Source:
    """The first of equal extrema; a NaN is better than every number."""
    writer = CallWriter({"y0": "i64", "x0": dtype}, ["length", "width"])
    with writer as out:
        out.line(f"line = t // {team}")
        out.line(f"where = t % {team}")
        out.line("j = line // width * width * length + line % width")
        out.line(f"best = to_{held}(x0[j + where * width])")
        with out.block(f"for k in range(where + {team}, length, {team}):"):
            out.line(f"x = to_{held}(x0[j + k * width])")
            out.line(f"wins = x {better} best or (x != x and best == best)")
            out.line("best = select(wins, x, best)")
            out.line("where = select(wins, k, where)")
        distance = team // 2
        while distance:
            _better_of_two(out, better, distance)
            distance //= 2
        with out.block(f"if t % {team} == 0:"):
            out.line("y0[line] = where")
    return writer.source()


def _better_of_two(out: Emitter, better: str, distance: int) -> None:
    """Give two threads the better of what they found, of equals the first."""
    out.line(f"x = shuffle_xor(best, {distance})")
    out.line(f"k = shuffle_xor(where, {distance})")
    out.line("same = x == best or (x != x and best != best)")
    out.line(f"wins = x {better} best or (x != x and best == best) or (same and k < where)")
    out.line("best = select(wins, x, best)")
    out.line("where = select(wins, k, where)")


@lru_cache
def _search(dtype: str, side: str) -> Source:
    """The number of elements before the value; NaN counts as largest."""
    before = "x < v" if side == "left" else "x <= v"
    nan_before = "v != v and x == x" if side == "left" else "v != v"
    writer = CallWriter({"y0": "i64", "a0": dtype, "x0": dtype}, ["count", "steps"])
    with writer as out:
        out.line("v = x0[t]")
        out.line("low = to_i64(0)")
        out.line("high = count")
        with out.block("for k in range(steps):"):
            out.line("middle = (low + high) // 2")
            out.line("x = a0[min(middle, count - 1)]")
            out.line(f"goes = low < high and ({before} or ({nan_before}))")
            out.line("stays = low < high and not goes")
            out.line("low = select(goes, middle + 1, low)")
            out.line("high = select(stays, middle, high)")
        out.line("y0[t] = low")
    return writer.source()
