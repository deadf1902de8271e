"""Rewrites reductions around kept axes as reductions of rows: of whole rows where that is faster, else in two steps."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from jitgrad.compiler.fusion.axis_maps import AxisMap
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.movement import PERMUTE_DIMS

Form = tuple[Shape, AxisMap]  # of a reduction: its operand's shape, the axes it goes over


def canonicalize_reductions(graph: Graph, tuning: Tuning) -> Graph:
    """Rewrite every reduction that no loop nest computes as it is: one that keeps axes between reduced ones, or behind them.

    The ``sum(x, axis=(0, 2, 3))`` of a batch norm becomes ``sum(permute_dims(x, (1, 0, 2, 3)), axis=(1, 2, 3))``. Its
    rows are the channels, and the ops that depend on it sweep a row again while it is in cache. If there are none, or if
    rows do not suit all reductions around it, it becomes ``sum(sum(x, axis=(2, 3)), axis=0)``: the first of the two is a
    reduction of rows, which fuses with the ops that compute ``x``, and the second reads one number of each row.

    Reductions over axes that alternate with kept ones, such as 1 and 3 of four, or that have short kept axes behind them,
    are reductions of rows: a library needs a call for each, between kernels, and takes 2 to 25 times as long.
    """
    around = {node: _trailing(node) for node in graph.nodes if _is_reduction(node)}
    between = {_form(node) for node in around if lies_between(node, tuning)}
    if not any(around.values()) and not between and all(_has_loops(*_form(node)) for node in around):
        return graph
    long_rows = {_form(node) for node, trailing in around.items() if trailing and _rows_pay(node, trailing, tuning)}
    rows, new = _Rows(graph, long_rows | between), Rewriter(graph)
    for node in new.visit():
        trailing = around.get(node, ())
        if node in around and _form(node) in between:
            if not tuning.library_reductions or rows.suit_between(node):
                reduce_rows(new, node)
            else:
                new.keep(node)
        elif not trailing:
            if node not in around or _has_loops(*_form(node)) or not is_fusible(node):
                new.keep(node)
            else:
                reduce_rows(new, node)
        elif rows.suit(node) or (is_fusible(node) and not _has_loops(*_second_of_two(node, trailing))):
            reduce_rows(new, node)
        else:
            _reduce_twice(new, node, trailing)
    return new.graph()


def _is_reduction(node: TraceNode) -> bool:
    return node.op.kind is Kind.REDUCE and node.op.monoid is not None and node.ins[0].aval.size > 0


def _form(node: TraceNode) -> Form:
    return node.ins[0].aval.shape, tuple(sorted(node.attr("axis")))


def _has_loops(shape: Shape, axes: AxisMap) -> bool:
    """Whether a loop nest reduces these axes as they are: the first ones, or the last. Axes of length 1 lie anywhere."""
    real = [k for k, n in enumerate(shape) if n != 1]
    gone = [k for k in real if k in axes]
    return gone in (real[: len(gone)], real[len(real) - len(gone) :])


def _trailing(node: TraceNode) -> AxisMap:
    """The axes a reduction goes over behind the last kept one, if some lie before it, too; else none.

    Axes of length 1 lie anywhere.
    """
    shape, axes = _form(node)
    real = [k for k, n in enumerate(shape) if n != 1]
    kept = [k for k in real if k not in axes]
    if not kept or not any(k in axes and k < kept[0] for k in real):
        return ()
    behind = tuple(k for k in axes if k > kept[-1])  # with axes of length 1, which no other step may reduce after them
    return behind if any(shape[k] != 1 for k in behind) else ()


def lies_between(node: TraceNode, tuning: Tuning) -> bool:
    """Whether a reduction goes over axes between kept ones, the last of which makes vectors: rows are their lanes."""
    shape, axes = _form(node)
    real = [k for k, n in enumerate(shape) if n != 1]
    gone = [k for k in real if k in axes]
    if not gone or gone == real[: len(gone)] or gone != real[real.index(gone[0]) :][: len(gone)]:
        return False
    behind = real[real.index(gone[-1]) + 1 :]
    return prod(shape[k] for k in behind) >= tuning.min_lanes and is_fusible(node)


def _rows_pay(node: TraceNode, trailing: AxisMap, tuning: Tuning) -> bool:
    """Whether rows are many, of long pieces and not too long: by sizes alone, for the bits depend on it."""
    shape, axes = _form(node)
    row, run = prod(shape[k] for k in axes), prod(shape[k] for k in trailing)
    many, long = prod(shape) // row >= tuning.min_kept_rows, run >= tuning.min_row_run and row // run <= run
    return many and long and row * node.ins[0].aval.dtype.itemsize <= tuning.max_row_bytes and is_fusible(node)


def reduce_rows(new: Rewriter, node: TraceNode) -> None:
    """Reduce the operand with its kept axes moved to the front."""
    shape, axes = _form(node)
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    rows = new.emit(PERMUTE_DIMS, node.ins[0], axes=(*kept, *axes))
    new.keep(replace(node, ins=(rows,), attrs=(("axis", tuple(range(len(kept), len(shape)))),)))


def _second_of_two(node: TraceNode, trailing: AxisMap) -> Form:
    """The form of what `_reduce_twice` leaves to do behind the axes ``trailing``."""
    shape, axes = _form(node)
    return tuple([1 if k in trailing else n for k, n in enumerate(shape)]), axes


def _reduce_twice(new: Rewriter, node: TraceNode, trailing: AxisMap) -> None:
    """Reduce first over the axes ``trailing``, then over the others."""
    leading = tuple(k for k in node.attr("axis") if k not in trailing)
    first = node.op.abstract([node.ins[0].aval], {"axis": trailing})
    assert isinstance(first, Aval)
    if node.op.abstract([first], {"axis": leading}) == node.out.aval:
        new.define(node.out, node.op, new.emit(node.op, node.ins[0], axis=trailing), axis=leading)
    else:
        new.keep(node)


class _Rows:
    """Which reductions, of some ``forms``, suit all that fuses with them as reductions of whole rows.

    Something must need the result for every element again, or one sweep in any order does it. And no other reduction of
    such elements may need other rows: what both read would be written to memory between two kernels.
    """

    def __init__(self, graph: Graph, forms: set[Form]) -> None:
        self.forms = forms
        self.parent: dict[Atom, Atom] = {}  # of values that fusible nodes connect
        self.behind: dict[Atom, frozenset[Form]] = {}  # the forms of the reductions that a value depends on
        self.strides = _Strides()
        again: list[tuple[Atom, Form]] = []
        operands: list[tuple[Atom, Form]] = []
        for node in graph.nodes if forms else ():
            self.strides.note(node)
            if node.op.renames or is_fusible(node):
                again += self.connect(node)
                if _is_reduction(node) and node.out.aval.size > 1:
                    operands.append((node.ins[0], _form(node)))
        self.again = {(self.find(value), form) for value, form in again}
        self.forms_of: dict[Atom, set[Form]] = {}
        for value, form in operands:
            self.forms_of.setdefault(self.find(value), set()).add(form)

    def suit(self, node: TraceNode) -> bool:
        form = _form(node)
        return form in self.forms and (self.find(node.ins[0]), form) in self.again and self.are_alone(node)

    def suit_between(self, node: TraceNode) -> bool:
        """Whether a reduction that no loop nest computes otherwise should be one of rows.

        Beside reductions over other axes it should be if every element needs its result: the other way is a library
        call, between a kernel that writes its operand and one that reads this again.
        """
        again = (self.find(node.ins[0]), _form(node)) in self.again and self.strides.end_is_dense(node.ins[0])
        return again or self.are_alone(node)

    def are_alone(self, node: TraceNode) -> bool:
        """Whether all reductions of such elements go over the same rows, and the operand's last axis is the densest."""
        form = _form(node)
        others = self.forms_of.get(self.find(node.ins[0]), ())
        same = all(other == form or prod(other[0]) != prod(form[0]) for other in others)
        return same and self.strides.end_is_dense(node.ins[0])

    def find(self, value: Atom) -> Atom:
        while (above := self.parent.get(value, value)) != value:
            self.parent[value] = self.parent.get(above, above)
            value = above
        return value

    def connect(self, node: TraceNode) -> list[tuple[Atom, Form]]:
        """Connect the operands of ``node`` and its result; (result, form) for all reductions it needs per element."""
        out = node.out
        behind = frozenset[Form]().union(*[self.behind.get(a, ()) for a in node.ins])
        needed: list[tuple[Atom, Form]] = [(out, form) for form in behind if prod(form[0]) == out.aval.size]
        if node.op.kind is Kind.REDUCE and (form := _form(node)) in self.forms:
            behind |= {form}
        if behind:
            self.behind[out] = behind
        for atom in node.ins:
            if isinstance(atom, Value) and atom.aval.size > 1 and out.aval.size > 1:
                self.parent[self.find(atom)] = self.find(out)
        return needed


class _Strides:
    """The strides of values that are views; a value that an elementwise op computes from a view is read with them."""

    def __init__(self) -> None:
        self.known: dict[Atom, tuple[int, ...]] = {}  # of views; other values are arrays in order

    def note(self, node: TraceNode) -> None:
        """Note the strides with which a kernel reads the elements of ``node``'s result."""
        if node.op.kind is Kind.MOVEMENT:
            source = node.ins[0]
            if isinstance(source, Value) and node.out.aval.size:
                strides = self.known.get(source) or row_major(source.aval.shape)
                location = view_location(node, Location(_ANYWHERE, 0, strides), source.aval)
                if location is not None:
                    self.known[node.out] = location.strides
        elif node.op.kind is Kind.ELEMENTWISE:
            for a in node.ins:
                if a in self.known and a.aval.shape == node.out.aval.shape:
                    self.known[node.out] = self.known[a]

    def end_is_dense(self, atom: Atom) -> bool:
        """Whether ``atom`` is read in smaller steps along its last axis than along any other."""
        strides = self.known.get(atom) or row_major(atom.aval.shape)
        steps = [abs(s) for s, n in zip(strides, atom.aval.shape, strict=True) if n != 1]
        return steps[-1] <= min((s for s in steps if s), default=0)


_ANYWHERE = Buffer(BufferRole.TEMPORARY, 0)
