"""Explains a compiled function: its steps, ops that were not fused and why, and values kept for backward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from jitgrad.backends.base import Target
from jitgrad.compiler.fusion.fuser import Fuser
from jitgrad.compiler.isomorphic import outline
from jitgrad.compiler.lowering.layout import BufferRole
from jitgrad.compiler.passes.fuse import fuse
from jitgrad.compiler.plan import KernelStep, OpStep, Step
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.origin import Origin
from jitgrad.inspect.memory import BlockRunReport, BudgetReport, Kept, kept_values, located, ops_by_line
from jitgrad.inspect.origins import lines_text
from jitgrad.inspect.roofline import StepTime
from jitgrad.inspect.stages import has_backward, program_graph
from jitgrad.inspect.traffic import plan_traffic, readable_bytes
from jitgrad.jit.executable import Executable
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.loop_call import LoopCall
from jitgrad.runtime.program import Program

SHOWN_OPS = 16  # of a step, in its line; `StepReport.ops` has all
SHOWN_REASONS = 40
SHOWN_SUPPOSED = 8
SHOWN_VIEWS = 4  # one after the other


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step of a program, or a view, which takes no time.

    Attributes:
        index: position among the steps and views.
        kind: "fused" (a kernel), "unfused" (a library call) or "view".
        name: of the kernel or op.
        ops: the ops in it, in program order.
        outs: its results, as text such as ``f32[4,4]``.
        inputs, outputs: the number of arrays that it reads and writes.
        origins: the user's lines.
        bytes_read, bytes_written: every distinct array once.
        seconds: median time of this step alone, if it was measured.
        fastest: the shortest of these times.
        copy_seconds: of a kernel of 256 kB and more: the shortest time of a copy of as many bytes,
            measured in turn with it.
        arithmetic_seconds: its time if all elements were in the first-level cache, where that was measured.
        by: the implementation of a matrix product, or of a system of equations (solve, triangular_solve, inverse,
            determinant, slogdet, cholesky): "BLAS", "tiles" (jitgrad's machine code for few rows, columns or terms),
            "small matrices" (its machine code for those), "LAPACK" (large matrices, factored once) or "NumPy"; of a read or
            a change at indices: "machine code" or "NumPy"; on a device, "cuBLAS", and "the host" for every op
            without a kernel.
    """

    index: int
    kind: str
    name: str
    ops: tuple[str, ...]
    outs: tuple[str, ...]
    inputs: int
    outputs: int
    origins: tuple[Origin, ...]
    bytes_read: int
    bytes_written: int
    seconds: float | None = None
    by: str = ""
    fastest: float | None = None
    copy_seconds: float | None = None
    arithmetic_seconds: float | None = None

    def timed(self, took: StepTime) -> StepReport:
        """This report with its times."""
        seconds, least = took.median, took.fastest
        return replace(self, seconds=seconds, fastest=least, copy_seconds=took.copy, arithmetic_seconds=took.arithmetic)

    @property
    def gigabytes_per_second(self) -> float | None:
        """Bytes moved over time, if it was measured."""
        return (self.bytes_read + self.bytes_written) / self.seconds / 1e9 if self.seconds else None

    @property
    def of_limit(self) -> float | None:
        """The part of its shortest time that its bytes or its arithmetic take, whichever takes longer."""
        if self.fastest is None or self.copy_seconds is None:
            return None
        return max(self.copy_seconds, self.arithmetic_seconds or 0.0) / self.fastest

    @property
    def limit(self) -> str:
        """What takes longer: "memory" or "arithmetic"; "" if it was not measured."""
        if self.copy_seconds is None:
            return ""
        return "arithmetic" if (self.arithmetic_seconds or 0.0) > self.copy_seconds else "memory"

    def __str__(self) -> str:
        results = ", ".join(self.outs[:2]) + (f" +{len(self.outs) - 2}" if len(self.outs) > 2 else "")
        ops = " ".join(self.ops[:SHOWN_OPS]) + (f" +{len(self.ops) - SHOWN_OPS}" if len(self.ops) > SHOWN_OPS else "")
        counts = f"{self.inputs} in, {self.outputs} out   " if self.kind == "fused" else ""
        line = f"{self.index:4}  {results:<12} {self.kind:<7} {counts}{ops}" + (f" by {self.by}" if self.by else "")
        if self.kind != "view":
            line += f"   {readable_bytes(self.bytes_read + self.bytes_written)}"
        if self.seconds is not None:
            line += f"   {self.seconds * 1e6:.1f} us"
            if self.bytes_read + self.bytes_written:
                line += f", {self.gigabytes_per_second:.2f} GB/s"
            if self.of_limit is not None:
                line += f", {self.of_limit:.0%} of {self.limit}"
        lines = lines_text(self.origins)
        return f"{line}   # {lines}" if lines else line


@dataclass(frozen=True, slots=True)
class Apart:
    """Two neighbouring ops in different kernels, and the reason."""

    producer: str
    producer_origin: Origin
    consumer: str
    consumer_origin: Origin
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.producer}{located(self.producer_origin)} -> {self.consumer}{located(self.consumer_origin)}: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """One program in all its parts; printing it shows them.

    Attributes:
        name: of the function.
        op_count: the number of ops in the trace (of a backward program: before its passes).
        steps: kernels, library calls and views in order.
        apart: neighbouring ops that were not fused, with the reason.
        arena_bytes: memory for temporaries.
        in_place: the number of results written over an input (parameters, optimiser state).
        kept: values that backward needs, saved or recomputed.
        backward: the explanation of the backward program; None where no gradients flow.
        device: where it runs, "cpu" or "cuda".
        block_runs: kernels that run block by block.
        budget: how the program keeps to its memory budget; None if it has none.
        supposed: what the program supposes of values that Python code asks for; calls compare them.
        launched: how a device starts the steps, in words; "" for one after the other.
        turns: the programs that loops run in each turn, in the order of the loops.
    """

    name: str
    op_count: int
    steps: tuple[StepReport, ...]
    apart: tuple[Apart, ...]
    arena_bytes: int
    in_place: int
    kept: tuple[Kept, ...] = ()
    backward: Explanation | None = None
    device: str = "cpu"
    block_runs: tuple[BlockRunReport, ...] = ()
    budget: BudgetReport | None = None
    launched: str = ""
    supposed: tuple[str, ...] = ()
    turns: tuple[Explanation, ...] = ()

    @property
    def fused(self) -> int:
        """The number of kernel launches."""
        return sum(step.kind == "fused" for step in self.steps)

    @property
    def unfused_ops(self) -> list[str]:
        """The ops that are library calls, in order. Views are not included: they take no time."""
        return [step.name for step in self.steps if step.kind == "unfused"]

    @property
    def launches(self) -> int:
        """Kernels and library calls together."""
        return self.fused + len(self.unfused_ops)

    @property
    def bytes_read(self) -> int:
        return sum(step.bytes_read for step in self.steps)

    @property
    def bytes_written(self) -> int:
        return sum(step.bytes_written for step in self.steps)

    @property
    def saved(self) -> list[Kept]:
        """Values that forward keeps in memory for backward."""
        return [k for k in self.kept if k.saved]

    @property
    def recomputed(self) -> list[Kept]:
        """Values that backward recomputes."""
        return [k for k in self.kept if not k.saved]

    def timed(self, times: Sequence[StepTime]) -> Explanation:
        """This explanation with the times of every kernel and library call, in order."""
        remaining = iter(times)
        return replace(self, steps=tuple(s if s.kind == "view" else s.timed(next(remaining)) for s in self.steps))

    def notes(self) -> Iterator[str]:
        """What is said of the memory budget, and of what the program supposes."""
        yield from self.budget.lines() if self.budget is not None else ()
        for what in self.supposed[:SHOWN_SUPPOSED]:
            yield f"supposes: {what}; other calls run eagerly once, or another program"
        if (more := len(self.supposed) - SHOWN_SUPPOSED) > 0:
            yield f"supposes {more} more values"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        calls = len(self.unfused_ops)
        place = "" if self.device == "cpu" else f", on {self.device}{self.launched and f' {self.launched}'}"
        yield f"{self.name}: {self.op_count} ops -> {self.launches} steps, {self.fused} fused, {calls} unfused{place}"
        for is_view, group in groupby(self.steps, lambda step: step.kind == "view"):
            steps = list(group)
            shown = steps[:SHOWN_VIEWS] if is_view else steps
            yield from map(str, shown)
            if len(shown) < len(steps):
                yield f"      and {len(steps) - len(shown)} more views"
        yield from map(str, self.block_runs)
        memory = f"reads {readable_bytes(self.bytes_read)}, writes {readable_bytes(self.bytes_written)}"
        memory += f"; temporaries {readable_bytes(self.arena_bytes)}"
        yield memory + (f"; {self.in_place} results written over inputs" if self.in_place else "")
        yield from self.notes()
        if self.apart:
            yield "not fused:"
            yield from (f"  {a}" for a in self.apart[:SHOWN_REASONS])
            if len(self.apart) > SHOWN_REASONS:
                yield f"  and {len(self.apart) - SHOWN_REASONS} more (see .apart)"
        if self.saved:
            yield f"saved for backward: {'; '.join(map(str, self.saved))}"
        if self.recomputed:
            yield f"recomputed in backward: {ops_by_line(self.recomputed)}"
        for turn in self.turns:
            yield ""
            yield from turn._lines()
        if self.backward is not None:
            yield ""
            yield from self.backward._lines()


def explain(compiled: Executable) -> Explanation:
    """The explanation of ``compiled``. This compiles its forward and backward programs, and runs nothing."""
    name, traced = compiled.traced.graph.name, compiled.traced
    before = program_graph(compiled)
    supposed = tuple(map(str, traced.decided))
    if not has_backward(compiled):
        return replace(explain_program(name, compiled.program, before, len(traced.graph.nodes)), supposed=supposed)
    op = compiled.op
    back = op.split.backward
    backward = explain_program(f"{name} backward", op.backward, back, len(back.nodes))
    forward = explain_program(name, op.forward, before, len(traced.graph.nodes))
    return replace(forward, supposed=supposed, kept=kept_values(before, back, op.split.saved), backward=backward)


def explain_program(name: str, program: Program, before: Graph, op_count: int) -> Explanation:
    """The explanation of one ``program``, compiled from the graph ``before``."""
    plan = program.plan
    calls = [call for call in program.steps if isinstance(call, LibraryCall)]
    by: dict[Step | TraceNode, str] = {call.step: program.runner.computed_by(call) for call in calls}
    traffic = dict[Step | TraceNode, tuple[int, int]](plan_traffic(plan).items())
    listed = _steps_and_views(plan.graph, plan.steps)
    steps = tuple(_step(k, s, *traffic.get(s, (0, 0)), by.get(s, "")) for k, s in enumerate(listed))
    runs = tuple(BlockRunReport.of(run, listed.index(plan.steps[run.first])) for run in plan.block_runs)
    written = {p.location.buffer for s in plan.steps for p in s.writes if p.location is not None}
    in_place = sum(buffer.role is BufferRole.INPUT for buffer in written)
    apart, device = _apart(before, program.target, program.tuning), program.target.device
    return Explanation(
        name,
        op_count,
        steps,
        apart,
        plan.arena_bytes,
        in_place,
        device=device,
        block_runs=runs,
        budget=BudgetReport.of(plan),
        launched=program.runner.launched,
        turns=tuple([_explain_turn(call) for call in calls if isinstance(call, LoopCall)]),
    )


def _explain_turn(call: LoopCall) -> Explanation:
    graph, by = call.body.graph, "" if call.instruction is not None else ", from Python"
    return explain_program(f"each of {call.length} turns of {graph.name}{by}", call.program, graph, len(graph.nodes))


def _steps_and_views(graph: Graph, steps: Sequence[Step]) -> list[Step | TraceNode]:
    """The steps in the order in which they run, and each view before the first step of a later node."""
    of = [step.of if isinstance(step, KernelStep) else step.node for step in steps]
    position, has_step = {node: k for k, node in enumerate(graph.nodes)}, set(of)
    views = [node for node in graph.nodes if node not in has_step]
    listed: list[Step | TraceNode] = []
    first = 0  # of the views that are not listed
    for step, node in zip(steps, of, strict=True):
        while first < len(views) and position[views[first]] < position.get(node, len(position)):
            listed.append(views[first])
            first += 1
        listed.append(step)
    return [*listed, *views[first:]]


def _step(index: int, step: Step | TraceNode, read: int, written: int, by: str) -> StepReport:
    if isinstance(step, TraceNode):
        names, results = (step.op.name,), tuple(str(v.aval) for v in step.outs)
        return StepReport(index, "view", step.op.name, names, results, 1, 1, (step.origin,), 0, 0)
    results = tuple(str(p.aval) for p in step.writes)
    inputs, outputs = len({a for a in step.node.ins if isinstance(a, Value)}), len(step.writes)
    if isinstance(step, OpStep):
        name, origin = step.op.name, step.node.origin
        return StepReport(index, "unfused", name, (name,), results, inputs, outputs, (origin,), read, written, by=by)
    kernel = step.lowered.kernel
    return StepReport(
        index, "fused", kernel.name, kernel.ops, results, inputs, outputs, step.origins, read, written
    )


def _apart(before: Graph, target: Target, tuning: Tuning) -> tuple[Apart, ...]:
    """Neighbouring ops that the fuser left in different kernels, each pair of lines once."""
    if not any(step.run is fuse for step in target.passes):
        return ()
    outlined = outline(before, tuning)
    pairs: dict[Apart, None] = {}
    for graph in outlined.graphs:
        fuser = Fuser(_before_fusing(graph, target, tuning), tuning)
        fuser.run()
        for r in fuser.refusals:
            homes = [fuser.find(fuser.home[node.outs[0]]) for node in (r.producer, r.consumer)]
            if homes[0] is not homes[1]:  # a refusal that another merge made obsolete
                pairs[_pair(r.producer, r.consumer, r.reason)] = None
    for producer, consumer, count in outlined.cuts():
        pairs[_pair(producer, consumer, f"{count} isomorphic subgraphs read this number, each in its own kernel")] = None
    return tuple(pairs)


def _pair(producer: TraceNode, consumer: TraceNode, reason: str) -> Apart:
    return Apart(producer.op.name, producer.origin, consumer.op.name, consumer.origin, reason)


def _before_fusing(graph: Graph, target: Target, tuning: Tuning) -> Graph:
    """The input of the fusion pass, which is the last one."""
    for step in target.passes[:-1]:
        graph = step(graph, tuning)
    return graph
