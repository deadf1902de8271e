"""Moves transpositions behind the ops on their results, so that loops walk arrays in memory order."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.movement import EXPAND_DIMS, PERMUTE_DIMS

Axes = tuple[int, ...]


def sink_transposes(graph: Graph) -> Graph:
    """``tanh(x.T)`` becomes ``tanh(x).T`` and ``sum(x.T, axis=1)`` becomes ``sum(x, axis=0)``.

    Library calls that work along one axis, such as ``cumulative_sum``, change likewise. A result is then in the order of
    its operands, as NumPy's are, and a library call or a copy behind it reads a view. An elementwise op changes if all of
    its large operands are permuted alike, the other ops always.
    """
    if not any(node.op is PERMUTE_DIMS for node in graph.nodes):
        return graph
    new = _Sink(graph)
    for node in new.visit():
        new.place(node)
    return new.graph()


class _Sink(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.permuted: dict[Atom, tuple[Value, Axes]] = {}  # a permutation of which value, by which axes

    def place(self, node: TraceNode) -> None:
        source, axes = self.permuted.get(node.ins[0], (None, ())) if node.ins else (None, ())
        if node.op is PERMUTE_DIMS and isinstance(node.ins[0], Value):
            own = tuple(node.attr("axes"))
            self.permuted[node.out] = (node.ins[0], own) if source is None else (source, tuple(axes[k] for k in own))
            self.keep(node)
        elif node.op.kind is Kind.ELEMENTWISE and (common := self.common_axes(node)):
            ins = [self.unpermuted(atom, node, common) for atom in node.ins]
            self.permute(node, self.emit(node.op, *ins, **dict(node.attrs)), common)
        elif source is None:
            self.keep(node)
        elif node.op.kind is Kind.REDUCE and node.op.monoid is not None:
            self.reduce(node, source, axes, tuple(sorted(axes[k] for k in node.attr("axis"))))
        elif node.op.per_line and node.attr("axis") is not None:
            axis = axes[node.attr("axis")]
            if node.out.aval.ndim < source.aval.ndim:
                self.reduce(node, source, axes, axis)
            else:
                self.permute(node, self.emit(node.op, source, **{**dict(node.attrs), "axis": axis}), axes)
        else:
            self.keep(node)

    def common_axes(self, node: TraceNode) -> Axes:
        """The axes by which all operands as large as the result are permuted; none if they differ."""
        large = [a for a in node.ins if isinstance(a, Value) and a.aval.shape == node.out.aval.shape]
        orders = {self.permuted[a][1] if a in self.permuted else () for a in large}
        return orders.pop() if len(orders) == 1 else ()

    def unpermuted(self, atom: Atom, node: TraceNode, axes: Axes) -> Atom:
        """An operand of the unpermuted op; a smaller one is permuted back, so that it broadcasts along the same axes."""
        shape = node.out.aval.shape
        if not isinstance(atom, Value) or atom.aval.size == 1 or not shape:
            return atom
        if atom.aval.shape == shape:
            return self.permuted[atom][0]
        missing = tuple(range(len(shape) - atom.aval.ndim))
        if missing:
            atom = self.emit(EXPAND_DIMS, atom, axis=missing)
        return self.emit(PERMUTE_DIMS, atom, axes=tuple(axes.index(k) for k in range(len(axes))))

    def reduce(self, node: TraceNode, source: Value, axes: Axes, reduced: Axes | int) -> None:
        """The reduction ``node`` of ``source`` permuted by ``axes``: over ``reduced``, in the axes of ``source``."""
        kept = tuple(k for k in axes if k != reduced and not (isinstance(reduced, tuple) and k in reduced))
        order = sorted(kept)
        if list(kept) == order:
            self.keep(replace(node, ins=(source,), attrs=(("axis", reduced),)))
        else:
            self.permute(node, self.emit(node.op, source, axis=reduced), tuple(order.index(k) for k in kept))

    def permute(self, node: TraceNode, source: Value, axes: Axes) -> None:
        """The result of ``node`` as a permutation of ``source``."""
        self.define(node.out, PERMUTE_DIMS, source, axes=axes)
        self.permuted[node.out] = source, axes
