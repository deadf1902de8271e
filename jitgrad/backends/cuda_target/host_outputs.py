"""New data of tensors that stay on the host, such as the state of a generator: computed there, so that no call waits for
the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, evaluate
from jitgrad.core.op import Kind
from jitgrad.eager.run import run_on_arrays
from jitgrad.runtime.program import Program

_MAX_ELEMENTS, _MAX_NODES = 64, 32  # more work is the device's, even if the host has to wait for it


@dataclass(frozen=True, slots=True)
class HostOutput:
    """The output ``number`` of a program as a function of its ``inputs``, small arrays.

    ``graph`` takes those inputs, then ``constants``: what it computes without any of them.
    """

    number: int
    inputs: tuple[int, ...]
    graph: Graph
    constants: tuple[Any, ...]

    def compute(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        """The output for ``values``, the arrays and numbers of ``inputs``."""
        arrays = [np.asarray(x, v.aval.dtype) for x, v in zip(values, self.graph.inputs, strict=False)]
        (result,) = evaluate(self.graph, (*arrays, *self.constants), run_on_arrays)
        return np.asarray(result)


def host_outputs(program: Program) -> list[HostOutput]:
    """Those of ``program.state_on_host`` that small inputs alone decide."""
    if not program.state_on_host:
        return []
    graph = _inlined(program.plan.graph)
    places = [(k, program.plan.outputs[k]) for k in program.state_on_host]
    whole = [k for k, place in places if place.location is not None and place.location.is_contiguous(place.aval.shape)]
    found = [_host_output(graph, number) for number in whole]
    return [output for output in found if output is not None]


def _host_output(graph: Graph, number: int) -> HostOutput | None:
    needed, nodes = {graph.outputs[number]}, list[TraceNode]()
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outs):
            nodes.insert(0, node)
            needed.update(node.ins)
    inputs = tuple([k for k, value in enumerate(graph.inputs) if value in needed])
    values = [graph.inputs[k] for k in inputs] + [out for node in nodes for out in node.outs]
    if not inputs or len(nodes) > _MAX_NODES or max(v.aval.size for v in values) > _MAX_ELEMENTS:
        return None
    return _with_constants(number, inputs, replace(graph, nodes=tuple(nodes), outputs=(graph.outputs[number],)))


def _with_constants(number: int, inputs: tuple[int, ...], graph: Graph) -> HostOutput:
    """``graph`` without the nodes that need no input: their results are computed once."""
    varying: set[Atom] = {graph.inputs[k] for k in inputs}
    kept, fixed = list[TraceNode](), list[TraceNode]()
    for node in graph.nodes:
        depends = not varying.isdisjoint(node.ins)
        (kept if depends else fixed).append(node)
        varying.update(node.outs if depends else ())
    values = [out for node in fixed for out in node.outs]
    constants = evaluate(Graph(graph.name, (), tuple(fixed), tuple(values)), (), run_on_arrays)
    variables = (*[graph.inputs[k] for k in inputs], *values)
    return HostOutput(number, inputs, replace(graph, inputs=variables, nodes=tuple(kept)), constants)


def _inlined(graph: Graph) -> Graph:
    """``graph`` with the nodes of kernels in their places."""
    renamed: dict[Atom, Atom] = {}
    nodes = []
    for node in graph.nodes:
        ins = tuple([renamed.get(atom, atom) for atom in node.ins])
        if node.op.kind is not Kind.FUSED:
            nodes.append(replace(node, ins=ins))
            continue
        body = node.attr("body")
        inner: dict[Atom, Atom] = dict(zip(body.inputs, ins, strict=True))
        for of in body.nodes:
            outs = tuple([Value(out.aval) for out in of.outs])
            nodes.append(replace(of, ins=tuple([_inside(inner, atom) for atom in of.ins]), outs=outs))
            inner.update(zip(of.outs, outs, strict=True))
        renamed.update(zip(node.outs, [_inside(inner, atom) for atom in body.outputs], strict=True))
    outputs = tuple([renamed.get(atom, atom) for atom in graph.outputs])
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def _inside(names: dict[Atom, Atom], atom: Atom) -> Atom:
    return atom if isinstance(atom, Literal) else names[atom]
