"""Dead code and common subexpressions: one loop each, no state, input untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, exact


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes nobody uses."""
    live = set(map(id, graph.outputs))
    kept = []
    for node in reversed(graph.nodes):
        if any(id(out) in live for out in node.outs):
            kept.append(node)
            live.update(map(id, node.ins))
    return replace(graph, nodes=tuple(reversed(kept)))


def eliminate_common(graph: Graph) -> Graph:
    """Compute what is written several times only once: same op, same operands, same attributes."""
    seen: dict[Any, TraceNode] = {}
    same: dict[int, Value] = {}

    def canonical(atom: Atom) -> Atom:
        return same.get(id(atom), atom) if isinstance(atom, Value) else atom

    kept = []
    for node in graph.nodes:
        ins = tuple([same.get(id(atom), atom) for atom in node.ins])
        key = (id(node.op), tuple([_key(a) for a in ins]), exact(node.attrs) if node.attrs else ())
        try:
            first = seen.get(key)
        except TypeError:  # an attribute that cannot be hashed: never merged
            kept.append(replace(node, ins=ins))
            continue
        if first is None:
            new = node if ins == node.ins else replace(node, ins=ins)
            seen[key] = new
            kept.append(new)
        else:
            same.update({id(old): out for old, out in zip(node.outs, first.outs, strict=True)})
    return replace(graph, nodes=tuple(kept), outputs=tuple(map(canonical, graph.outputs)))


def _key(atom: Atom) -> Any:
    return atom.key() if isinstance(atom, Literal) else id(atom)
