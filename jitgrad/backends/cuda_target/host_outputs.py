"""What small tensors on the host alone decide, such as the state of a generator and the rates of a schedule: computed
there, so that no call waits for the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, evaluate
from jitgrad.core.op import Kind
from jitgrad.eager.run import run_on_arrays
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program

_MAX_ELEMENTS, _MAX_NODES = 64, 32  # more work is the device's, even if the host has to wait for it


@dataclass(frozen=True, slots=True)
class HostFunction:
    """Values of a program as a function of its ``inputs``, small arrays.

    ``graph`` takes those inputs, then ``constants``: what it computes without any of them.
    """

    inputs: tuple[int, ...]
    graph: Graph
    constants: tuple[Any, ...]

    def compute(self, arrays: Mapping[int, Any]) -> list[np.ndarray[Any, Any]]:
        """The values for ``arrays``, the arrays and numbers of the inputs by their positions."""
        given = [np.asarray(arrays[k], v.aval.dtype) for k, v in zip(self.inputs, self.graph.inputs, strict=False)]
        results = evaluate(self.graph, (*given, *self.constants), run_on_arrays)
        return [np.asarray(x, v.aval.dtype) for x, v in zip(results, self.graph.outputs, strict=True)]


@dataclass(frozen=True, slots=True)
class HostWork:
    """What the host computes for a program before it starts.

    The results of ``calls``, which have no kernel, count as inputs of the program after those that it has, in their order.

    Attributes:
        calls: library calls, each with the function that gives its results.
        values: how many results they have.
        outputs: new data of tensors on the host: the numbers of the outputs, and what gives them.
        certain: the numbers of those that every call finds so; the others need arguments that happen to be on the host.
    """

    calls: tuple[tuple[LibraryCall, HostFunction], ...]
    values: int
    outputs: tuple[tuple[int, HostFunction], ...]
    certain: frozenset[int]

    def first_result(self, call: LibraryCall) -> int | None:
        """The number of the first result of ``call`` among all of them; None if the call is not the host's, beforehand."""
        number = 0
        for known, _ in self.calls:
            if known is call:
                return number
            number += len(known.writes)
        return None

    def add_results(self, arrays: dict[int, Any], inputs: int) -> None:
        """Compute the calls from the ``arrays`` on the host, and add their results; the program has so many ``inputs``."""
        for _, function in self.calls:
            for result in function.compute(arrays):
                arrays[inputs] = result
                inputs += 1


def find_host_work(program: Program, calls: Sequence[LibraryCall]) -> HostWork:
    """Those of ``calls``, the library calls without a kernel, and of ``program.state_on_host`` that small inputs on the
    host alone decide."""
    if not calls and not program.state_on_host:
        return HostWork((), 0, (), frozenset())
    graph, known = _inlined(program.plan.graph), set(program.inputs_on_host)
    first, found = len(graph.inputs), list[tuple[LibraryCall, HostFunction]]()
    for call in calls:
        (node,) = [node for node in graph.nodes if node.outs == call.step.node.outs] or (None,)
        function = None if node is None or not _writes_whole_arrays(call) else _host_function(graph, node.outs)
        if node is not None and function is not None and known.issuperset(function.inputs):
            found.append((call, function))
            known.update(range(len(graph.inputs), len(graph.inputs) + len(node.outs)))
            nodes = tuple([other for other in graph.nodes if other is not node])
            graph = replace(graph, inputs=(*graph.inputs, *node.outs), nodes=nodes)
    places = [(k, program.plan.outputs[k]) for k in program.state_on_host]
    whole = [k for k, place in places if place.location is not None and place.location.is_contiguous(place.aval.shape)]
    functions = [(k, _host_function(graph, (graph.outputs[k],))) for k in whole]
    outputs = tuple([(k, function) for k, function in functions if function is not None])
    certain = frozenset(k for k, function in outputs if known.issuperset(function.inputs))
    return HostWork(tuple(found), len(graph.inputs) - first, outputs, certain)


def _writes_whole_arrays(call: LibraryCall) -> bool:
    return not call.in_place and all(
        p.location is not None and p.location.is_contiguous(p.aval.shape) and p.aval.size for _, p in call.writes
    )


def _host_function(graph: Graph, outputs: Sequence[Atom]) -> HostFunction | None:
    needed, nodes = set(outputs), list[TraceNode]()
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outs):
            nodes.insert(0, node)
            needed.update(node.ins)
    inputs = tuple([k for k, value in enumerate(graph.inputs) if value in needed])
    values = [graph.inputs[k] for k in inputs] + [out for node in nodes for out in node.outs]
    if not inputs or len(nodes) > _MAX_NODES or max(v.aval.size for v in values) > _MAX_ELEMENTS:
        return None
    return _with_constants(inputs, replace(graph, nodes=tuple(nodes), outputs=tuple(outputs)))


def _with_constants(inputs: tuple[int, ...], graph: Graph) -> HostFunction:
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
    return HostFunction(inputs, replace(graph, inputs=variables, nodes=tuple(kept)), constants)


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
