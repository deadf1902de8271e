"""Ops along an axis that one thread computes per line: running sums, positions of extrema; and binary searches.

A line takes its elements in order, so results have the host's bits. Neighbouring threads have neighbouring columns. Where
there are fewer lines than a multiprocessor has threads, long ones are left to the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda_target.device_call import CallWriter, DeviceCall
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.ops.reduce import ARGMAX, ARGMIN, CUMULATIVE_SUM
from jitgrad.ops.sorting import SEARCHSORTED

_DTYPES = frozenset({"f32", "f64", "i32", "i64"})
_ENOUGH_LINES = 1024
_SHORT = 1024  # elements of a line that the device takes in any case


def find_lines(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> DeviceCall | None:
    """How a kernel computes ``op``; None for other ops, dtypes, and few long lines."""
    if op not in (ARGMAX, ARGMIN, CUMULATIVE_SUM, SEARCHSORTED) or not all(x.size for x in avals):
        return None
    dtype = dtype_name(avals[0].dtype)
    if dtype not in _DTYPES or any(x.dtype != avals[0].dtype for x in avals):
        return None
    if op is SEARCHSORTED:
        ordered, values = avals
        steps = ordered.size.bit_length()
        return DeviceCall(_search(dtype, attrs["side"]), (0, 1), (ordered.size, steps), values.size)
    shape, axis = avals[0].shape, attrs["axis"]
    length, width = (avals[0].size, 1) if axis is None else (shape[axis], prod(shape[axis + 1 :]))
    lines = avals[0].size // length
    if lines < _ENOUGH_LINES and length > _SHORT:
        return None
    if op is CUMULATIVE_SUM:
        total = "i64" if dtype[0] == "i" else dtype
        first, step = ((length - 1) * width, -width) if attrs["reverse"] else (0, width)
        return DeviceCall(_running_sum(dtype, total), (0,), (length, width, first, step), lines)
    return DeviceCall(_position(dtype, ">" if op is ARGMAX else "<"), (0,), (length, width), lines)


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
def _position(dtype: str, better: str) -> Source:
    """The first of equal extrema; a NaN is better than every number."""
    writer = CallWriter({"y0": "i64", "x0": dtype}, ["length", "width"])
    with writer as out:
        out.line("j = t // width * width * length + t % width")
        out.line("best = x0[j]")
        out.line("where = to_i64(0)")
        with out.block("for k in range(1, length):"):
            out.line("x = x0[j + k * width]")
            out.line(f"wins = x {better} best or (x != x and best == best)")
            out.line("best = select(wins, x, best)")
            out.line("where = select(wins, k, where)")
        out.line("y0[t] = where")
    return writer.source()


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
