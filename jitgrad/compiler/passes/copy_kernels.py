"""Kernels that only move data: a copy to another place, and zeros for what nobody computes."""

from __future__ import annotations

from jitgrad.compiler.passes.fuse import fuse
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.core.origin import Origin
from jitgrad.ops.identity import IDENTITY


def copying(atom: Atom, origin: Origin) -> TraceNode | None:
    """A fused node that computes ``atom`` again, for another place; None if kernels do not handle its dtype."""
    return _fused((), atom, origin)


def zeros_node(aval: Aval, origin: Origin) -> TraceNode | None:
    """A fused node for zeros that look like ``aval``; None if kernels do not handle its dtype."""
    zero = Literal(aval.dtype.type(0).item(), aval.dtype)
    spread = TraceNode(REGISTRY["broadcast_to"], (zero,), (Value(aval),), (("shape", aval.shape),), origin)
    return _fused((spread,), spread.out, origin)


def _fused(nodes: tuple[TraceNode, ...], atom: Atom, origin: Origin) -> TraceNode | None:
    inputs = (atom,) if isinstance(atom, Value) and not nodes else ()
    copy = TraceNode(IDENTITY, (atom,), (Value(atom.aval),), (), origin)
    made = fuse(Graph("copy", inputs, (*nodes, copy), copy.outs)).nodes[-1]
    return made if made.op.kind is Kind.FUSED else None
