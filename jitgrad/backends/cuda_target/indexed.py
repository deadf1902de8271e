"""Reading, writing and adding at indices.

A read has a thread for each element of the result. A change has one for each column and part of the rows, which goes
through all indices in their order and takes those that lie in its part. So no element is changed by two threads, and
the order of the changes of one element is that of the indices, in every run: the same bits as on the host. Complex numbers
are pairs of columns where they are added, or have 16 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.cuda_target.device_call import UNSIGNED, CallWriter, DeviceCall
from jitgrad.core.aval import Aval, dtype_name, real_dtype_of
from jitgrad.core.op import OpDef
from jitgrad.device.faults import OUT_OF_BOUNDS
from jitgrad.ops.labels import CHECK_CLASSES
from jitgrad.ops.scattering import SCATTER_EXTREME
from jitgrad.runtime.library.indexed_access import AccessMode, IndexSpace, SpaceOf, for_each
from jitgrad.runtime.library.indexed_steps import ACCESSES

_ENOUGH_THREADS = 1 << 15  # for a change: more would read the same indices without work of their own
_ADDED = frozenset({"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
_INDICES = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32"})


def _itself(x: Any, attrs: Mapping[str, Any], indices: Sequence[Aval]) -> IndexSpace:
    """Every index reads itself: only its bounds matter."""
    return IndexSpace(1, (attrs["count"],), prod(x), 1)


_ACCESSES: Mapping[OpDef, tuple[AccessMode, SpaceOf, int]] = {
    **ACCESSES,
    CHECK_CLASSES: (AccessMode.READ, _itself, 0),
    SCATTER_EXTREME: (AccessMode.WRITE, for_each, 2),
}


def find_access(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> DeviceCall | None:
    """How a kernel computes ``op`` for such operands, all of them contiguous; None if none does."""
    if op not in _ACCESSES:
        return None
    mode, space_of, values = _ACCESSES[op]
    own = op is CHECK_CLASSES
    numbers = (0,) if own else tuple(k for k in range(1, len(avals)) if k != values)
    indices = [avals[k] for k in numbers]
    space = space_of(avals[0].shape, attrs, indices)
    x = avals[values]
    if space is None or not x.size or x.dtype != avals[0].dtype:
        return None
    same = all(i.shape == indices[0].shape and i.size for i in indices)
    if not same or any(dtype_name(i.dtype) not in _INDICES for i in indices):
        return None
    pairs = x.dtype.kind == "c" and (mode is AccessMode.ADD or x.dtype.itemsize not in UNSIGNED)
    element = real_dtype_of(x.dtype) if pairs else x.dtype
    better = (">" if attrs["largest"] else "<") if op is SCATTER_EXTREME else ""
    computes = mode is AccessMode.ADD or bool(better)
    dtype = dtype_name(element) if computes else UNSIGNED[element.itemsize]
    if computes and dtype not in _ADDED:
        return None
    width = space.width * (1 + pairs)
    columns = space.outer * width
    if mode is AccessMode.READ:
        parts, iterations = 1, columns * space.count
    else:
        parts = max(1, min(prod(space.lengths), _ENOUGH_THREADS // columns))
        iterations = columns * parts
    kinds = tuple(dtype_name(i.dtype) for i in indices)
    source = _source(mode, own, _Reads(space.per_outer, space.per_element, pairs), dtype, kinds, better)
    words = (*space.lengths, space.count, width, parts)
    changes = mode is not AccessMode.READ
    return DeviceCall(source, (values, *numbers), words, iterations, changes, OUT_OF_BOUNDS)


class _Reads(NamedTuple):
    """How often an index is read: for each part of the array, for each column, which may be those of a ``pair``."""

    per_outer: bool
    per_element: bool
    pairs: bool


@lru_cache(maxsize=256)
def _source(mode: AccessMode, own: bool, reads: _Reads, dtype: str, kinds: tuple[str, ...], better: str) -> Source:
    """The text for indices of the dtypes ``kinds``; ``own``: the indices themselves are read.

    ``better``: of the old element and the new one, the one that is so stays; "" where the old one does not matter.
    """
    arrays, lengths = [f"a{n}" for n in range(len(kinds))], [f"n{n}" for n in range(len(kinds))]
    pointers = {"y0": dtype, "x0": dtype, **dict(zip(arrays, kinds, strict=True))}
    writer = CallWriter(pointers, [*lengths, "count", "width", "parts"], checks_values=True)
    with writer as out:
        if mode is AccessMode.READ:
            _read(out, own, reads, len(kinds))
        else:
            _change(out, _changed(mode, dtype, better), reads, len(kinds))
    return writer.source()


def _place(out: Emitter, count: int, reads: _Reads) -> None:
    """Set ``inside``, and ``place`` from the indices at row ``k`` and column ``c`` of the part ``o``."""
    at = "(o * count + k) * width + c" if reads.per_element else "o * count + k" if reads.per_outer else "k"
    if reads.per_element and reads.pairs:
        at = f"({at}) // 2"
    for n in range(count):
        out.line(f"g{n} = to_i64(a{n}[{at}])")
        out.line(f"i{n} = g{n} + n{n} * to_i64(g{n} < 0)")
    out.line("inside = " + " and ".join(f"i{n} >= 0 and i{n} < n{n}" for n in range(count)))
    place = "i0"
    for n in range(1, count):
        place = f"({place}) * n{n} + i{n}"
    out.line(f"place = {place}")


def _read(out: Emitter, own: bool, reads: _Reads, count: int) -> None:
    out.line("c = t % width")
    out.line("k = (t // width) % count")
    out.line("o = t // (width * count)")
    if own:  # a class is not counted from the end
        out.line("place = to_i64(a0[t])")
        out.line("inside = place >= 0 and place < n0")
    else:
        _place(out, count, reads)
    with out.block("if inside:"):
        out.line("y0[t] = x0[t]" if own else f"y0[t] = x0[(o * {_length(count)} + place) * width + c]")
    with out.block("else:"):
        out.line("faults[thread()] = number")


def _changed(mode: AccessMode, dtype: str, better: str) -> str:
    """What an element ``old`` becomes by ``new``, both as they are in memory."""
    if better:  # a NaN is better than every number
        old, new = ("as_half(old)", "as_half(new)") if dtype == "f16" else ("old", "new")
        stays = f"{old} {better} {new} or {old} != {old}" if dtype[0] == "f" else f"{old} {better} {new}"
        return f"select({stays} or {old} == {new}, old, new)"
    if mode is AccessMode.ADD:
        return "as_bits(to_f16(as_half(old) + as_half(new)))" if dtype == "f16" else "old + new"
    return "new"


def _change(out: Emitter, changed: str, reads: _Reads, count: int) -> None:
    out.line("c = t % width")
    out.line("part = (t // width) % parts")
    out.line("o = t // (width * parts)")
    with out.block("for k in range(count):"):
        _place(out, count, reads)
        with out.block("if inside:"), out.block("if place % parts == part:"):
            out.line(f"j = (o * {_length(count)} + place) * width + c")
            if "old" in changed:
                out.line("old = y0[j]")
            out.line("new = x0[(o * count + k) * width + c]")
            out.line(f"y0[j] = {changed}")
        with out.block("else:"):
            out.line("faults[thread()] = number")


def _length(count: int) -> str:
    """The rows of one part of the array."""
    return "(" + " * ".join(f"n{n}" for n in range(count)) + ")"
