"""Reductions around kept axes as reductions of rows: of whole rows where that pays, else in two steps."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from jitgrad.compiler.fusion.axis_maps import RENAMING, AxisMap
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location, row_major, view_location
from jitgrad.core.aval import Aval, Shape
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind

# What is kept becomes rows if there are enough of them to share among cores, and if a row is not many short pieces: those
# often fall into the same few lines of a cache. Measured with batch norms of 0.5 to 200 MB, also of powers of two: with as
# many pieces as elements in one, or fewer, it is as fast or faster, even where a row is larger than the cache.
MIN_ROWS = 16
MIN_RUN = 32
MAX_ROW_BYTES = 16 << 20
MIN_LANES = 16

Form = tuple[Shape, AxisMap]  # of a reduction: its operand's shape, the axes it goes over


def canonicalize_reductions(graph: Graph) -> Graph:
    """Rewrite every reduction over leading and trailing axes that keeps axes between them: no loop nest has such.

    The ``sum(x, axis=(0, 2, 3))`` of a batch norm becomes ``sum(permute_dims(x, (1, 0, 2, 3)), axis=(1, 2, 3))``. Its
    rows are the channels, and what depends on it is another sweep over a row that is still in cache. If nothing does, or
    rows would not do for all around it, it becomes ``sum(sum(x, axis=(2, 3)), axis=0)``: the first of the two is a
    reduction of rows, which fuses with what makes ``x``, and the second reads one number of each row.
    """
    around = {id(node): _trailing(node) for node in graph.nodes if _is_reduction(node)}
    between = {_form(node) for node in graph.nodes if id(node) in around and _lies_between(node)}
    if not any(around.values()) and not between:
        return graph
    rows = _Rows(graph, {_form(n) for n in graph.nodes if around.get(id(n)) and _rows_pay(n, around[id(n)])} | between)
    nodes: list[TraceNode] = []
    for node in graph.nodes:
        if id(node) in around and _form(node) in between:
            nodes += _kept_first(node) if rows.are_alone(node) else (node,)
        elif not (trailing := around.get(id(node))):
            nodes.append(node)
        elif rows.suit(node):
            nodes += _kept_first(node)
        else:
            nodes += _in_two(node, trailing)
    return replace(graph, nodes=tuple(nodes))


def _is_reduction(node: TraceNode) -> bool:
    return node.op.kind is Kind.REDUCE and node.op.monoid is not None and node.ins[0].aval.size > 0


def _form(node: TraceNode) -> Form:
    return node.ins[0].aval.shape, tuple(sorted(node.attr("axis")))


def _trailing(node: TraceNode) -> AxisMap:
    """The axes a reduction goes over behind the last kept one, if some lie before it, too; else none.

    Axes of length 1 lie anywhere.
    """
    shape, axes = _form(node)
    real = [k for k, n in enumerate(shape) if n != 1]
    kept = [k for k in real if k not in axes]
    if not kept or not any(k in axes and k < kept[0] for k in real):
        return ()
    return tuple(k for k in axes if k > kept[-1] and shape[k] != 1)


def _lies_between(node: TraceNode) -> bool:
    """Whether a reduction goes over axes between kept ones, the last of which makes vectors: rows are their lanes."""
    shape, axes = _form(node)
    real = [k for k, n in enumerate(shape) if n != 1]
    gone = [k for k in real if k in axes]
    if not gone or gone == real[: len(gone)] or gone != real[real.index(gone[0]) :][: len(gone)]:
        return False
    behind = real[real.index(gone[-1]) + 1 :]
    return prod(shape[k] for k in behind) >= MIN_LANES and is_fusible(node)


def _rows_pay(node: TraceNode, trailing: AxisMap) -> bool:
    """Whether rows are many, of long pieces and not too long: by sizes alone, for the bits depend on it."""
    shape, axes = _form(node)
    row, run = prod(shape[k] for k in axes), prod(shape[k] for k in trailing)
    many, long = prod(shape) // row >= MIN_ROWS, run >= MIN_RUN and row // run <= run
    return many and long and row * node.ins[0].aval.dtype.itemsize <= MAX_ROW_BYTES and is_fusible(node)


def _kept_first(node: TraceNode) -> tuple[TraceNode, ...]:
    shape, axes = _form(node)
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    order = (*kept, *axes)
    rows = Value(Aval(tuple(shape[k] for k in order), node.ins[0].aval.dtype))
    turned = TraceNode(REGISTRY["permute_dims"], node.ins, (rows,), (("axes", order),), node.origin)
    return turned, replace(node, ins=(rows,), attrs=(("axis", tuple(range(len(kept), len(order)))),))


def _in_two(node: TraceNode, trailing: AxisMap) -> tuple[TraceNode, ...]:
    leading = tuple(k for k in node.attr("axis") if k not in trailing)
    first = node.op.abstract([node.ins[0].aval], {"axis": trailing})
    assert isinstance(first, Aval)
    second = node.op.abstract([first], {"axis": leading})
    if second != node.out.aval:
        return (node,)
    rows = Value(first)
    return (
        replace(node, outs=(rows,), attrs=(("axis", trailing),)),
        replace(node, ins=(rows,), attrs=(("axis", leading),)),
    )


class _Rows:
    """Which reductions, of some ``forms``, suit all that fuses with them as reductions of whole rows.

    Something must need the result for every element again, or one sweep in any order does it. And no other reduction of
    such elements may need other rows: what both read would be written to memory between two kernels.
    """

    def __init__(self, graph: Graph, forms: set[Form]) -> None:
        self.forms = forms
        self.parent: dict[int, int] = {}  # of values that fusible nodes connect; ids
        self.behind: dict[int, frozenset[Form]] = {}  # the forms of the reductions that a value depends on
        self.steps = _Steps()
        again: list[tuple[int, Form]] = []
        found: list[tuple[int, Form]] = []
        for node in graph.nodes if forms else ():
            self.steps.see(node)
            if node.op.name in RENAMING or is_fusible(node):
                again += self.see(node)
                if _is_reduction(node) and node.out.aval.size > 1:
                    found.append((id(node.ins[0]), _form(node)))
        self.again = {(self.find(key), form) for key, form in again}
        self.found: dict[int, set[Form]] = {}
        for key, form in found:
            self.found.setdefault(self.find(key), set()).add(form)

    def suit(self, node: TraceNode) -> bool:
        form, home = _form(node), self.find(id(node.ins[0]))
        return form in self.forms and (home, form) in self.again and self.are_alone(node)

    def are_alone(self, node: TraceNode) -> bool:
        """Whether all reductions of such elements go over the same rows, and the operand lies in order."""
        form, home = _form(node), self.find(id(node.ins[0]))
        same = all(other == form or prod(other[0]) != prod(form[0]) for other in self.found.get(home, ()))
        return same and self.steps.end_is_dense(node.ins[0])

    def find(self, key: int) -> int:
        while (above := self.parent.get(key, key)) != key:
            self.parent[key] = self.parent.get(above, above)
            key = above
        return key

    def see(self, node: TraceNode) -> list[tuple[int, Form]]:
        """Connect what ``node`` reads and makes; (its result, form) for all reductions that it needs per element."""
        out = node.out
        behind = frozenset[Form]().union(*[self.behind.get(id(a), ()) for a in node.ins])
        needed = [(id(out), form) for form in behind if prod(form[0]) == out.aval.size]
        if node.op.kind is Kind.REDUCE and (form := _form(node)) in self.forms:
            behind |= {form}
        if behind:
            self.behind[id(out)] = behind
        for atom in node.ins:
            if isinstance(atom, Value) and atom.aval.size > 1 and out.aval.size > 1:
                self.parent[self.find(id(atom))] = self.find(id(out))
        return needed


class _Steps:
    """How far apart in memory the elements lie that a value is made of, if the kernel that makes it reads them."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, ...]] = {}  # strides, by id of a value; others are arrays in order

    def see(self, node: TraceNode) -> None:
        """Note the strides of what ``node`` shows, or reads element by element."""
        if node.op.kind is Kind.MOVEMENT:
            source = node.ins[0]
            if isinstance(source, Value) and node.out.aval.size:
                strides = self.known.get(id(source)) or row_major(source.aval.shape)
                seen = view_location(node, Location(_ANYWHERE, 0, strides), source.aval)
                if seen is not None:
                    self.known[id(node.out)] = seen.strides
        elif node.op.kind is Kind.ELEMENTWISE:
            for a in node.ins:
                if id(a) in self.known and a.aval.shape == node.out.aval.shape:
                    self.known[id(node.out)] = self.known[id(a)]

    def end_is_dense(self, atom: Atom) -> bool:
        """Whether ``atom`` is read in smaller steps along its last axis than along any other."""
        strides = self.known.get(id(atom)) or row_major(atom.aval.shape)
        steps = [abs(s) for s, n in zip(strides, atom.aval.shape, strict=True) if n != 1]
        return steps[-1] <= min((s for s in steps if s), default=0)


_ANYWHERE = Buffer(BufferRole.TEMPORARY, 0)
