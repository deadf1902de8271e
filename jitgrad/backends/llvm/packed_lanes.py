"""Copies between rows of memory and lanes that follow each other, for kernel source.

====================================  =================================================================================
``lanes_in(tile, p, s, n, m)``        ``tile[i * n + k] = p[i * s + k]`` for ``i < m`` and ``k < n``
``lanes_out(p, tile, s, n, m)``       ``p[i * s + k] = tile[i * n + k]`` for ``i < m`` and ``k < n``
====================================  =================================================================================

Elements have two, four or eight bytes. A row is copied in vectors, the last of which overlaps the one before it and ends
at the row's end. Import this module only when a kernel is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.ir_builder import counted, word
from jitgrad.backends.llvm.transpose import moving
from jitgrad.backends.llvm.types import DialectFunction, ScalarType

_VECTOR_BYTES = (32, 16, 8)

# Of the stride and the length of rows: the steps from row to row where they go, and where they come from.
_Steps = Callable[[Any, Any], tuple[Any, Any]]


def _copying(name: str, doc: str, steps: _Steps) -> DialectFunction:
    """The function ``name(to, source, stride, n, m)`` that copies ``m`` rows of ``n`` elements."""

    def define(function: Any, type_: ScalarType) -> None:
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        to, source, stride, n, m = function.args
        widths = [size * 8 // type_.bits for size in _VECTOR_BYTES if size * 8 > type_.bits]
        _in_vectors(builder, type_, (to, source), steps(stride, n), (n, m), (*widths, 1))
        builder.ret_void()

    return moving(name, doc, define)


def _in_vectors(
    builder: Any,
    type_: ScalarType,
    pointers: tuple[Any, Any],
    steps: tuple[Any, Any],
    sizes: tuple[Any, Any],
    widths: Sequence[int],
) -> None:
    """Copy rows by vectors of the largest of ``widths`` that fits into one."""
    n, _ = sizes
    width, *narrower = widths
    if narrower:
        with builder.if_else(builder.icmp_signed(">=", n, word(width))) as (fits, other):
            with fits:
                _copy(builder, type_, pointers, steps, sizes, width)
            with other:
                _in_vectors(builder, type_, pointers, steps, sizes, narrower)
    else:
        _copy(builder, type_, pointers, steps, sizes, width)


def _copy(
    builder: Any, type_: ScalarType, pointers: tuple[Any, Any], steps: tuple[Any, Any], sizes: tuple[Any, Any], width: int
) -> None:
    vector = type_.llvm if width == 1 else ir.VectorType(type_.llvm, width)
    (n, m), align = sizes, type_.bits // 8
    end = builder.sub(n, word(width))
    with counted(builder, 0, m) as i:
        rows = [builder.gep(p, [builder.mul(i, step)]) for p, step in zip(pointers, steps, strict=True)]
        with counted(builder, 0, n, word(width)) as k:
            first = builder.select(builder.icmp_signed("<", k, end), k, end)
            to, source = (builder.bitcast(builder.gep(row, [first]), vector.as_pointer()) for row in rows)
            builder.store(builder.load(source, align=align), to, align=align)


lanes_in: DialectFunction = _copying(
    "lanes_in", "``tile[i * n + k] = p[i * stride + k]`` for ``i < m`` and ``k < n``.", lambda stride, n: (n, stride)
)
lanes_out: DialectFunction = _copying(
    "lanes_out", "``p[i * stride + k] = tile[i * n + k]`` for ``i < m`` and ``k < n``.", lambda stride, n: (stride, n)
)

PACKED_LANES: dict[str, DialectFunction] = {"lanes_in": lanes_in, "lanes_out": lanes_out}
