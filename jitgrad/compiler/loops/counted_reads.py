"""Reads at the number of a turn become slices: what a turn does not read of an array then costs nothing in its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import strong_aval
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import ADD, SUBTRACT
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import TAKE
from jitgrad.ops.movement import moveaxis, slice


def with_slices(
    graph: Graph, counter: int, constants: Sequence[Any], turns: range
) -> tuple[Graph, list[Tensor]]:
    """``graph``, whose input ``counter`` is the last slice, with further slices for its reads ``x[i + k]`` of constants.

    ``turns`` are the numbers ``i``. A read that is out of bounds in some turn stays.
    """
    whole = dict(zip(graph.inputs[counter + 1 :], constants, strict=True))
    offsets: dict[Atom, int] = {graph.inputs[counter]: 0}
    new, made, arrays = Rewriter(graph), dict[Any, Value](), list[Tensor]()
    for node in new.visit():
        _follow(node, offsets)
        key = _read(node, offsets, whole, turns)
        if key is None:
            new.keep(node)
            continue
        if key not in made:
            made[key] = Value(strong_aval(node.out.aval.shape, node.out.aval.dtype))
            arrays.append(_slices(whole[node.ins[0]], node.attr("axis"), turns, offsets[node.ins[1]]))  # type: ignore[index]
        new.replace(node.out, made[key])
    changed = new.graph()
    inputs = (*graph.inputs[: counter + 1], *made.values(), *graph.inputs[counter + 1 :])
    return eliminate_dead(Graph(graph.name, inputs, changed.nodes, changed.outputs)), arrays


def _follow(node: TraceNode, offsets: dict[Atom, int]) -> None:
    """Note the distance of the result of ``node`` from the number of the turn, if it has one."""
    if node.op not in (ADD, SUBTRACT):
        return
    a, b = node.ins
    if node.op is ADD and isinstance(a, Literal):
        a, b = b, a
    if a in offsets and isinstance(b, Literal) and type(b.value) is int:
        offsets[node.out] = offsets[a] + (b.value if node.op is ADD else -b.value)


def _read(node: TraceNode, offsets: dict[Atom, int], whole: dict[Value, Any], turns: range) -> Any:
    """A key for what ``node`` reads in all turns; None if it is no such read, or may be out of bounds."""
    if node.op is not TAKE or node.ins[0] not in whole or node.ins[1] not in offsets:
        return None
    axis, offset = node.attr("axis"), offsets[node.ins[1]]
    inside = turns.start + offset >= 0 and turns.stop + offset <= node.ins[0].aval.shape[axis]
    return (node.ins[0], axis, offset) if inside else None


def _slices(x: Any, axis: int, turns: range, offset: int) -> Tensor:
    first = moveaxis(asarray(x), axis, 0)
    return slice(first, ((turns.start + offset, 1, len(turns)), *[(0, 1, n) for n in first.shape[1:]]))
