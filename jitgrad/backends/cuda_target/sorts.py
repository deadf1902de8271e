"""Positions that sort lines, all or the first of them: by ranks, or by a bitonic network in a block's shared memory.

Both order pairs of an element and its position, of which no two are equal: so equal elements keep their order, and the
result does not depend on how threads run. NaN is larger than every number, as for NumPy. Short lines, and longer ones
than a block can hold, are sorted by ranks: a thread for each element counts those that come before it. The bitonic
network is K. E. Batcher, Sorting networks and their applications (1968). The limits are estimates, not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import as_value
from jitgrad.backends.cuda_target.device_call import CALL_THREADS, UNSIGNED, CallWriter, DeviceCall
from jitgrad.core.aval import Aval, Dtype, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.eager.float16 import compute_dtype
from jitgrad.ops.sorting import ARGSORT, ARGTOPK

_SHORT = 64  # elements of a line, each of which is compared with all others
_LONGEST = 1 << 12  # that a block holds: with 8 bytes each and their positions, all of its 48 KiB
_MOST_COMPARISONS = 1 << 33  # for longer lines


def find_sorts(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> DeviceCall | None:
    """How a kernel computes ``op``; None for other ops, and for lines that are too long."""
    if op not in (ARGSORT, ARGTOPK) or not avals[0].size:
        return None
    (x,), axis = avals, attrs["axis"]
    length, width = x.shape[axis], prod(x.shape[axis + 1 :])
    count = attrs["count"] if op is ARGTOPK else length
    descending = op is ARGTOPK or attrs["descending"]
    if not count or x.dtype.kind not in "biuf":
        return None
    words = (length, width, count)
    if _SHORT < length <= _LONGEST:
        source = _network(x.dtype, descending, 1 << (length - 1).bit_length())
        return DeviceCall(source, (0,), words, x.size // length * CALL_THREADS)
    if length <= _SHORT or x.size * length <= _MOST_COMPARISONS:
        return DeviceCall(_ranks(x.dtype, descending), (0,), words, x.size)
    return None


def _in_memory(dtype: Dtype) -> str:
    """The dtype as which a kernel reads elements: bools are bytes."""
    return UNSIGNED[1] if dtype.kind == "b" else dtype_name(dtype)


def _key_dtype(dtype: Dtype) -> str:
    return UNSIGNED[1] if dtype.kind == "b" else dtype_name(compute_dtype(dtype))


def _key(text: str, dtype: Dtype) -> str:
    return text if dtype.kind == "b" else as_value(text, dtype)


def _compare(out: Emitter, dtype: Dtype, descending: bool) -> None:
    """Set ``earlier``: whether ``y`` at ``q`` comes before ``x`` at ``p``."""
    sign = ">" if descending else "<"
    if dtype.kind != "f":
        out.line(f"earlier = y {sign} x or (y == x and q < p)")
        return
    first, other = ("y", "x") if descending else ("x", "y")  # of a NaN and a number, the NaN is the larger one
    out.line("same = y == x or (y != y and x != x)")
    out.line(f"earlier = y {sign} x or ({first} != {first} and {other} == {other}) or (same and q < p)")


@lru_cache(maxsize=64)
def _ranks(dtype: Dtype, descending: bool) -> Source:
    """A thread for each element, which finds its place among the others."""
    writer = CallWriter({"y0": "i64", "x0": _in_memory(dtype)}, ["length", "width", "count"])
    with writer as out:
        out.line("c = t % width")
        out.line("p = (t // width) % length")
        out.line("o = t // (width * length)")
        out.line(f"x = {_key('x0[t]', dtype)}")
        out.line("rank = to_i64(0)")
        with out.block("for q in range(length):"):
            out.line(f"y = {_key('x0[(o * length + q) * width + c]', dtype)}")
            _compare(out, dtype, descending)
            out.line("rank = rank + to_i64(earlier)")
        with out.block("if rank < count:"):
            out.line("y0[(o * count + rank) * width + c] = p")
    return writer.source()


@lru_cache(maxsize=64)
def _network(dtype: Dtype, descending: bool, size: int) -> Source:
    """A block for each line of up to ``size`` elements, a power of two; places beyond its end are last."""
    writer = CallWriter({"y0": "i64", "x0": _in_memory(dtype)}, ["length", "width", "count"])
    with writer as out:
        out.line(f"keys = shared_{_key_dtype(dtype)}({size})")
        out.line(f"places = shared_i32({size})")
        out.line("c = block() % width")
        out.line("o = block() // width")
        with out.block(f"for k in range(thread(), {size}, {CALL_THREADS}):"):
            out.line(f"keys[k] = {_key('x0[(o * length + min(k, length - 1)) * width + c]', dtype)}")
            out.line("places[k] = to_i32(k)")
        out.line("barrier()")
        with out.block(f"for a in range({size.bit_length() - 1}):"), out.block("for b in range(a + 1):"):
            out.line("s = a - b", "elements that are compared lie 2**s apart")
            with out.block(f"for k in range(thread(), {size // 2}, {CALL_THREADS}):"):
                out.line("i = ((k >> s) << (s + 1)) + (k & ((1 << s) - 1))")
                out.line("j = i + (1 << s)")
                _exchange(out, dtype, descending)
            out.line("barrier()")
        with out.block(f"for k in range(thread(), count, {CALL_THREADS}):"):
            out.line("y0[(o * count + k) * width + c] = to_i64(places[k])")
    return writer.source()


def _exchange(out: Emitter, dtype: Dtype, descending: bool) -> None:
    """Order the elements at ``i`` and ``j``: runs of ``2 << a`` elements rise and fall in turn."""
    out.line("x = keys[i]")
    out.line("y = keys[j]")
    out.line("p = to_i64(places[i])")
    out.line("q = to_i64(places[j])")
    _compare(out, dtype, descending)
    out.line("falls = q < length and (p >= length or earlier)")
    out.line("rising = (i >> (a + 1)) % 2 == 0")
    with out.block("if (falls and rising) or (not falls and not rising):"):
        out.line("keys[i] = y")
        out.line("keys[j] = x")
        out.line("places[i] = to_i32(q)")
        out.line("places[j] = to_i32(p)")
