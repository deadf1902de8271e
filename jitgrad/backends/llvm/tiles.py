"""Panels of a matrix, and tiles of a product that stay in registers, for the control code of matrix
products.

A panel is ``PANEL`` bytes of each of some rows, one after the other: ``width`` elements (64 of f32,
32 of f64). It starts at a cache line.

====================================================  ==================================================================
``rows_to_panel(panel, p, s, n, m)``                  ``panel[k * width + j] = p[k * s + j]`` for ``j < n`` and ``k < m``
``columns_to_panel(panel, p, s, n, m)``               ``panel[k * width + j] = p[j * s + k]`` for ``j < n`` and ``k < m``
``prefetch_rows(p, row, step, n, m)``                 start loading ``p[r * row + k * step]`` for ``r < m`` and ``k < n``; if
                                                      ``step`` is not 1, then ``row`` is
``copy_rows(to, t, p, s, n, m)``                      ``to[k * t + j] = p[k * s + j]`` for ``j < n`` and ``k < m``
``tile(c, s, a, row, step, panel, m, more, rows)``    for ``r < rows`` and ``j < width``, with x the sum over ``k < m`` of
                                                      ``a[r * row + k * step] * panel[k * width + j]``: ``c[r * s + j]``
                                                      becomes x, or if ``more``, ``c[r * s + j] + x``
``at(p, n)``                                          the address of element n
``malloc(n)``, ``free(p)``, ``abort()``               C's
====================================================  ==================================================================

``rows`` is one of ``TILE_ROWS``. Sums run in order, by fused multiply-adds. A panel's columns from
``n`` to ``width`` are zeros. The first five are functions of their own in the machine code:
inlined, they would take LLVM three times as long. Import this module only when something is
compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.int_dialect import IntFunction
from jitgrad.backends.llvm.ir_builder import FIRST, WORD, counted, local, prefetch_line, word
from jitgrad.backends.llvm.text_builder import TextBuilder
from jitgrad.backends.llvm.tile_sizes import PANEL, TILE_ROWS

_I32 = ir.IntType(32)
_REALS = {"f32": ir.FloatType(), "f64": ir.DoubleType()}
_ITEMS = {"f32": 4, "f64": 8}
_REGISTER = 64  # bytes: a panel's row is four of them, and six rows of a tile take 24 of 32
_PIECE = 16  # bytes of a row that are transposed together


class _Shape:
    """The vectors of a panel's row, and loads, stores and addresses of them."""

    def __init__(self, builder: Any, dtype: str) -> None:
        self.builder = builder
        self.real, self.item = _REALS[dtype], _ITEMS[dtype]
        self.lanes, self.width, self.piece = (size // self.item for size in (_REGISTER, PANEL, _PIECE))
        self.vector = ir.VectorType(self.real, self.lanes)
        self.zeros = ir.Constant(self.vector, None)

    def at(self, pointer: Any, *terms: Any) -> Any:
        """The address of the element at the sum of ``terms``; a pair is its product."""
        for term in terms:
            index = self.builder.mul(*map(word, term)) if isinstance(term, tuple) else word(term)
            pointer = self.builder.gep(pointer, [index])
        return pointer

    def vectors(self, pointer: Any) -> list[Any]:
        """The addresses of the vectors of a panel's or a tile's row."""
        starts = (self.at(pointer, e) for e in range(0, self.width, self.lanes))
        return [self.builder.bitcast(start, self.vector.as_pointer()) for start in starts]

    def load(self, place: Any) -> Any:
        return self.builder.load(place, align=self.item)

    def store(self, x: Any, place: Any) -> None:
        self.builder.store(x, place, align=self.item)

    def load_line(self, place: Any) -> Any:
        """A vector of a panel."""
        return self.builder.load(place, align=_REGISTER)

    def intrinsic(self, name: str, result: Any, *arguments: Any) -> Any:
        """A call of LLVM's intrinsic ``name`` for these vectors."""
        type_ = ir.FunctionType(result, [x.type for x in arguments])
        suffix = f"v{self.lanes}f{8 * self.item}"
        return self.builder.call(self.builder.module.declare_intrinsic(name.format(suffix), (), type_), arguments)

    def loop(self, start: Any, stop: Any, step: int = 1) -> Any:
        """``for i in range(start, stop, step)``, as a context that gives i."""
        return counted(self.builder, start, stop, step)

    def variable(self) -> Any:
        """The address of a vector of zeros, which LLVM promotes to a register."""
        place = local(self.builder, self.vector)
        self.builder.store(self.zeros, place)
        return place

    def splat(self, x: Any, lanes: int) -> Any:
        """A vector of ``lanes`` copies of ``x``."""
        type_ = ir.VectorType(x.type, lanes)
        one = self.builder.insert_element(ir.Constant(type_, ir.Undefined), x, ir.Constant(_I32, 0))
        order = ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes)
        return self.builder.shuffle_vector(one, ir.Constant(type_, ir.Undefined), order)


_Body = Callable[..., None]


def _called(name: str, body: _Body, pointers: Sequence[int], dtype: str, builder: Any, *args: Any) -> None:
    """Call the function that ``body(shape, *arguments)`` writes; each module has one.

    Args:
        pointers: positions of the arguments that are addresses; they do not alias.
    """
    pointer = _REALS[dtype].as_pointer()
    args = tuple([builder.inttoptr(x, pointer) if k in pointers else x for k, x in enumerate(args)])
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [x.type for x in args]), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        for k in pointers:
            function.args[k].add_attribute("noalias")
        own = TextBuilder(function.append_basic_block())
        body(_Shape(own, dtype), *function.args)
        own.ret_void()
    builder.call(function, args)


def _rows_to_panel(s: _Shape, panel: Any, p: Any, stride: Any, n: Any, m: Any) -> None:
    count, masks = s.splat(n, s.lanes), []
    for first in range(0, s.width, s.lanes):
        lanes = ir.Constant(count.type, list(range(first, first + s.lanes)))
        masks.append(s.builder.icmp_signed("<", lanes, count))
    with s.loop(0, m) as k:
        rows = s.vectors(s.at(p, (k, stride))), s.vectors(s.at(panel, (k, s.width)))
        for mask, place, target in zip(masks, *rows, strict=True):
            x = s.intrinsic("llvm.masked.load.{}.p0", s.vector, place, ir.Constant(_I32, s.item), mask, s.zeros)
            s.store(x, target)


def _columns_to_panel(s: _Shape, panel: Any, p: Any, stride: Any, n: Any, m: Any) -> None:
    full, even = s.builder.and_(n, word(-s.lanes)), s.builder.and_(m, word(-s.piece))
    with s.loop(0, full, s.lanes) as j, s.loop(0, even, s.piece) as k:  # neighbours in a row share cache lines
        _transpose(s, s.at(panel, (k, s.width), j), s.at(p, k, (j, stride)), stride)
    with s.loop(0, m) as k:
        row = s.at(panel, (k, s.width))
        with s.loop(full, s.width, s.lanes) as j:
            s.store(s.zeros, s.builder.bitcast(s.at(row, j), s.vector.as_pointer()))
        transposed = s.builder.icmp_signed("<", k, even)
        with s.loop(s.builder.select(transposed, full, word(0)), n) as j:
            s.store(s.load(s.at(p, k, (j, stride))), s.at(row, j))


def _transpose(s: _Shape, to: Any, source: Any, stride: Any) -> None:
    """Transpose ``piece`` elements of ``lanes`` rows: vector k holds element k of every row."""
    type_, size = ir.VectorType(s.real, s.piece).as_pointer(), s.piece
    pieces = [s.load(s.builder.bitcast(s.at(source, (lane, stride)), type_)) for lane in range(s.lanes)]
    rows = [_joined(s, pieces[k::size]) for k in range(size)]  # every `size`-th row, so that interleaving gives their order
    if size == 2:
        rows = _interleaved(s, 1, *rows)
    else:
        (a, b), (c, d) = _interleaved(s, 1, *rows[:2]), _interleaved(s, 1, *rows[2:])
        rows = _interleaved(s, 2, a, c) + _interleaved(s, 2, b, d)
    for k, row in enumerate(rows):
        s.store(row, s.builder.bitcast(s.at(to, k * s.width), s.vector.as_pointer()))


def _joined(s: _Shape, parts: Sequence[Any]) -> Any:
    """One vector of all ``parts``, in order."""
    while len(parts) > 1:
        order = list(range(2 * parts[0].type.count))
        parts = [_shuffled(s, a, b, order) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _interleaved(s: _Shape, unit: int, a: Any, b: Any) -> list[Any]:
    """``unit`` elements of ``a`` and of ``b`` in turn, from every piece: a vector of the lower
    halves, one of the upper."""
    half = s.piece // 2
    orders = [
        [
            first + k + e + source
            for first in range(part, s.lanes, s.piece)
            for k in range(0, half, unit)
            for source in (0, s.lanes)
            for e in range(unit)
        ]
        for part in (0, half)
    ]
    return [_shuffled(s, a, b, order) for order in orders]


def _shuffled(s: _Shape, a: Any, b: Any, order: list[int]) -> Any:
    return s.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, len(order)), order))


def _prefetch_rows(s: _Shape, p: Any, row: Any, step: Any, n: Any, m: Any) -> None:
    one = s.builder.icmp_signed("==", step, word(1))
    with s.builder.if_else(one) as (along, across):
        with along, s.loop(0, m) as r, s.loop(0, n, s.lanes) as k:
            prefetch_line(s.builder, s.at(p, (r, row), k), FIRST)
        with across, s.loop(0, n) as k:
            prefetch_line(s.builder, s.at(p, (k, step)), FIRST)


def _copy_rows(s: _Shape, to: Any, to_stride: Any, p: Any, stride: Any, n: Any, m: Any) -> None:
    with s.loop(0, m) as k, s.loop(0, n) as j:
        s.store(s.load(s.at(p, (k, stride), j)), s.at(to, (k, to_stride), j))


def _tile(s: _Shape, c: Any, stride: Any, a: Any, row: Any, step: Any, panel: Any, m: Any, more: Any, rows: Any) -> None:
    for count in TILE_ROWS:
        with s.builder.if_then(s.builder.icmp_signed("==", rows, word(count))):
            lines = [s.vectors(s.at(c, (r, stride))) for r in range(count)]
            for line in lines:
                _prefetch_to_write(s, line)
            sums = _sums(s, [s.at(a, (r, row)) for r in range(count)], step, panel, m)
            places = [pair for line, own in zip(lines, sums, strict=True) for pair in zip(line, own, strict=True)]
            with s.builder.if_then(s.builder.icmp_signed("!=", more, word(0))):
                for place, own in places:
                    s.builder.store(s.builder.fadd(s.load(place), s.builder.load(own)), own)
            for place, own in places:
                s.store(s.builder.load(own), place)


def _sums(s: _Shape, lefts: Sequence[Any], step: Any, panel: Any, m: Any) -> list[list[Any]]:
    """The sums over ``k < m`` of ``lefts[r][k * step] * panel[k]`` for each r: addresses that LLVM
    promotes to registers."""
    sums = [[s.variable() for _ in range(0, s.width, s.lanes)] for _ in lefts]
    with s.loop(0, m) as k:
        right = [s.load_line(place) for place in s.vectors(s.at(panel, (k, s.width)))]
        for left, own in zip(lefts, sums, strict=True):
            x = s.splat(s.load(s.at(left, (k, step))), s.lanes)
            for y, place in zip(right, own, strict=True):
                s.builder.store(s.intrinsic("llvm.fma.{}", s.vector, x, y, s.builder.load(place)), place)
    return sums


def _prefetch_to_write(s: _Shape, line: Sequence[Any]) -> None:
    """Load the cache lines of a result while its sum runs: 1.1 times the speed for matrices that
    are not in cache."""
    end = s.builder.gep(line[-1], [ir.Constant(_I32, 1)])  # in the last cache line of the row
    for place in (*line, end):
        prefetch_line(s.builder, place, FIRST, write=True)


def _c(name: str, type_: Any, builder: Any, *args: Any) -> Any:
    """A call of a function of the C library."""
    function = builder.module.globals.get(name) or ir.Function(builder.module, type_, name)
    return builder.call(function, args)


def functions(dtype: str) -> dict[str, IntFunction]:
    """The functions of the module's docstring for elements of ``dtype``, "f32" or "f64"."""
    bodies: dict[str, tuple[_Body, Sequence[int]]] = {
        "rows_to_panel": (_rows_to_panel, (0, 1)),
        "columns_to_panel": (_columns_to_panel, (0, 1)),
        "prefetch_rows": (_prefetch_rows, (0,)),
        "copy_rows": (_copy_rows, (0, 2)),
        "tile": (_tile, (0, 2, 5)),
    }
    table: dict[str, IntFunction] = {name: partial(_called, name, *body, dtype) for name, body in bodies.items()}
    item = word(_ITEMS[dtype])
    table["at"] = lambda builder, p, n: builder.add(p, builder.mul(n, item))
    table["malloc"] = partial(_c, "malloc", ir.FunctionType(WORD, [WORD]))  # addresses have 64 bits on every supported CPU
    table["free"] = partial(_c, "free", ir.FunctionType(ir.VoidType(), [WORD]))
    table["abort"] = partial(_c, "abort", ir.FunctionType(ir.VoidType(), []))
    return table
