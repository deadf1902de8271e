"""Transposes of blocks in vector registers, for kernel source.

====================================  =================================================================================
``transpose_rows_in(tile, p, s, n, m)``    ``tile[j * LANES + k] = p[k * s + j]`` for ``j < n`` and every lane ``k``; lanes
                                       from ``m`` on repeat row ``m - 1``
``transpose_rows_out(p, tile, s, n, m)``    ``p[k * s + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``
``transpose_tile(tile, p, s, n, m)``  ``tile[k * LANES + j] = p[j * s + k]`` for ``j < n`` and ``k < m``
====================================  =================================================================================

Elements have two, four or eight bytes; ``tile`` has room for ``SHORT_ROW`` rows of lanes, or for
LANES rows. A square block of W x W elements is transposed in log2(W) rounds of interleaving
register i with register i + W / 2 (the perfect-shuffle transpose; Stone, "Parallel processing with
the perfect shuffle", IEEE Trans. Computers 1971). The last blocks overlap the blocks before them
and end at the last row and column, which needs no masks: those are microcode on some CPUs.

Each is one function of a kernel's module for each dtype, however often the kernel calls it: copies at every call were half of
LLVM's work for kernels over several arrays of short rows. Import this module only when a kernel is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.casts import as_index
from jitgrad.backends.llvm.ir_builder import WORD, counted, word
from jitgrad.backends.llvm.tile_sizes import LANES, LEAST_BYTES
from jitgrad.backends.llvm.types import DialectFunction, DialectTypeError, ScalarType, TypedValue, element

_I32 = ir.IntType(32)
# Of a row of a block: an AVX register, or half of one. Shorter rows go element by element.
_BLOCK_BYTES = (32, 16)


def _widths(type_: ScalarType) -> list[int]:
    """Elements per row of the blocks for numbers of ``type_``, the widest first."""
    return [size * 8 // type_.bits for size in _BLOCK_BYTES] if type_.bits >= 8 * LEAST_BYTES else []


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of a block. Each round halves the distance between a column's elements."""
    width = len(rows)
    low = [x for k in range(width // 2) for x in (k, width + k)]
    high = [x + width // 2 for x in low]
    masks = [ir.Constant(ir.VectorType(_I32, width), order) for order in (low, high)]
    for _ in range(width.bit_length() - 1):
        pairs = zip(rows[: width // 2], rows[width // 2 :], strict=True)
        rows = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return rows


class _Block:
    """``width`` neighbouring numbers of ``type_``."""

    def __init__(self, builder: Any, type_: ScalarType, width: int) -> None:
        self.builder, self.width = builder, width
        self.type = type_.llvm if width == 1 else ir.VectorType(type_.llvm, width)
        self.align = type_.bits // 8

    def at(self, pointer: Any, row: Any, stride: Any, column: Any) -> Any:
        """The address of element ``row * stride + column``."""
        place = self.builder.gep(pointer, [self.builder.add(self.builder.mul(row, stride), column)])
        return self.builder.bitcast(place, self.type.as_pointer())

    def load(self, place: Any) -> Any:
        return self.builder.load(place, align=self.align)

    def store(self, x: Any, place: Any) -> None:
        self.builder.store(x, place, align=self.align)

    def rows(self, first: Any, count: Any = None) -> list[Any]:
        """The indices of the block's rows, from ``first`` on, none beyond the last of ``count``."""
        rows = [self.builder.add(first, word(i)) for i in range(self.width)]
        if count is None:
            return rows
        last = self.builder.sub(count, word(1))
        return [_minimum(self.builder, row, last) for row in rows]

    def move(self, places: list[Any], to: list[Any]) -> None:
        """Load the rows of a square block from ``places`` and store its columns at ``to``."""
        rows = [self.load(place) for place in places]
        for x, place in zip(rows if self.width == 1 else _transposed(self.builder, rows), to, strict=True):
            self.store(x, place)


def _minimum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


_Body = Callable[[_Block, Any, Any], None]


def _in_blocks(builder: Any, type_: ScalarType, sizes: tuple[Any, Any], widths: Sequence[int], body: _Body) -> None:
    """``body(block, j, k)`` for square blocks from ``(j, k)`` on that cover ``sizes``; ``j`` runs
    in the inner loop.

    Blocks have the largest of ``widths`` that fits into both sizes, and one element if none does.
    """
    n, m = sizes

    def cover(width: int) -> None:
        size = word(width)
        with counted(builder, 0, m, size) as k:
            last_k = _minimum(builder, k, builder.sub(m, size))
            with counted(builder, 0, n, size) as j:
                body(_Block(builder, type_, width), _minimum(builder, j, builder.sub(n, size)), last_k)

    if not widths:
        cover(1)
        return
    fits = [builder.icmp_signed(">=", size, word(widths[0])) for size in sizes]
    with builder.if_else(builder.and_(*fits)) as (wide, other):
        with wide:
            cover(widths[0])
        with other:
            _in_blocks(builder, type_, sizes, widths[1:], body)


_LANES = word(LANES)
_Sizes = Callable[[Any, Any], tuple[Any, Any]]
_From = Callable[[_Block, Any, Any, Any, Any, Any], list[Any]]
_To = Callable[[_Block, Any, Any, Any, Any], list[Any]]


def _declared(builder: Any, name: str, type_: ScalarType) -> Any:
    """A function ``(to, source, stride, n, m)`` of the kernel's module, with the vectors of the function that calls it."""
    pointer = type_.llvm.as_pointer()
    function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [pointer, pointer, WORD, WORD, WORD]), name)
    function.linkage = "internal"
    for attribute in (*builder.function.attributes, "noinline", "nounwind"):
        set.add(function.attributes, attribute)
    for argument in function.args[:2]:
        argument.add_attribute("noalias")
    return function


def moving(name: str, doc: str, define: Callable[[Any, ScalarType], None]) -> DialectFunction:
    """The function ``name(to, source, stride, n, m)`` of a kernel's module, whose code ``define(function, dtype)`` writes;
    ``to`` and ``source`` do not overlap."""

    def call(builder: Any, to: TypedValue, source: TypedValue, *sizes_given: TypedValue) -> None:
        type_ = element(to)
        if element(source) != type_:
            raise DialectTypeError(f"takes two pointers to the same dtype, found {to.type} and {source.type}")
        function = builder.module.globals.get(f"{name}.{type_}")
        if function is None:
            function = _declared(builder, f"{name}.{type_}", type_)
            define(function, type_)
        builder.call(function, [to.ir, source.ir, *(as_index(builder, size) for size in sizes_given)])

    call.__doc__ = doc
    return call


def _transposing(name: str, doc: str, sizes: _Sizes, rows: _From, columns: _To) -> DialectFunction:
    """The function ``name(to, source, stride, n, m)`` that moves the elements of ``sizes(n, m)``, block by block.

    Args:
        rows: ``(block, source, stride, m, j, k)`` to the addresses of the rows of the block from
            ``(j, k)`` on.
        columns: ``(block, to, stride, j, k)`` to the addresses for its columns.
    """

    def define(function: Any, type_: ScalarType) -> None:
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        to, source, stride, n, m = function.args

        def body(block: _Block, j: Any, k: Any) -> None:
            block.move(rows(block, source, stride, m, j, k), columns(block, to, stride, j, k))

        _in_blocks(builder, type_, sizes(n, m), _widths(type_), body)
        builder.ret_void()

    return moving(name, doc, define)


transpose_rows_in: DialectFunction = _transposing(
    "transpose_rows_in",
    "``tile[j * LANES + k] = p[min(k, m - 1) * stride + j]`` for ``j < n``.",
    lambda n, m: (n, _LANES),
    lambda block, p, stride, m, j, k: [block.at(p, row, stride, j) for row in block.rows(k, m)],
    lambda block, tile, stride, j, k: [block.at(tile, row, _LANES, k) for row in block.rows(j)],
)
transpose_rows_out: DialectFunction = _transposing(
    "transpose_rows_out",
    "``p[k * stride + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``.",
    lambda n, m: (n, m),
    lambda block, tile, stride, m, j, k: [block.at(tile, row, _LANES, k) for row in block.rows(j)],
    lambda block, p, stride, j, k: [block.at(p, row, stride, j) for row in block.rows(k)],
)
transpose_tile: DialectFunction = _transposing(
    "transpose_tile",
    "``tile[k * LANES + j] = p[j * stride + k]`` for ``j < n`` and ``k < m``.",
    lambda n, m: (m, n),  # a whole column first: its elements share cache lines
    lambda block, p, stride, m, k, j: [block.at(p, row, stride, k) for row in block.rows(j)],
    lambda block, tile, stride, k, j: [block.at(tile, row, _LANES, j) for row in block.rows(k)],
)

TRANSPOSES: dict[str, DialectFunction] = {
    "transpose_rows_in": transpose_rows_in,
    "transpose_rows_out": transpose_rows_out,
    "transpose_tile": transpose_tile,
}
