"""Permutations behind the work on what they permute: loops then walk arrays in the order in which they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind

Axes = tuple[int, ...]

_ALONG = frozenset({"argsort", "argtopk", "cumulative_sum"})  # go along one axis, which stays: each line on its own
_OVER = frozenset({"argmax", "argmin"})  # reduce one axis, each line on its own; without an axis the order counts


def sink_transposes(graph: Graph) -> Graph:
    """``tanh(x.T)`` becomes ``tanh(x).T`` and ``sum(x.T, axis=1)`` becomes ``sum(x, axis=0)``.

    So do library calls that go along one axis, such as ``cumulative_sum``. A result is in the order of its operands then,
    as NumPy's are, and a library call or a copy behind it sees a view. An elementwise op is changed if all of its large
    operands are permuted alike, all others always.
    """
    if not any(node.op.name == "permute_dims" for node in graph.nodes):
        return graph
    sink = _Sink()
    for node in graph.nodes:
        sink.place(node)
    return replace(graph, nodes=tuple(sink.nodes))


class _Sink:
    def __init__(self) -> None:
        self.nodes: list[TraceNode] = []
        self.seen: dict[int, tuple[Value, Axes]] = {}  # by id of a permuted value: what of, and the axes

    def place(self, node: TraceNode) -> None:
        if node.op.name == "permute_dims" and isinstance(node.ins[0], Value):
            source, axes = node.ins[0], tuple(node.attr("axes"))
            if id(source) in self.seen:
                source, inner = self.seen[id(source)]
                axes = tuple(inner[k] for k in axes)
            self.seen[id(node.out)] = source, axes
        elif node.op.kind is Kind.ELEMENTWISE and (axes := self.common(node)):
            shape = _moved(node.out.aval.shape, _inverse(axes))
            result = Value(Aval(shape, node.out.aval.dtype))
            ins = tuple(self.unpermuted(atom, node, axes) for atom in node.ins)
            self.nodes.append(replace(node, ins=ins, outs=(result,)))
            self.permute(node, result, axes)
            return
        elif node.op.kind is Kind.REDUCE and node.op.monoid is not None and id(node.ins[0]) in self.seen:
            source, axes = self.seen[id(node.ins[0])]
            self.reduce(node, source, axes, tuple(sorted(axes[k] for k in node.attr("axis"))))
            return
        elif node.op.name in _OVER and node.attr("axis") is not None and id(node.ins[0]) in self.seen:
            source, axes = self.seen[id(node.ins[0])]
            self.reduce(node, source, axes, axes[node.attr("axis")])
            return
        elif node.op.name in _ALONG and id(node.ins[0]) in self.seen:
            self.go_along(node, *self.seen[id(node.ins[0])])
            return
        self.nodes.append(node)

    def common(self, node: TraceNode) -> Axes:
        """The axes in which all operands as large as the result are permuted; none if they are not."""
        shape, found = node.out.aval.shape, set[Axes]()
        for atom in node.ins:
            if isinstance(atom, Value) and atom.aval.shape == shape:
                found.add(self.seen[id(atom)][1] if id(atom) in self.seen else ())
        return found.pop() if len(found) == 1 else ()

    def unpermuted(self, atom: Atom, node: TraceNode, axes: Axes) -> Atom:
        """An operand of the unpermuted op; a smaller one is turned round, so that it is broadcast along the same axes."""
        shape = node.out.aval.shape
        if not isinstance(atom, Value) or atom.aval.size == 1 or not shape:
            return atom
        if atom.aval.shape == shape:
            return self.seen[id(atom)][0]
        missing = tuple(range(len(shape) - atom.aval.ndim))
        if missing:
            atom = self.emit(node, "expand_dims", atom, {"axis": missing})
        return self.emit(node, "permute_dims", atom, {"axes": _inverse(axes)})

    def reduce(self, node: TraceNode, source: Value, axes: Axes, gone: Axes | int) -> None:
        """``gone``: what the reduction's attribute ``axis`` is for ``source``, whose axes the operand has in order ``axes``."""
        kept = tuple(k for k in axes if k != gone and not (isinstance(gone, tuple) and k in gone))
        order = sorted(kept)
        if list(kept) == order:
            self.nodes.append(replace(node, ins=(source,), attrs=(("axis", gone),)))
            return
        shape = tuple(source.aval.shape[k] for k in order)
        result = Value(Aval(shape, node.out.aval.dtype))
        self.nodes.append(replace(node, ins=(source,), outs=(result,), attrs=(("axis", gone),)))
        self.permute(node, result, tuple(order.index(k) for k in kept))

    def go_along(self, node: TraceNode, source: Value, axes: Axes) -> None:
        """``node``, whose operand is ``source`` with its axes in the order ``axes``, for ``source`` itself."""
        attrs = {**dict(node.attrs), "axis": axes[node.attr("axis")]}
        self.permute(node, self.emit(node, node.op.name, source, attrs), axes)

    def permute(self, node: TraceNode, source: Value, axes: Axes) -> None:
        """The result of ``node`` as a permutation of ``source``."""
        self.nodes.append(TraceNode(REGISTRY["permute_dims"], (source,), node.outs, (("axes", axes),), node.origin))
        self.seen[id(node.out)] = source, axes

    def emit(self, node: TraceNode, name: str, atom: Atom, attrs: Mapping[str, Any]) -> Value:
        op = REGISTRY[name]
        aval = op.abstract([atom.aval], attrs)
        assert isinstance(aval, Aval)
        self.nodes.append(TraceNode(op, (atom,), (Value(aval),), tuple(attrs.items()), node.origin))
        return self.nodes[-1].out


def _moved(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    return tuple(shape[k] for k in axes)


def _inverse(axes: Axes) -> Axes:
    return tuple(axes.index(k) for k in range(len(axes)))
