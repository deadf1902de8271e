"""Copies an operand of a library call, whose elements lie apart, to memory in row-major order: one launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda_target.device_call import UNSIGNED, CallWriter, DeviceCall
from jitgrad.core.aval import Aval


def ordered_copy(aval: Aval, strides: Sequence[int]) -> DeviceCall:
    """The copy of a value with ``strides`` in elements, whose first element in memory is the kernel's operand.

    A thread writes each element; elements of 16 bytes are two.
    """
    axes = [(n, step) for n, step in zip(aval.shape, strides, strict=True) if n != 1]
    item, parts = aval.dtype.itemsize, 1
    if item not in UNSIGNED:
        item, parts = item // 2, 2
        axes = [*[(n, 2 * step) for n, step in axes], (2, 1)]
    merged: list[tuple[int, int]] = []
    for n, step in axes:
        if merged and merged[-1][1] == n * step:
            n *= merged.pop()[0]
        merged.append((n, step))
    start = sum((n - 1) * -step for n, step in merged if step < 0)
    words = (start, *[word for axis in merged for word in axis])
    return DeviceCall(_source(UNSIGNED[item], len(merged)), (0,), words, aval.size * parts)


@lru_cache(maxsize=64)
def _source(dtype: str, axes: int) -> Source:
    names = [name for k in range(axes) for name in (f"n{k}", f"s{k}")]
    writer = CallWriter({"y0": dtype, "x0": dtype}, ["start", *names])
    with writer as out:
        out.line("rest = t")
        out.line("at = start")
        for k in reversed(range(axes)):
            out.line(f"at = at + rest % n{k} * s{k}")
            out.line(f"rest = rest // n{k}")
        out.line("y0[t] = x0[at]")
    return writer.source()
