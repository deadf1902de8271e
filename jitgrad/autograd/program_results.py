"""Gradients of several results of one compiled call, of which one passes through another.

A program has no place for the gradient of a result that it computes on with. Where somebody wants that gradient, results
that depend on this one are computed again op by op, with the history that the ops give them, which leads to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jitgrad.core.context import grad_enabled
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import raise_kept
from jitgrad.core.ir import Graph, Value, evaluate
from jitgrad.core.op import OpDef
from jitgrad.core.origin import at_origin
from jitgrad.core.tape_node import Edge, Node, edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops.identity import STOP_GRADIENT, UPDATED


def results_to_open(node: Node, arrived: Collection[int], wanted: Collection[int]) -> list[int]:
    """The results of the compiled call ``node`` whose gradients, of those that ``arrived``, pass through a watched result.

    A hook, ``retain_grad()`` or the caller of the pass, who has ``wanted`` some, sees the gradient of a watched one. A result
    that may get more from another one is left for later.

    Raises:
        GraphFreedError: a backward pass has freed the call.
    """
    if node.edges is None:
        raise node.freed()
    if not (watched := _watched(node, wanted)):
        return []
    graph: Graph = node.attrs["graph"]
    needed = {k: _needed(graph, k) for k in arrived}

    def depends(one: int, on: int) -> bool:
        return graph.outputs[one] is not graph.outputs[on] and graph.outputs[on] in needed[one]

    through = [k for k in arrived if any(depends(k, other) for other in watched)]
    return [k for k in through if not any(depends(other, k) for other in through)]


def _watched(node: Node, wanted: Collection[int]) -> set[int]:
    return {*(node.hooks or {}), *(node.retained or {}), *wanted}


def _needed(graph: Graph, output: int) -> set[Any]:
    """The values to which gradients of an output lead."""
    needed = {graph.outputs[output]}
    for node in reversed(graph.nodes):
        if node.op is not STOP_GRADIENT and not needed.isdisjoint(node.outs):
            needed.update(atom for atom in node.ins if isinstance(atom, Value))
    return needed


def edges_op_by_op(node: Node, opened: Collection[int], wanted: Collection[int]) -> dict[int, Edge]:
    """Where the gradients of the results ``opened`` of the compiled call ``node`` go if its ops run one by one.

    Other results that are watched lead to ``node``. Raises what backward from one of ``opened`` raises.
    """
    raise_kept(node.attrs["broken"], opened)
    graph: Graph = node.attrs["graph"]
    operands, _ = node.unpack()
    assert node.edges is not None
    inputs = tuple([_leading_to(x, edge) for x, edge in zip(operands, node.edges, strict=True)])
    own = {graph.outputs[k] for k in opened}
    leading = {graph.outputs[k]: (node, k) for k in _watched(node, wanted) if graph.outputs[k] not in own}
    made = iter([traced.outs for traced in graph.nodes])

    def apply(op: OpDef, given: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        result, values = apply_op(op, *given, **attrs), next(made)
        if leading.keys().isdisjoint(values):
            return result
        outs = [_with_edge(x, leading.get(v)) for x, v in zip(result if op.multiple else (result,), values, strict=True)]
        return tuple(outs) if op.multiple else outs[0]

    token = grad_enabled.set(True)
    try:
        with at_origin(node.origin):
            results = evaluate(graph, inputs, apply)
    finally:
        grad_enabled.reset(token)
    return {k: edge_of(results[k]) for k in opened}


def _leading_to(x: Any, edge: Edge) -> Any:
    """``x``, or a tensor of the same contents if its gradient would not go to ``edge``: to a leaf that has changed since."""
    if edge is None or edge_of(x) is not None:
        return x
    moved = Tensor(x._data)
    return _with_edge(moved, (Node(UPDATED, (moved, moved), {}, (moved,), (edge, None)), 0))


def _with_edge(x: Tensor, edge: tuple[Node, int] | None) -> Tensor:
    """A tensor with the contents of ``x`` whose gradient goes to ``edge``; ``x`` where that is None."""
    if edge is None:
        return x
    new = Tensor(x._data)
    new.grad_fn, new._out_index, new._requires_grad = *edge, True
    return new
