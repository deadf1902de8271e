"""Turning short rows into vector lanes and back, for kernel source: transposes of blocks held in vector registers.

==================================  ================================================================================
``rows_to_lanes(tile, p, s, n, m)``  ``tile[j * LANES + k] = p[k * s + j]`` for ``j < n`` and every lane ``k``; lanes
                                     from ``m`` on repeat row ``m - 1``
``lanes_to_rows(p, tile, s, n, m)``  ``p[k * s + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``
==================================  ================================================================================

Elements have four or eight bytes; ``tile`` has room for ``NARROW`` rows of lanes. A square block of W x W elements is
transposed in log2(W) rounds of interleaving register i with register i + W / 2 (the perfect-shuffle transpose;
Stone, "Parallel processing with the perfect shuffle", IEEE Trans. Computers 1971). The last block of a row ends where the
row does, over elements of the one before: that takes no masks, which are microcode on some CPUs. Import this module only
when a kernel is compiled: it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from jitgrad.backends.intrinsics import intrinsic
from jitgrad.compiler.kernel import LANES

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BLOCK_BYTES = (
    32,
    16,
)  # of a row of a block: an AVX register, half of one; rows shorter than that go element by element


def _widths(name: str, a: Any, b: Any) -> list[int]:
    """Elements per row of the blocks that two pointers to the same dtype are transposed in, the widest first."""
    if a != b or not isinstance(a, types.CPointer) or a.dtype.bitwidth not in (32, 64):
        raise TypingError(f"{name}({a}, {b}): takes two pointers to the same dtype of 4 or 8 bytes")
    return [size * 8 // int(a.dtype.bitwidth) for size in _BLOCK_BYTES]


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of the block whose rows are given. Each round halves how far apart a column's elements are."""
    width = len(rows)
    low = [x for k in range(width // 2) for x in (k, width + k)]
    high = [x + width // 2 for x in low]
    masks = [ir.Constant(ir.VectorType(_I32, width), order) for order in (low, high)]
    for _ in range(width.bit_length() - 1):
        pairs = zip(rows[: width // 2], rows[width // 2 :], strict=True)
        rows = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return rows


class _Block:
    """Reads and writes ``width`` neighbouring elements of ``tile`` and of the rows at ``p``; ``width`` 1: numbers."""

    def __init__(self, builder: Any, element: Any, width: int, tile: Any, p: Any, stride: Any) -> None:
        self.builder, self.width, self.tile, self.p, self.stride = builder, width, tile, p, stride
        self.kind = element if width == 1 else ir.VectorType(element, width)
        self.align = (
            element.width if isinstance(element, ir.IntType) else {"float": 32, "double": 64}[str(element)]
        ) // 8

    def in_tile(self, column: Any, i: int, lane: Any) -> Any:
        first = self.builder.mul(self.builder.add(column, _number(i)), _number(LANES))
        return self._place(self.tile, first, lane)

    def in_row(self, row: Any, column: Any) -> Any:
        return self._place(self.p, self.builder.mul(row, self.stride), column)

    def _place(self, pointer: Any, first: Any, more: Any) -> Any:
        place = self.builder.gep(pointer, [self.builder.add(first, more)])
        return self.builder.bitcast(place, self.kind.as_pointer())

    def load(self, place: Any) -> Any:
        return self.builder.load(place, align=self.align)

    def store(self, x: Any, place: Any) -> None:
        self.builder.store(x, place, align=self.align)

    def transposed(self, rows: list[Any]) -> list[Any]:
        return rows if self.width == 1 else _transposed(self.builder, rows)


def _number(value: int) -> Any:
    return ir.Constant(_I64, value)


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


def _in_blocks(builder: Any, n: Any, m: Any, widths: Sequence[int], body: Callable[[int, Any, Any], None]) -> None:
    """``body(W, j, k)`` for blocks from column ``j`` and lane ``k`` on that cover ``n`` columns of ``m`` lanes.

    W is the widest of ``widths``, or else 1, that is no more than ``n``.
    """

    def cover(width: int) -> None:
        with cgutils.for_range_slice(builder, _number(0), n, _number(width), _I64) as (j, _):
            first = _minimum(builder, j, builder.sub(n, _number(width)))
            with cgutils.for_range_slice(builder, _number(0), m, _number(width), _I64) as (k, _):
                body(width, first, k)

    if not widths:
        cover(1)
        return
    with builder.if_else(builder.icmp_signed(">=", n, _number(widths[0]))) as (wide, other):
        with wide:
            cover(widths[0])
        with other:
            _in_blocks(builder, n, m, widths[1:], body)


@intrinsic
def rows_to_lanes(typing: Any, tile: Any, p: Any, stride: Any, n: Any, m: Any) -> Any:
    """``tile[j * LANES + k] = p[min(k, m - 1) * stride + j]`` for ``j < n``."""
    widths = _widths("rows_to_lanes", tile, p)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile, p, stride, n, m = args
        element = context.get_value_type(signature.args[0].dtype)
        last = builder.sub(m, _number(1))

        def body(width: int, j: Any, k: Any) -> None:
            block = _Block(builder, element, width, tile, p, stride)
            lanes = [_minimum(builder, builder.add(k, _number(i)), last) for i in range(width)]
            rows = [block.load(block.in_row(row, j)) for row in lanes]
            for i, column in enumerate(block.transposed(rows)):
                block.store(column, block.in_tile(j, i, k))

        _in_blocks(builder, n, _number(LANES), widths, body)
        return context.get_dummy_value()

    return types.void(tile, p, types.int64, types.int64, types.int64), build


@intrinsic
def lanes_to_rows(typing: Any, p: Any, tile: Any, stride: Any, n: Any, m: Any) -> Any:
    """``p[k * stride + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``."""
    widths = _widths("lanes_to_rows", p, tile)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        p, tile, stride, n, m = args
        element = context.get_value_type(signature.args[0].dtype)

        def body(width: int, j: Any, k: Any) -> None:
            block = _Block(builder, element, width, tile, p, stride)
            columns = [block.load(block.in_tile(j, i, k)) for i in range(width)]
            first, *others = block.transposed(columns)
            block.store(first, block.in_row(k, j))
            for i, x in enumerate(others, 1):
                row = builder.add(k, _number(i))
                with builder.if_then(builder.icmp_signed("<", row, m), likely=True):
                    block.store(x, block.in_row(row, j))

        _in_blocks(builder, n, m, widths, body)
        return context.get_dummy_value()

    return types.void(p, tile, types.int64, types.int64, types.int64), build


NAMES: dict[str, Any] = {f._name: f for f in (rows_to_lanes, lanes_to_rows)}
