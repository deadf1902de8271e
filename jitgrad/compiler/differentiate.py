"""Differentiates a traced program into a forward and a backward program, and chooses the values to save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitgrad.autograd.backward import gradients
from jitgrad.autograd.modes import enable_grad
from jitgrad.compiler.cost import expensive
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.passes.cleanup import eliminate_common, eliminate_dead
from jitgrad.compiler.passes.gradient_rules import drop_gradient_rules
from jitgrad.compiler.passes.simplify import simplify
from jitgrad.compiler.tracer import Trace
from jitgrad.core.context import recording_in
from jitgrad.core.ir import Atom, Graph, TraceNode, Value, evaluate
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import at_origin
from jitgrad.core.tensor import Tensor

# An elementwise value is computed again in the backward program unless that takes more costly operations than this.
RECOMPUTED_CALLS = 4


@dataclass(frozen=True, eq=False, slots=True)
class Joint:
    """Forward and backward as one graph: ``inputs + seeds -> outputs + grads``.

    ``flows`` says for every input in ``wrt`` whether any gradient reaches it; the others have no entry in ``grads``.
    """

    graph: Graph
    inputs: tuple[Value, ...]
    seeds: tuple[Value, ...]
    outputs: int
    flows: tuple[bool, ...]


def differentiate(graph: Graph, wrt: Sequence[int], seeded: Sequence[int]) -> Joint:
    """Replay ``graph`` under the tape and run backward from the outputs ``seeded`` to the inputs ``wrt``."""
    trace = Trace(f"{graph.name}_gradient")
    with recording_in(trace), enable_grad():
        wanted = set(wrt)
        inputs = [trace.argument(k, v.aval, k in wanted) for k, v in enumerate(graph.inputs)]
        values = tuple(t._data for t in inputs)
        results = _replay(graph, inputs, trace)
        tensors = [x if isinstance(x, Tensor) else trace.constant_number(x) for x in results]
        seeds = [Tensor(trace.add_input(tensors[k].aval, InputSource(SourceKind.SEED, k))) for k in seeded]
        live = [(tensors[k], s) for k, s in zip(seeded, seeds, strict=True) if tensors[k]._requires_grad]
        outs, given = [t for t, _ in live], [s for _, s in live]
        grads = gradients(outs, given, [inputs[k] for k in wrt], retain_graph=False, inside_vjp=True)
        atoms = tuple(trace.current(t) for t in (*tensors, *[g for g in grads if g is not None]))
        flows = tuple(g is not None for g in grads)
        return Joint(trace.graph(atoms), values, tuple(s._data for s in seeds), len(results), flows)


def _replay(graph: Graph, inputs: Sequence[Tensor], trace: Trace) -> tuple[Any, ...]:
    """The results of ``graph`` under ``trace``, every op with the line it had."""
    origins = iter([node.origin for node in graph.nodes])

    def apply(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        with at_origin(next(origins)):
            return trace.apply_recorded(op, operands, attrs)

    return evaluate(graph, tuple(inputs), apply)


@dataclass(frozen=True, eq=False, slots=True)
class Split:
    """Two programs: ``forward: inputs -> outputs + saved`` and ``backward: used inputs + saved + seeds -> grads``."""

    forward: Graph
    backward: Graph
    saved: int
    used: tuple[int, ...]


def split_joint(joint: Joint, *, again: bool = False) -> Split:
    """Cut the joint graph where it is cheap: save results of library calls and reductions, recompute the rest.

    ``again``: both programs may be differentiated, so what says where gradients flow stays in them.
    """
    graph = joint.graph if again else simplify(eliminate_dead(drop_gradient_rules(joint.graph)))
    graph = eliminate_dead(eliminate_common(graph))
    outputs, grads = graph.outputs[: joint.outputs], graph.outputs[joint.outputs :]
    late = _reachable(graph, joint.seeds)
    wanted = {a for n in graph.nodes if n.outs[0] in late for a in n.ins} | set(grads)
    frontier = [v for n in graph.nodes if n.outs[0] not in late for v in n.outs if v in wanted]
    saved = _choose(graph, frontier)
    given = set(saved)
    forward = eliminate_dead(replace(graph, inputs=joint.inputs, outputs=(*outputs, *saved)))
    backward = eliminate_dead(
        replace(
            graph,
            name=graph.name,
            inputs=(*joint.inputs, *saved, *joint.seeds),
            nodes=tuple(n for n in graph.nodes if given.isdisjoint(n.outs)),
            outputs=grads,
        )
    )
    read = {a for n in backward.nodes for a in n.ins} | set(grads)
    used = tuple(k for k, v in enumerate(joint.inputs) if v in read)
    used_inputs = tuple(joint.inputs[k] for k in used)
    return Split(forward, replace(backward, inputs=(*used_inputs, *saved, *joint.seeds)), len(saved), used)


def _reachable(graph: Graph, start: Sequence[Value]) -> set[Atom]:
    """Values that depend on ``start``."""
    reached: set[Atom] = set(start)
    for node in graph.nodes:
        if not reached.isdisjoint(node.ins):
            reached.update(node.outs)
    return reached


def _choose(graph: Graph, frontier: Sequence[Value]) -> tuple[Value, ...]:
    """The values to save: walking back from the frontier, the first that are not worth computing again."""
    saved: dict[Value, None] = {}
    for value in frontier:
        calls, cone, barriers, work = 0, set[Value](), dict[Value, None](), [value]
        while work:
            v = work.pop()
            node = graph.producer(v)
            if node is None or v in cone or v in saved:
                continue
            cone.add(v)
            if not _recomputable(node):
                barriers[v] = None
                continue
            calls += node.op.kind is Kind.ELEMENTWISE and expensive(node.op)
            work += [a for a in node.ins if isinstance(a, Value)]
        saved.update({value: None} if calls > RECOMPUTED_CALLS else barriers)
    return tuple(saved)


def _recomputable(node: TraceNode) -> bool:
    if node.op.kind is Kind.ELEMENTWISE:
        return node.op.scalar is not None or node.op.function is not None
    return node.op.kind in (Kind.MOVEMENT, Kind.INDEX)
