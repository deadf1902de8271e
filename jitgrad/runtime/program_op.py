"""A compiled graph as an op: eager runs its program, and its vjp runs the backward program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jitgrad.backends.base import Target
from jitgrad.compiler.block_runs import BlockRunFinder
from jitgrad.compiler.compiler_ops import FUSED, IDENTITY, UNFUSED
from jitgrad.compiler.differentiate import Joint, Split, differentiate, split_joint
from jitgrad.compiler.loops.loop_op import LOOP, LOOP_BY_OPS, LoopBody
from jitgrad.compiler.loops.unroll import unroll_loops
from jitgrad.compiler.lowering.kernel_reuse import GroupStructures, lower_groups
from jitgrad.compiler.pipeline import Watcher, ignore, run_passes
from jitgrad.compiler.placement import place_values
from jitgrad.compiler.plan import OpStep, Plan
from jitgrad.compiler.planner import make_plan
from jitgrad.compiler.recompute.choose import within_budget
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Aval, Dtype, Shape
from jitgrad.core.context import anomaly_detection, current_interpreter, grad_enabled, open_tapes
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AnomalyError, AutogradError, InPlaceError, raise_kept
from jitgrad.core.fork import cached_property
from jitgrad.core.gc_paused import gc_paused
from jitgrad.core.ir import Graph, TraceNode, Value, evaluate
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tape_node import Node, edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops.identity import UPDATED
from jitgrad.runtime.gradient_program import GradientProgram
from jitgrad.runtime.program import Program
from jitgrad.runtime.provenance import find_non_finite

_BY_OPS = {FUSED: UNFUSED, LOOP: LOOP_BY_OPS}  # in place of what kernels compute: their ops, one by one
# State of so few bytes, such as the counter of a generator, is not written over the old one in a program with a memory
# budget: what reads it can then run again.
_SMALL_STATE = 256


@gc_paused()
def compile_graph(
    graph: Graph,
    target: Target,
    donated: Mapping[int, Value] | None = None,
    free: Sequence[Value] = (),
    watch: Watcher = ignore,
    unfused: Collection[int] = (),
    strides: Sequence[Shape | None] | None = None,
) -> Program:
    """Run the passes over ``graph``, place its values, lower its groups, plan its memory and compile its kernels.

    ``donated`` maps positions of outputs to inputs whose memory they should take; others may take
    inputs ``free``. The kernels with numbers ``unfused``, in the order of the program, are not compiled:
    their ops run one by one. ``strides`` are those of the inputs, where they are not in row-major order.

    Raises:
        MemoryBudgetError: if its temporaries do not fit the memory budget of ``target``.
    """
    graph = graph if target.runs_loops and target.memory_budget is None else unroll_loops(graph)
    target.expect(graph)
    state = dict(donated or {})

    def plan(changed: Mapping[int, Value], tuning: Tuning, watch: Watcher = ignore) -> Plan:
        fused = _without_kernels(run_passes(graph, target.passes, watch, tuning), unfused)
        wanted = {fused.outputs[k]: value for k, value in changed.items()}
        structures = GroupStructures()
        placement = place_values(fused, wanted, free, structures, strides)
        lowered = lower_groups(placement.groups, structures, target.schedule)
        return make_plan(placement, lowered, BlockRunFinder(target.schedule, tuning))

    tuning = target.tuning
    if target.memory_budget is None:
        return _with_turns(plan(state, tuning, watch), target)
    kept = {k: value for k, value in state.items() if value.aval.nbytes > _SMALL_STATE}

    def sparing(level: int) -> Plan:
        return plan(kept, replace(tuning, spare_memory=level))

    return Program(within_budget(graph.name, target.memory_budget, plan(state, tuning, watch), sparing), target)


def _with_turns(plan: Plan, target: Target) -> Program:
    """The program of ``plan``, and those of the turns of its loops. A turn may write its new carries over the old ones."""
    bodies = dict.fromkeys([step.attrs["body"] for step in plan.steps if isinstance(step, OpStep) and step.op is LOOP])
    graphs = {body: _with_copies(body) for body in bodies}
    turns = {b: compile_graph(g, target, {k: g.inputs[k] for k in range(b.carries)}) for b, g in graphs.items()}
    return Program(plan, target, turns)


def _with_copies(body: LoopBody) -> Graph:
    """The graph of a turn, which first copies the carries that it returns: the new ones may then lie where they are."""
    graph = body.graph
    returned = dict.fromkeys([v for v in graph.outputs[body.carries :] if v in graph.inputs[: body.carries]])
    copies = {v: TraceNode(IDENTITY, (v,), (Value(v.aval),)) for v in returned if isinstance(v, Value)}
    parts = [copies[v].out if v in copies else v for v in graph.outputs[body.carries :]]  # type: ignore[index]
    return replace(graph, nodes=(*copies.values(), *graph.nodes), outputs=(*graph.outputs[: body.carries], *parts))


def _without_kernels(graph: Graph, unfused: Collection[int]) -> Graph:
    if not unfused:
        return graph
    numbers = itertools.count()
    nodes = [
        replace(node, op=_BY_OPS[node.op]) if node.op in _BY_OPS and next(numbers) in unfused else node for node in graph.nodes
    ]
    return replace(graph, nodes=tuple(nodes))


def contiguous(array: Any) -> Any:
    """``array`` as kernels read it: C-contiguous, native byte order; copied only if it is not."""
    if isinstance(array, DeviceArray):
        return array if array.is_contiguous else array.copy()
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


NOTHING_BROKEN: Mapping[int, AutogradError] = MappingProxyType({})


def _as_array(x: Any, dtype: Dtype) -> Any:
    return x if isinstance(x, DeviceArray) else np.asarray(x, dtype)


def _lead_to_hidden_leaf(out: Tensor) -> None:
    """Give ``out`` a history that ends at a leaf of its own: it was computed from leaves that nobody outside the
    function can reach, and requires grad for that reason, as in eager execution."""
    leaf = Tensor(out._data)
    leaf._requires_grad = True
    out.grad_fn, out._out_index, out._requires_grad = Node(UPDATED, (leaf, leaf), {}, (out,), (leaf, None)), 0, True
    for tape in open_tapes.get():
        tape.record(out.grad_fn, (leaf, leaf))


class ProgramOp:
    """``graph`` as a differentiable op. Programs are compiled when they first run.

    Attributes:
        wrt: positions of the inputs that gradients flow to.
        seeded: positions of the outputs that gradients come from.
        changed: positions of the inputs that the caller overwrites after the call, such as the
            state of a generator: backward gets copies of their old data.
        unfused: numbers of the kernels of the forward program whose ops run one by one.
        broken: what backward from these outputs raises.
    """

    def __init__(
        self,
        graph: Graph,
        wrt: Sequence[int],
        seeded: Sequence[int],
        target: Target,
        count: Callable[[Program], None],
        changed: Sequence[int] = (),
        unfused: Collection[int] = (),
        broken: Mapping[int, AutogradError] = NOTHING_BROKEN,
    ) -> None:
        self.graph = graph
        self.broken = broken
        self.unfused = unfused
        self.changed: tuple[int, ...] = tuple(changed)
        self.wrt: tuple[int, ...] = tuple(wrt)
        self.seeded: tuple[int, ...] = tuple(seeded)
        self.target = target
        self.count = count  # told of every program that is compiled
        self.op: OpDef = OpDef(
            name=graph.name,
            kind=Kind.PROGRAM,
            operands=("inputs",),
            variadic=True,
            multiple=True,
            attrs=("graph", "residuals", "broken"),
            eager=lambda *arrays, graph, residuals, broken: self.run(arrays, residuals),
            abstract=self._abstract,
            vjp=self.vjp,
            saves=(frozenset(range(len(graph.inputs))),),
            saves_out=(False,),
            partial_vjp=True,
            takes_complex=True,
        )
        self._gradients: dict[tuple[int, ...], GradientProgram] = {}
        self._derivatives: dict[tuple[int, ...], ProgramOp] = {}

    def _abstract(self, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, ...]:
        return tuple(Aval(a.aval.shape, a.aval.dtype) for a in self.graph.outputs)

    @cached_property
    def joint(self) -> Joint:
        return differentiate(self.graph, self.wrt, self.seeded)

    @cached_property
    def split(self) -> Split:
        return split_joint(self.joint)

    @cached_property
    def forward(self) -> Program:
        """inputs -> outputs + what backward saves."""
        return self._compile(self.split.forward, self.unfused)

    def gradients_from(self, present: tuple[int, ...]) -> GradientProgram:
        """The backward program if gradients arrive at the seeds with these numbers."""
        if present not in self._gradients:
            new = GradientProgram(self.joint, self.split, present, self._compile)
            self._gradients.setdefault(present, new)
        return self._gradients[present]

    @property
    def whole_gradient(self) -> GradientProgram:
        """The backward program if gradients arrive at all seeds."""
        return self.gradients_from(tuple(range(len(self.seeded))))

    @property
    def backward(self) -> Program:
        """used inputs + saved + seeds -> gradients."""
        return self.whole_gradient.program

    def _compile(self, graph: Graph, unfused: Collection[int] = ()) -> Program:
        program = compile_graph(graph, self.target, unfused=unfused)
        self.count(program)
        return program

    def derivative(self, present: tuple[int, ...]) -> ProgramOp:
        """inputs + present seeds -> gradients, as a differentiable op that recomputes everything."""
        if present not in self._derivatives:
            graph = self.gradients_from(present).graph
            wrt = (*self.wrt, *range(len(self.joint.inputs), len(graph.inputs)))
            new = ProgramOp(graph, wrt, range(len(graph.outputs)), self.target, self.count)
            self._derivatives.setdefault(present, new)
        return self._derivatives[present]

    @cached_property
    def copied(self) -> frozenset[int]:
        """Positions of the inputs that are overwritten after the call and that a gradient reads."""
        graph = self.whole_gradient.graph
        read = {a for node in graph.nodes for a in node.ins} | set(graph.outputs)
        return frozenset(k for k in self.changed if self.joint.inputs[k] in read)

    def _before_changes(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """``operands`` as backward will need them after the caller has overwritten some."""
        kept = list(operands)
        for k in self.changed:
            x = operands[k]
            data = x._data if isinstance(x, Tensor) else np.asarray(x)
            kept[k] = Tensor(data.copy() if k in self.copied else data)  # what no gradient reads has any data
        return tuple(kept)

    def run(self, arrays: Sequence[Any], residuals: list[Any]) -> list[np.ndarray[Any, Any]]:
        """The outputs; what backward needs is put into ``residuals``."""
        inputs = [contiguous(_as_array(x, v.aval.dtype)) for x, v in zip(arrays, self.graph.inputs, strict=True)]
        outs = self.forward.run(inputs)
        saved = self.split.saved
        residuals[:] = outs[len(outs) - saved :] if saved else []
        return outs[: len(outs) - saved] if saved else outs

    def __call__(self, *operands: Any) -> tuple[Tensor, ...]:
        """Run the op and record it on the tape. Only the outputs in ``seeded`` get a history."""
        if current_interpreter.get().tracing:
            return evaluate(self.graph, operands, lambda op, xs, attrs: apply_op(op, *xs, **attrs))
        residuals: list[Any] = []
        arrays = [x._data if isinstance(x, Tensor) else x for x in operands]
        outs = tuple(Tensor(a) for a in self.run(arrays, residuals))
        if grad_enabled.get():
            self.attach(operands, outs, residuals)
        return outs

    def attach(self, operands: tuple[Any, ...], outs: tuple[Tensor, ...], residuals: list[Any]) -> None:
        """Give the outputs in ``seeded`` their history: this op, on these operands, before the
        caller changes any."""
        edges = tuple([edge_of(x) for x in operands])
        if all([edge is None for edge in edges]):
            for k in self.seeded:
                _lead_to_hidden_leaf(outs[k])
            return
        kept = self._before_changes(operands) if self.changed else operands
        node = Node(self.op, kept, {"graph": self.graph, "residuals": residuals, "broken": self.broken}, outs, edges)
        for k in self.seeded:
            out = outs[k]
            out.grad_fn, out._out_index, out._requires_grad = node, k, True
        for tape in open_tapes.get():
            tape.record(node, operands)

    def _check_finite(self, graph: Graph, operands: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Raise AnomalyError if ``graph`` made NaN or Inf of finite ``operands``, inputs and seeds."""
        arrays = [x._data if isinstance(x, Tensor) else x for x in operands]
        found = find_non_finite(graph, arrays, gradients)
        if found is not None:
            raise AnomalyError(f"the gradient of @jit function {self.graph.name!r} is not finite: {found[1]}")

    def vjp(
        self,
        g: Sequence[Tensor | None],
        _out: Any,
        *operands: Any,
        graph: Graph,
        residuals: list[Any],
        broken: Mapping[int, AutogradError],
    ) -> list[Any]:
        """Gradients of the inputs: by the backward program, or by a differentiable one if the tape
        is watching."""
        raise_kept(broken, [k for k, gx in enumerate(g) if gx is not None])
        arrived = [(k, gx) for k, output in enumerate(self.seeded) if (gx := g[output]) is not None]
        present, seeds = tuple([k for k, _ in arrived]), [gx for _, gx in arrived]
        part = self.gradients_from(present)
        gradients: Sequence[Any]
        if current_interpreter.get().tracing or grad_enabled.get():
            if not self.copied.isdisjoint(self.wrt):
                raise InPlaceError(
                    f"second derivative of @jit function {self.graph.name!r}: the call changed a tensor in place that its "
                    "gradient reads and flows to. Make the change in a call of its own, or .clone() the tensor first."
                )
            gradients = self.derivative(present)(*operands, *seeds)
        else:
            parts = [operands[k] for k in self.split.used]
            arrays = [x._data if isinstance(x, Tensor) else x for x in parts]
            arrays += [*residuals, *(s._data for s in seeds)]
            values = part.program.plan.graph.inputs
            inputs = [contiguous(_as_array(x, v.aval.dtype)) for x, v in zip(arrays, values, strict=True)]
            results = part.program.run(inputs)
            if anomaly_detection.get():
                self._check_finite(part.graph, [*operands, *seeds], results)
            gradients = [Tensor(a) for a in results]
        grads: list[Any] = [None] * len(self.graph.inputs)
        flowing = iter(gradients)
        for k, flows in zip(self.wrt, part.flows, strict=True):
            if flows:
                grads[k] = next(flowing)
        return grads
