"""Computes reductions of a few long rows into one element by element: threads share columns and not rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.ops.arithmetic import ADD, ASTYPE
from jitgrad.ops.movement import SLICE, SQUEEZE


def unroll_reductions(graph: Graph, tuning: Tuning) -> Graph:
    """``sum(x, axis=0)`` of a few long rows in memory becomes ``x[0] + x[1] + ...``, in eager's order.

    If a kernel computes ``x``, the sum stays: the kernel reduces the elements while they are in registers.
    """
    new = Rewriter(graph)
    for node in new.visit():
        if node.op.kind is Kind.REDUCE and _has_few_rows(node, tuning) and _is_in_memory(node.ins[0], new):
            new.replace(node.out, combined(new, node, [_row(new, node, k) for k in range(node.ins[0].aval.shape[0])]))
        else:
            new.keep(node)
    return new.graph()


def _has_few_rows(node: TraceNode, tuning: Tuning) -> bool:
    operand = node.ins[0].aval
    if node.op.monoid is None or node.attr("axis") != (0,) or node.out.aval.dtype.kind == "b":
        return False
    few = operand.ndim > 1 and 1 < operand.shape[0] <= tuning.max_unrolled_rows
    return few and prod(operand.shape[1:]) >= tuning.min_unrolled_columns and is_fusible(node)


def _is_in_memory(atom: Atom, new: Rewriter) -> bool:
    """Whether ``atom`` is an input or the result of a library call, possibly through movement."""
    while isinstance(atom, Value) and (producer := new.producer(atom)) is not None:
        if producer.op.kind is not Kind.MOVEMENT:
            return not is_fusible(producer)
        atom = producer.ins[0]
    return isinstance(atom, Value)


def _row(new: Rewriter, node: TraceNode, k: int) -> Value:
    index = ((k, 1, 1), *((0, 1, n) for n in node.out.aval.shape))
    return new.emit(SQUEEZE, new.emit(SLICE, node.ins[0], index=index), axis=(0,))


def combined(new: Rewriter, node: TraceNode, parts: Sequence[Atom]) -> Value:
    """``parts``, of one shape, combined one after the other as the reduction ``node`` does, in its result's dtype."""
    assert node.op.monoid is not None
    step, dtype, total = REGISTRY[node.op.monoid.step], node.out.aval.dtype, None
    for part in parts:
        converted = part if part.aval.dtype == dtype else new.emit(ASTYPE, part, dtype=dtype)
        total = converted if total is None else new.emit(step, total, converted)
    assert total is not None
    if step is ADD and dtype.kind == "f":  # NumPy adds the terms to 0.0: the sum of -0.0 alone is 0.0
        total = new.emit(ADD, total, Literal(0.0))
    assert isinstance(total, Value)
    return total
