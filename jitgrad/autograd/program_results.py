"""Gradients of several results of one compiled call: a program has no place in which one passes through another."""

from __future__ import annotations

from collections.abc import Collection

from jitgrad.core.errors import AutogradError
from jitgrad.core.ir import Graph, Value
from jitgrad.core.tape_node import Node
from jitgrad.ops.identity import STOP_GRADIENT


def check_watched(node: Node, arrived: Collection[int], wanted: Collection[int]) -> None:
    """A hook, ``retain_grad()`` or the results ``wanted`` of a pass see all of a gradient of the compiled call ``node``.

    Raises:
        AutogradError: a gradient that ``arrived`` at one result would have passed through
            another that is watched.
    """
    graph: Graph = node.attrs["graph"]
    for watched in {*(node.hooks or {}), *(node.retained or {}), *wanted}:
        for other in arrived:
            if other != watched and _depends(graph, other, watched):
                raise AutogradError(
                    f"the gradient of result {watched} {graph.outputs[watched].aval} of @jit function {graph.name!r} is wanted "
                    f"by a hook, retain_grad() or grad(), and result {other} {graph.outputs[other].aval} of the same call, which "
                    "depends on it, has one: it does not pass through there. Call backward() or grad() within the function, or "
                    "compute that result outside of it."
                )


def _depends(graph: Graph, output: int, on: int) -> bool:
    """Whether gradients of an output lead to the value of another one."""
    needed = {graph.outputs[output]}
    for node in reversed(graph.nodes):
        if node.op is not STOP_GRADIENT and not needed.isdisjoint(node.outs):
            needed.update(atom for atom in node.ins if isinstance(atom, Value))
    return graph.outputs[on] in needed
