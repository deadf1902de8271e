"""Keeps cyclic shifts whole while slices move, so that kernels read them at offsets, in gradients too.

``roll(x, 1)`` is traced as two slices of ``x`` that are joined, and its gradient as two slices that are put into zeros and
added. Taken by themselves the slices would move up, each with the ops before it: two loops, of which one is a column wide.
As one op it stays what `read_at_offsets` reads without a copy.
"""

from __future__ import annotations

from typing import NamedTuple

from jitgrad.compiler.compiler_ops import ROLL, Index
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.read_at_offsets import is_fast
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.passes.slices import side_by_side
from jitgrad.compiler.passes.transpose_first import is_multiple, large_operand
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.axis_runs import AxisRun, whole
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import PLACE, SLICE


class _Roll(NamedTuple):
    """``source`` along ``axis``, from position ``start`` on and then from the beginning."""

    source: Value
    axis: int
    start: int


def recognize_rolls(graph: Graph, tuning: Tuning) -> Graph:
    """Joined and placed slices that are a cyclic shift become one ``roll``, behind the cheap ops that it can follow.

    ``roll(-x)`` is ``-roll(x)``: nothing is written for the one if ``x`` is in memory for others. Only where kernels are all
    that reads the shift, and read it about as fast as from memory.
    """
    if not tuning.reads_at_offsets or not any(node.op is CONCAT or node.op is PLACE for node in graph.nodes):
        return graph
    new = Rewriter(graph)
    known: dict[_Roll, Value] = {}
    for node in new.visit():
        roll = _roll(new, node)
        if roll is None or not _is_for_kernels(graph, node) or not _is_fast(roll, tuning):
            new.keep(node)
        else:
            new.replace(node.out, _emit(new, graph, roll, known))
    return eliminate_dead(new.graph()) if known else graph


def lower_rolls(graph: Graph) -> Graph:
    """Each ``roll`` becomes two slices side by side."""
    if not any(node.op is ROLL for node in graph.nodes):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        if node.op is not ROLL:
            new.keep(node)
            continue
        axis, start = node.attr("axis"), node.attr("start")
        n = node.out.aval.shape[axis]
        parts = [new.emit(SLICE, node.ins[0], index=_part(node.out, axis, *ends)) for ends in ((start, n), (0, start))]
        new.define(node.out, CONCAT, *parts, axis=axis)
    return new.graph()


def _part(value: Value, axis: int, start: int, stop: int) -> Index:
    return tuple([(start, 1, stop - start) if k == axis else (0, 1, n) for k, n in enumerate(value.aval.shape)])


def _emit(new: Rewriter, graph: Graph, roll: _Roll, known: dict[_Roll, Value]) -> Value:
    """The value of ``roll``: ops of one array and numbers follow it."""
    if roll in known:
        return known[roll]
    node = new.producer(roll.source)
    large = large_operand(node) if node is not None and is_multiple(node) and roll.source not in graph.outputs else None
    if node is None or large is None:
        known[roll] = new.emit(ROLL, roll.source, axis=roll.axis, start=roll.start)
    else:
        moved = _emit(new, graph, roll._replace(source=large), known)
        known[roll] = new.emit(node.op, *[moved if atom is large else atom for atom in node.ins], **dict(node.attrs))
    return known[roll]


def _is_for_kernels(graph: Graph, node: TraceNode) -> bool:
    """Whether only kernels read the result of ``node``."""
    return node.out not in graph.outputs and all(map(is_fusible, graph.users(node.out)))


def _is_fast(roll: _Roll, tuning: Tuning) -> bool:
    shape = roll.source.aval.shape
    two = (AxisRun(roll.start, 1, shape[roll.axis] - roll.start), AxisRun(0, 1, roll.start))
    return is_fast(roll.source, tuple([two if k == roll.axis else whole(n) for k, n in enumerate(shape)]), tuning)


def _roll(new: Rewriter, node: TraceNode) -> _Roll | None:
    """The cyclic shift that ``node``, a join or a sum of places, makes of one value."""
    if node.op is CONCAT and len(node.ins) == 2:
        return _shift(new, node, list(zip(node.ins, side_by_side(node), strict=True)))
    if node.op is ADD:
        places = [new.producer(atom) for atom in node.ins]
        if all(place is not None and place.op is PLACE for place in places):
            return _shift(new, node, [(place.ins[0], place.attr("index")) for place in places if place is not None])
    return None


def _shift(new: Rewriter, node: TraceNode, parts: list[tuple[Atom, Index]]) -> _Roll | None:
    """The cyclic shift that two ``parts`` at their places are of one value that has the shape of ``node``'s result."""
    slices = [new.producer(atom) for atom, _ in parts]
    first, second = slices
    if first is None or second is None or first.op is not SLICE or second.op is not SLICE:
        return None
    source, shape = first.ins[0], node.out.aval.shape
    if source is not second.ins[0] or not isinstance(source, Value) or source.aval != node.out.aval:
        return None
    found = {(node.attr("index"), index) for node, (_, index) in zip((first, second), parts, strict=True)}
    for axis, n in enumerate(shape):
        starts = [place[axis][0] for _, place in found]
        start = next((of[axis][0] for of, place in found if place[axis][0] == 0), 0)
        if 0 < start < n and sorted(starts) == [0, n - start]:
            low, high = (_part(source, axis, *ends) for ends in ((0, start), (start, n)))
            if found == {(high, _part(source, axis, 0, n - start)), (low, _part(source, axis, n - start, n))}:
                return _Roll(source, axis, start)
    return None
