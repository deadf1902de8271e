"""Lets kernels read one-dimensional tables at computed positions, where they compute what they do with the elements.

For ``x[i] * f`` with a library call, ``i`` and ``x[i]`` are written and read again. A kernel that computes ``i`` can load the
elements itself. It reads at indices that are brought into bounds, and finds the least and the largest index. A later step
raises NumPy's error if these two are out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from jitgrad.compiler.compiler_ops import BOUNDED_INDEX, CHECK_INDEX, ELEMENT_AT
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Dtype
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.arithmetic import ADD, ASTYPE, MULTIPLY
from jitgrad.ops.indexing import INDEX_GET, TAKE
from jitgrad.ops.movement import RESHAPE, SLICE
from jitgrad.ops.reduce import MAX, MIN

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_INT32_END = 1 << 31
_LEAST_GATHERED = 4  # bytes: vectors of smaller elements are not loaded from several addresses
_INDEX_KINDS = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4")))


class _Shifted(NamedTuple):
    """An index that is ``base + offset``, along an axis of ``size``."""

    base: Value
    size: int
    offset: int


def read_tables(graph: Graph, tuning: Tuning) -> Graph:
    """``f(take(x, g(i)))`` becomes ``f(element_at(x, g(i)))``, which is an elementwise op, and a check of the indices."""
    found = {node: _indices(graph, node) for node in graph.nodes if _is_read_in_kernels(graph, node, tuning)}
    if not found:
        return graph
    return _TableReads(graph, found).run()


def _indices(graph: Graph, node: TraceNode) -> list[_Shifted]:
    sizes = node.ins[0].aval.shape
    return [_shifted(graph, index, n) for index, n in zip(node.ins[1:], sizes, strict=True) if isinstance(index, Value)]


def _shifted(graph: Graph, index: Value, size: int) -> _Shifted:
    """``index`` without the numbers that are added to it: the windows of an interpolation have one base."""
    offset = 0
    while (node := graph.producer(index)) is not None and node.op is ADD and index.aval.dtype == _INT64:
        numbers = [a for a in node.ins if isinstance(a, Literal)]
        others = [a for a in node.ins if isinstance(a, Value)]
        if len(others) != 1 or others[0].aval.dtype != _INT64 or others[0].aval.shape != index.aval.shape:
            break
        if type(number := numbers[0].value) is not int or numbers[0].shape_derived:
            break
        index, offset = others[0], offset + number
    return _Shifted(index, size, offset)


def _is_read_in_kernels(graph: Graph, node: TraceNode, tuning: Tuning) -> bool:
    """Whether ``node`` reads single elements of a table at computed indices, and kernels are all that reads them."""
    if node.op not in (TAKE, INDEX_GET) or not tuning.min_table_reads:
        return False
    table, *indices = node.ins
    if len(indices) != table.aval.ndim or not isinstance(table, Value) or not _is_in_order(graph, table):
        return False  # `take` of one axis: a row may be read as a whole
    dtype, size = table.aval.dtype, node.out.aval.size
    if not _is_loaded_by_vectors(dtype) or not table.aval.size or size < tuning.min_table_reads:
        return False
    known = all(isinstance(a, Value) and a.aval.dtype in _INDEX_KINDS and a.aval.ndim for a in indices)
    users = list(_users(graph, node.out))
    return known and bool(users) and node.out not in graph.outputs and all(is_fusible(user) for user in users)


def _is_loaded_by_vectors(dtype: Dtype) -> bool:
    return dtype.kind in "fiu" and dtype.itemsize >= _LEAST_GATHERED


def _is_in_order(graph: Graph, value: Value) -> bool:
    """Whether the elements of ``value`` are neighbours in memory: it is no view but of others' shape."""
    node = graph.producer(value)
    while node is not None and node.op.kind is Kind.MOVEMENT:
        source = node.ins[0]
        if node.op is not RESHAPE or not isinstance(source, Value):
            return False
        node = graph.producer(source)
    return True


def _users(graph: Graph, value: Value) -> Iterable[TraceNode]:
    """What reads ``value``, seen through renaming movement; as a result of the program it is read by a node of no kernel."""
    for user in graph.users(value):
        if user.op.renames and user.out not in graph.outputs:
            yield from _users(graph, user.out)
        else:
            yield user


class _TableReads(Rewriter):
    def __init__(self, graph: Graph, found: dict[TraceNode, list[_Shifted]]) -> None:
        super().__init__(graph)
        self.found = {node.outs[0]: indices for node, indices in found.items()}
        self.offsets: dict[tuple[Value, int], set[int]] = {}
        for index in (index for indices in found.values() for index in indices):
            self.offsets.setdefault((index.base, index.size), set()).add(index.offset)
        self.bounded: dict[tuple[Atom, int, Dtype], Value] = {}
        self.tables: dict[Atom, Value] = {}

    def run(self) -> Graph:
        for node in self.visit():
            if node.op in (TAKE, INDEX_GET) and node.outs[0] in self.found:
                self.read(node, self.found[node.outs[0]])
            else:
                self.keep(node)
        return self.graph()

    def read(self, node: TraceNode, shifted: Sequence[_Shifted]) -> None:
        """Emit ``node`` as an elementwise op, and the checks of its indices, which others may share."""
        table, *indices = node.ins
        for axis, index in enumerate(shifted):
            if offsets := self.offsets.pop((index.base, index.size), None):
                self.check(table, axis, index.base, offsets)
        dtype = _INT32 if table.aval.size < _INT32_END else _INT64
        position = self.position(indices, table.aval.shape, dtype)
        if table not in self.tables:
            # a view that is no other name of the table, so that no kernel computes it and reads it at once
            self.tables[table] = self.emit(RESHAPE, table, shape=(table.aval.size,))
        self.define(node.outs[0], ELEMENT_AT, self.tables[table], position)

    def position(self, indices: Sequence[Atom], shape: Sequence[int], dtype: Dtype) -> Value:
        """The position among all elements of an array of ``shape``, in bounds whatever the indices are.

        The last bits of an index in bounds are all of it. Vectors have twice as many integers of 32 bits, and instructions
        for their least and largest.
        """
        position, *others = [self.bounded_index(index, n, dtype) for index, n in zip(indices, shape, strict=True)]
        for index, n in zip(others, shape[1:], strict=True):
            position = self.emit(ADD, self.emit(MULTIPLY, position, Literal(n, dtype)), index)
        return position

    def bounded_index(self, index: Atom, size: int, dtype: Dtype) -> Value:
        key = index, size, dtype
        if key not in self.bounded:
            self.bounded[key] = self.emit(BOUNDED_INDEX, self.cast(index, dtype), size=size)
        return self.bounded[key]

    def cast(self, index: Atom, dtype: Dtype) -> Atom:
        return index if index.aval.dtype == dtype else self.emit(ASTYPE, index, dtype=dtype)

    def check(self, table: Atom, axis: int, base: Value, offsets: Iterable[int]) -> None:
        """Raise NumPy's error if an index into ``axis``, which is ``base`` and one of ``offsets``, is out of bounds."""
        line = self.emit(SLICE, table, index=tuple([(0, 1, n if k == axis else 1) for k, n in enumerate(table.aval.shape)]))
        current = self.current(base)
        for op, offset in ((MIN, min(offsets)), (MAX, max(offsets))):
            index: Atom = self.cast(self.emit(op, current, axis=tuple(range(base.aval.ndim))), _INT64)
            if offset:
                index = self.emit(ADD, index, Literal(offset, _INT64))
            self.emit(CHECK_INDEX, line, index, axis=axis)
