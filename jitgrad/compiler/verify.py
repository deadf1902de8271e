"""What every graph must satisfy, checked between passes."""

from __future__ import annotations

from jitgrad.core.aval import Aval
from jitgrad.core.errors import VerifyError
from jitgrad.core.ir import Graph, TraceNode, Value, format_graph
from jitgrad.core.op import Kind


def verify(graph: Graph, after: str = "tracing") -> None:
    """Raise VerifyError, showing the node, unless ``graph`` is a well-formed straight-line program.

    Checked: what `verify_order` checks; every op's own shape and dtype rule agrees with the avals that the graph claims.
    """
    verify_order(graph, after)
    for node in graph.nodes:
        if node.op.kind not in _UNRULED and (problem := _broken_rule(node)):
            raise VerifyError(f"after {after}: {problem}\n\n{format_graph(graph, mark=node)}")


def verify_order(graph: Graph, after: str = "tracing") -> None:
    """Raise VerifyError, showing the node, unless values are defined once and before use, outputs at all."""
    defined = set(map(id, graph.inputs))
    if len(defined) != len(graph.inputs):
        raise VerifyError(f"after {after}: an input is listed twice\n\n{format_graph(graph)}")
    for node in graph.nodes:
        problem = None
        for atom in node.ins:
            if id(atom) not in defined and isinstance(atom, Value):
                problem = "operand used before it is defined"
        for out in node.outs:
            if id(out) in defined:
                problem = "result defined twice"
        if problem:
            raise VerifyError(f"after {after}: {problem}\n\n{format_graph(graph, mark=node)}")
        defined.update(map(id, node.outs))
    for atom in graph.outputs:
        if isinstance(atom, Value) and id(atom) not in defined:
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
