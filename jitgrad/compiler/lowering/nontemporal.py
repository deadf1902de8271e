"""Which results a kernel writes past the caches: large ones that nothing reads again before the program ends.

A store into memory that is in no cache reads the line first. A streaming store does not (`jitgrad.backends.llvm.nontemporal`): a
kernel that reads three arrays and writes two moves five, not seven. What comes next finds nothing of it in a cache, though.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from jitgrad.compiler.lowering.kernel_ir import Load, Store, Sweep
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.eager.buffer_pool import ALIGNMENT

# Measured with AVX-512 (Sapphire Rapids), reading three arrays and writing two: with 5 MB in all streaming takes 0.9 of
# the time, with 10 MB 0.8 to 1, from 20 MB on 0.55 to 0.75. A copy of 2 MB takes 1.6 times as long.
LEAST_BYTES = 16 << 20  # that a kernel reads and writes
LEAST_RESULT = 1 << 16  # bytes; the pool lays results from 4 kB on at the start of a line
LONGEST_ROW = 1 << 16  # bytes: what sweeps keep for each other of longer rows should lie in a result's memory, not beside it


def nontemporal_results(frame: LoopNest, unread: Collection[int]) -> frozenset[int]:
    """Ids of the results that the kernel of ``frame`` may stream; nothing reads ``unread`` after it.

    Each line is written as a whole: rows start at lines, and their elements lie side by side.
    """
    if frame.has_short_rows() or frame.vectorize_rows or frame.turned or frame.bytes_moved() < LEAST_BYTES:
        return frozenset()
    found = set[int]()
    for window in frame.windows.values():
        if not window.written or id(window.value) not in unread or id(window.value) in frame.in_place:
            continue
        place, item = window.location, window.value.aval.dtype.itemsize
        assert place is not None
        if place.buffer.role != "temporary" or place.offset % ALIGNMENT or place.buffer.nbytes < LEAST_RESULT:
            continue
        *outside, last = [window.strides[axis] * item for axis in (*frame.outer_axes, *frame.inner_axes)] or [0]
        short = not frame.outer_sizes or prod(frame.inner_sizes) * item <= LONGEST_ROW
        if short and last == item and not any(step == 0 or step % ALIGNMENT for step in outside):
            found.add(id(window.value))
    return frozenset(found)


def streaming(sweeps: Collection[Sweep], names: Collection[str]) -> tuple[Sweep, ...]:
    """``sweeps`` with the stores into the buffers ``names`` streamed, but for those that they read again."""
    gone = set(names) - {s.access.name for sweep in sweeps for s in sweep.body if isinstance(s, Load)}
    return tuple(
        replace(sweep, body=tuple(
            replace(s, streamed=True) if isinstance(s, Store) and s.access.name in gone else s for s in sweep.body
        ))
        for sweep in sweeps
    )  # fmt: skip
