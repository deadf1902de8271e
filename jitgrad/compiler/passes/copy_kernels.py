"""Kernels that only move data: a copy of a value to another place in memory, and zeros."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.compiler.compiler_ops import IDENTITY
from jitgrad.compiler.passes.fuse import fuse
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.core.origin import Origin
from jitgrad.ops.movement import BROADCAST_TO


def copying(atom: Atom, origin: Origin) -> TraceNode | None:
    """A fused node that copies ``atom``; None if kernels do not handle its dtype."""
    new = Rewriter(Graph("copy", (atom,) if isinstance(atom, Value) else (), (), ()), origin)
    return _fused(new, new.emit(IDENTITY, atom))


def zeros_node(aval: Aval, origin: Origin) -> TraceNode | None:
    """A fused node for zeros of the shape and dtype of ``aval``; None if kernels do not handle its dtype."""
    new = Rewriter(Graph("copy", (), (), ()), origin)
    zero = Literal(aval.dtype.type(0).item(), aval.dtype)
    return _fused(new, new.emit(IDENTITY, new.emit(BROADCAST_TO, zero, shape=aval.shape)))


def _fused(new: Rewriter, result: Value) -> TraceNode | None:
    node = fuse(replace(new.graph(), outputs=(result,)), Tuning()).nodes[-1]  # no threshold matters to one loop
    return node if node.op.kind is Kind.FUSED else None
