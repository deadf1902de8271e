"""Checks between passes that a graph is a well-formed program."""

from __future__ import annotations

from jitgrad.core.aval import Aval
from jitgrad.core.errors import VerifyError
from jitgrad.core.ir import Atom, Graph, TraceNode, Value, format_graph
from jitgrad.core.op import Kind


def verify(graph: Graph, after: str = "tracing") -> None:
    """Raise VerifyError, showing the node, unless ``graph`` is a well-formed straight-line program.

    This includes `verify_order`, and that the avals of all values follow from their ops' shape and dtype rules.
    """
    verify_order(graph, after)
    for node in graph.nodes:
        if node.op.kind not in _UNRULED and (problem := _broken_rule(node)):
            raise VerifyError(f"after {after}: {problem}\n\n{format_graph(graph, mark=node)}")


def verify_order(graph: Graph, after: str = "tracing") -> None:
    """Raise VerifyError, showing the node, unless values are defined once and before use, and all outputs are defined."""
    defined: set[Atom] = set(graph.inputs)
    if len(defined) != len(graph.inputs):
        raise VerifyError(f"after {after}: an input is listed twice\n\n{format_graph(graph)}")
    for node in graph.nodes:
        problem = None
        for atom in node.ins:
            if isinstance(atom, Value) and atom not in defined:
                problem = "operand used before it is defined"
        for out in node.outs:
            if out in defined:
                problem = "result defined twice"
        if problem:
            raise VerifyError(f"after {after}: {problem}\n\n{format_graph(graph, mark=node)}")
        defined.update(node.outs)
    for atom in graph.outputs:
        if isinstance(atom, Value) and atom not in defined:
            raise VerifyError(f"after {after}: an output is never defined\n\n{format_graph(graph)}")


_UNRULED = (Kind.FUSED, Kind.PROGRAM)


def _broken_rule(node: TraceNode) -> str | None:
    if not node.op.variadic and len(node.ins) != len(node.op.operands):
        return f"{node.op} takes {len(node.op.operands)} operands, got {len(node.ins)}"
    expected = node.op.abstract([a.aval for a in node.ins], dict(node.attrs))
    listed = expected if isinstance(expected, tuple) else (expected,)
    for value, aval in zip(node.outs, listed, strict=True):
        if not _same(value.aval, aval):
            return f"{node.op} makes {aval}, the graph says {value.aval}"
    return None


def _same(a: Aval, b: Aval) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype
