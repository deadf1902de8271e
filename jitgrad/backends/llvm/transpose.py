"""Turning rows into columns, for kernel source: transposes of blocks held in vector registers.

====================================  =================================================================================
``transpose_rows_in(tile, p, s, n, m)``    ``tile[j * LANES + k] = p[k * s + j]`` for ``j < n`` and every lane ``k``; lanes
                                       from ``m`` on repeat row ``m - 1``
``transpose_rows_out(p, tile, s, n, m)``    ``p[k * s + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``
``transpose_tile(tile, p, s, n, m)``  ``tile[k * LANES + j] = p[j * s + k]`` for ``j < n`` and ``k < m``
====================================  =================================================================================

Elements of rows that become lanes have two, four or eight bytes; ``tile`` has room for ``SHORT_ROW`` rows of lanes, or for LANES
rows. A square block of W x W elements is transposed in log2(W) rounds of interleaving register i with register i + W / 2
(the perfect-shuffle transpose; Stone, "Parallel processing with the perfect shuffle", IEEE Trans. Computers 1971). The
last blocks end where the rows and columns do, over elements of the blocks before: that takes no masks, which are microcode
on some CPUs. Import this module only when a kernel is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.casts import as_index
from jitgrad.backends.llvm.ir_builder import counted, word
from jitgrad.backends.llvm.tile_sizes import LANES, LEAST_BYTES
from jitgrad.backends.llvm.types import DialectFunction, DialectTypeError, ScalarType, TypedValue, element

_I32 = ir.IntType(32)
# Of a row of a block: an AVX register, or half of one. What is shorter goes element by element.
_BLOCK_BYTES = (32, 16)


def _widths(kind: ScalarType) -> list[int]:
    """Elements per row of the blocks that numbers of ``kind`` are transposed in, the widest first."""
    return [size * 8 // kind.bits for size in _BLOCK_BYTES] if kind.bits >= 8 * LEAST_BYTES else []


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
    """``width`` neighbouring numbers of ``kind``."""

    def __init__(self, builder: Any, kind: ScalarType, width: int) -> None:
        self.builder, self.width = builder, width
        self.kind = kind.llvm if width == 1 else ir.VectorType(kind.llvm, width)
        self.align = kind.bits // 8

    def at(self, pointer: Any, row: Any, stride: Any, column: Any) -> Any:
        """Where element ``row * stride + column`` lies."""
        place = self.builder.gep(pointer, [self.builder.add(self.builder.mul(row, stride), column)])
        return self.builder.bitcast(place, self.kind.as_pointer())

    def load(self, place: Any) -> Any:
        return self.builder.load(place, align=self.align)

    def store(self, x: Any, place: Any) -> None:
        self.builder.store(x, place, align=self.align)

    def rows(self, first: Any, count: Any = None) -> list[Any]:
        """The numbers of the block's rows, from ``first`` on; of ``count`` rows, the last is repeated."""
        found = [self.builder.add(first, word(i)) for i in range(self.width)]
        if count is None:
            return found
        last = self.builder.sub(count, word(1))
        return [_minimum(self.builder, row, last) for row in found]

    def move(self, places: list[Any], to: list[Any]) -> None:
        """Load the rows of a square block from ``places`` and store its columns at ``to``."""
        rows = [self.load(place) for place in places]
        for x, place in zip(rows if self.width == 1 else _transposed(self.builder, rows), to, strict=True):
            self.store(x, place)


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


_Body = Callable[[_Block, Any, Any], None]


def _in_blocks(builder: Any, kind: ScalarType, sizes: tuple[Any, Any], widths: Sequence[int], body: _Body) -> None:
    """``body(block, j, k)`` for square blocks from ``(j, k)`` on that cover ``sizes``, those of one ``k`` in a row.

    They are as wide as the widest of ``widths`` that fits into both sizes; single elements if none does.
    """
    n, m = sizes

    def cover(width: int) -> None:
        size = word(width)
        with counted(builder, 0, m, size) as k:
            last_k = _minimum(builder, k, builder.sub(m, size))
            with counted(builder, 0, n, size) as j:
                body(_Block(builder, kind, width), _minimum(builder, j, builder.sub(n, size)), last_k)

    if not widths:
        cover(1)
        return
    fits = [builder.icmp_signed(">=", size, word(widths[0])) for size in sizes]
    with builder.if_else(builder.and_(*fits)) as (wide, other):
        with wide:
            cover(widths[0])
        with other:
            _in_blocks(builder, kind, sizes, widths[1:], body)


_LANES = word(LANES)
_Sizes = Callable[[Any, Any], tuple[Any, Any]]
_From = Callable[[_Block, Any, Any, Any, Any, Any], list[Any]]
_To = Callable[[_Block, Any, Any, Any, Any], list[Any]]


def _turning(doc: str, sizes: _Sizes, rows: _From, columns: _To) -> DialectFunction:
    """The function ``(to, source, stride, n, m)`` that moves the elements of ``sizes(n, m)``, block by block.

    Args:
        rows: ``(block, source, stride, m, j, k)`` to the places of the rows of the block from ``(j, k)`` on.
        columns: ``(block, to, stride, j, k)`` to the places for its columns.
    """

    def turning(builder: Any, to: TypedValue, source: TypedValue, *sizes_given: TypedValue) -> None:
        kind = element(to)
        if element(source) != kind:
            raise DialectTypeError(f"takes two pointers to the same dtype, found {to.kind} and {source.kind}")
        stride, n, m = (as_index(builder, size) for size in sizes_given)

        def body(block: _Block, j: Any, k: Any) -> None:
            block.move(rows(block, source.ir, stride, m, j, k), columns(block, to.ir, stride, j, k))

        _in_blocks(builder, kind, sizes(n, m), _widths(kind), body)

    turning.__doc__ = doc
    return turning


transpose_rows_in = _turning(
    "``tile[j * LANES + k] = p[min(k, m - 1) * stride + j]`` for ``j < n``.",
    lambda n, m: (n, _LANES),
    lambda block, p, stride, m, j, k: [block.at(p, row, stride, j) for row in block.rows(k, m)],
    lambda block, tile, stride, j, k: [block.at(tile, row, _LANES, k) for row in block.rows(j)],
)
transpose_rows_out = _turning(
    "``p[k * stride + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``.",
    lambda n, m: (n, m),
    lambda block, tile, stride, m, j, k: [block.at(tile, row, _LANES, k) for row in block.rows(j)],
    lambda block, p, stride, j, k: [block.at(p, row, stride, j) for row in block.rows(k)],
)
transpose_tile = _turning(
    "``tile[k * LANES + j] = p[j * stride + k]`` for ``j < n`` and ``k < m``.",
    lambda n, m: (m, n),  # all of a column first: it shares lines of the cache
    lambda block, p, stride, m, k, j: [block.at(p, row, stride, k) for row in block.rows(j)],
    lambda block, tile, stride, k, j: [block.at(tile, row, _LANES, j) for row in block.rows(k)],
)

TRANSPOSES: dict[str, DialectFunction] = {
    "transpose_rows_in": transpose_rows_in,
    "transpose_rows_out": transpose_rows_out,
    "transpose_tile": transpose_tile,
}
