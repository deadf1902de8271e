"""Ops along an axis: running sums, positions of extrema; and binary searches.

A sum takes the elements of its line in order, in one thread, so results have the host's bits. Where lines are few and long, a
block shares one: each thread adds up a part, then goes through it again with the sum of the parts before; sums of floats are
kept in float64 there, and do not have the host's bits. An extremum is searched for by one thread, a warp or a block: of equal
elements the first is found in any case. Neighbouring threads have neighbouring columns. Few lines of millions of elements are
left to the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.cuda.schedule import WARP
from jitgrad.backends.cuda_target.device_call import CALL_THREADS, CallWriter, DeviceCall
from jitgrad.core.aval import Aval, dtype_name, real_dtype_of
from jitgrad.core.monoid import sum_dtype
from jitgrad.core.op import OpDef
from jitgrad.ops.reduce import ARGMAX, ARGMIN, CUMULATIVE_SUM
from jitgrad.ops.sorting import SEARCHSORTED

_DTYPES = frozenset({"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"})
_SEARCHED = frozenset({"f32", "f64", "i32", "i64"})
_ENOUGH_LINES = 1024
_SHORT = 1024  # elements for one thread that the device takes in any case
_SHARED = 1 << 22  # elements for one block that the device takes in any case
_OCCUPYING = 1 << 13  # lines, a thread for each of which occupies a GPU; with fewer, each has a warp


def find_lines(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> DeviceCall | None:
    """How a kernel computes ``op``; None for other ops, dtypes, and few long lines."""
    if op not in (ARGMAX, ARGMIN, CUMULATIVE_SUM, SEARCHSORTED) or not all(x.size for x in avals):
        return None
    pairs = avals[0].dtype.kind == "c" and op is CUMULATIVE_SUM  # which are columns side by side
    element = real_dtype_of(avals[0].dtype) if pairs else avals[0].dtype
    dtype = dtype_name(element)
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
    width *= 1 + pairs
    lines = avals[0].size // length * (1 + pairs)
    by_warps = op is not CUMULATIVE_SUM and length >= WARP and (width == 1 or lines < _OCCUPYING)
    team = WARP if by_warps else 1
    if lines < _ENOUGH_LINES and length > _SHORT * team:
        team = CALL_THREADS
        if length > _SHARED:
            return None
    held = dtype_name(sum_dtype(element))
    if op is CUMULATIVE_SUM:
        first, step = ((length - 1) * width, -width) if attrs["reverse"] else (0, width)
        write = _running_sum if team == 1 else _shared_sum
        return DeviceCall(write(dtype, held), (0,), (length, width, first, step), lines * team)
    source = _position(dtype, held, ">" if op is ARGMAX else "<", team)
    return DeviceCall(source, (0,), (length, width), lines * team)


@lru_cache
def _running_sum(dtype: str, total: str) -> Source:
    writer = CallWriter({"y0": total, "x0": dtype}, ["length", "width", "first", "step"])
    with writer as out:
        out.line("j = t // width * width * length + t % width + first")
        out.line(f"total = {_number('x0[j]', dtype, total)}")
        out.line(f"y0[j] = {_stored('total', total)}")
        with out.block("for k in range(1, length):"):
            out.line("j = j + step")
            added = f"total + {_number('x0[j]', dtype, total)}"
            out.line(f"total = to_f16({added})" if total == "f16" else f"total = {added}")
            out.line(f"y0[j] = {_stored('total', total)}")
    return writer.source()


@lru_cache
def _shared_sum(dtype: str, total: str) -> Source:
    """A block for each line, of which each thread has a part."""
    wide = "f64" if total[0] == "f" else total
    writer = CallWriter({"y0": total, "x0": dtype}, ["length", "width", "first", "step"])
    with writer as out:
        out.line(f"parts = shared_{wide}({CALL_THREADS})")
        out.line("j = block() // width * width * length + block() % width + first")
        out.line(f"size = (length + {CALL_THREADS - 1}) // {CALL_THREADS}")
        out.line("start = thread() * size")
        out.line("stop = min(start + size, length)")
        out.line(f"part = to_{wide}(0)")
        element = f"to_{wide}({_number('x0[j + k * step]', dtype, total)})"
        with out.block("for k in range(start, stop):"):
            out.line(f"part = part + {element}")
        out.line("parts[thread()] = part")
        out.line("barrier()")
        out.line(f"running = to_{wide}(0)")
        with out.block("for k in range(thread()):"):
            out.line("running = running + parts[k]")
        with out.block("for k in range(start, stop):"):
            out.line(f"running = running + {element}")
            out.line(f"y0[j + k * step] = {_stored(f'to_{total}(running)', total)}")
    return writer.source()


def _number(text: str, dtype: str, held: str) -> str:
    """The element ``text`` of ``dtype`` as the kernel computes with it."""
    return f"as_half({text})" if dtype == "f16" else f"to_{held}({text})"


def _stored(text: str, dtype: str) -> str:
    return f"as_bits({text})" if dtype == "f16" else text


@lru_cache
def _position(dtype: str, held: str, better: str, team: int) -> Source:
    """The first of equal extrema; a NaN is better than every number."""
    writer = CallWriter({"y0": "i64", "x0": dtype}, ["length", "width"])
    with writer as out:
        out.line(f"line = t // {team}")
        out.line(f"where = t % {team}")
        out.line("j = line // width * width * length + line % width")
        out.line(f"best = {_number('x0[j + where * width]', dtype, held)}")
        with out.block(f"for k in range(where + {team}, length, {team}):"):
            out.line(f"x = {_number('x0[j + k * width]', dtype, held)}")
            out.line(f"wins = x {better} best or (x != x and best == best)")
            out.line("best = select(wins, x, best)")
            out.line("where = select(wins, k, where)")
        distance = min(team, WARP) // 2
        while distance:
            out.line(f"x = shuffle_xor(best, {distance})")
            out.line(f"k = shuffle_xor(where, {distance})")
            _better_of_two(out, better)
            distance //= 2
        if team > WARP:
            _best_of_warps(out, better, "f32" if held == "f16" else held)
        with out.block(f"if t % {team} == 0:"):
            out.line("y0[line] = where")
    return writer.source()


def _best_of_warps(out: Emitter, better: str, held: str) -> None:
    """Give the block's first thread the best of what its warps found."""
    warps = CALL_THREADS // WARP
    out.line(f"found = shared_{held}({warps})")
    out.line(f"places = shared_i64({warps})")
    with out.block(f"if thread() % {WARP} == 0:"):
        out.line(f"found[thread() // {WARP}] = best")
        out.line(f"places[thread() // {WARP}] = where")
    out.line("barrier()")
    with out.block("if thread() == 0:"), out.block(f"for n in range(1, {warps}):"):
        out.line("x = found[n]")
        out.line("k = places[n]")
        _better_of_two(out, better)


def _better_of_two(out: Emitter, better: str) -> None:
    """Take the better of ``best`` and another ``x`` at ``k``, of equals the first."""
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
