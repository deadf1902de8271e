"""A traced @jit function with its compiled program and the plan of a call."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from jitgrad.backends.base import Target
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.loops.loop_op import nodes_of
from jitgrad.compiler.lowering.layout import BufferRole
from jitgrad.compiler.pipeline import Watcher, ignore
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import ArgumentError
from jitgrad.core.gc_paused import gc_paused
from jitgrad.core.ir import Value
from jitgrad.core.op import REGISTRY, Kind
from jitgrad.core.origin import Origin
from jitgrad.core.state_locks import holding, locks_of
from jitgrad.core.tensor import Tensor
from jitgrad.jit.call_plan import CallPlan, interpret, plan_call
from jitgrad.jit.decided import DecidedOtherwise, Outcomes
from jitgrad.jit.fast_call import FastCall, FastCallWriter
from jitgrad.jit.input_steps import CallState
from jitgrad.jit.interrupted_calls import complete, remember
from jitgrad.jit.prepared_arrays import PrepareArrays
from jitgrad.jit.signature import Call
from jitgrad.jit.trace_result import TraceResult
from jitgrad.runtime.executor.deferred_interrupts import deferring
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import ProgramOp, compile_graph


def _in_turn(fast_call: FastCall, turn: AbstractContextManager[Any]) -> FastCall:
    """``fast_call`` while it holds ``turn``."""

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with turn:
            return fast_call(args, kwargs)

    return call


class Executable:
    """A traced function with its compiled program and the plan of a call.

    A function through which gradients flow to its arguments runs as a differentiable op (``op``).
    Any other, such as a whole training step, runs as a plain program that may write new state over
    the old.

    Attributes:
        program: what a call runs (of a differentiable function: the forward program).
        overwritten: positions of the program's inputs whose memory it writes.
        donated: positions of the arguments that a call invalidates.
        donated_used: positions of the inputs that are donated and overwritten.
        turn: holds the locks of the outside tensors that a call changes.
        with_unfused: the same executable, but for kernels, given by number, whose ops run one by one.
        without_fast_call: whether calls must take the general path.
        agreed: whether the program decided as the trace in the first call, so that both could be compared.
        fast_call: the last that was made.
        first_call_done: whether a call has used it. One that `compile` or `explain` made is still to be checked.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        traced: TraceResult,
        target: Target,
        count: Callable[[Program], None],
        watch: Watcher = ignore,
        donated: Sequence[int] = (),
        unfused: Collection[int] = (),
    ) -> None:
        """Compile the program of ``traced``; ``count`` is told of it. The ops of the kernels with numbers
        ``unfused`` run one by one."""
        self.with_unfused: Callable[..., Executable] = partial(Executable, function, traced, target, donated=donated)
        self.traced = traced
        self.target = target
        self.without_fast_call = False
        self.first_call_done = False
        self.agreed = True
        self.fast_call: FastCall | None = None
        self.donated: tuple[int, ...] = self._donated(donated)
        flows = traced.wants_grad, traced.differentiable
        self.op: ProgramOp = ProgramOp(traced.graph, *flows, target, count, traced.written, unfused, traced.broken)
        self.program: Program = self.op.forward if traced.differentiable else self._compile(count, watch, unfused)
        self.program.state_on_host = self._state_on_host()
        self.program.inputs_on_host = [k for k, s in enumerate(traced.sources) if _is_tensor_on_host(s)]
        if not traced.differentiable:
            returned = {output for r in traced.results for output in (r.output, r.base) if output is not None}
            self.program.returned = sorted(returned)
            self.program.written_back = {} if self.traced.decided else self._written_back()
        plan = self.program.plan
        written = {p.location.buffer for p in plan.outputs if p.location is not None}
        written.update(plan.inputs[k] for k in self.program.written_back.values())
        self.overwritten: tuple[int, ...] = tuple(k for k, buffer in enumerate(plan.inputs) if buffer in written)
        self.donated_used: tuple[int, ...] = tuple(k for k in traced.positions_of(self.donated) if k in self.overwritten)
        prepare = PrepareArrays(self.program, self.overwritten, self.donated_used)
        history = self.op if traced.differentiable else None
        self.turn: AbstractContextManager[Any] = holding(self._locks())
        self.plan: CallPlan = plan_call(traced, prepare, history, Origin.of_code_of(function), self.donated)

    def _locks(self) -> tuple[RLock, ...]:
        """The locks of the outside tensors that a call changes.

        None if the program calls functions of the user, which may wait for other threads.
        """
        opaque = [node.op for node in nodes_of(self.traced.graph) if node.op.kind is Kind.OPAQUE]
        if any(REGISTRY.get(op.name) is not op for op in opaque):
            return ()
        return locks_of([s.key for s in map(InputSource.of_owner, self.traced.changed()) if s.kind is SourceKind.TENSOR])

    def _donated(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The ``positions`` without arguments that the function returns unchanged."""
        inside = "Call backward() or jg.value_and_grad inside the function"
        flow = f"@jit function {self.traced.graph.name!r} has {{}}, and gradients flow from its result to its arguments, so that"
        if positions and self.traced.differentiable:
            raise ArgumentError(f"{flow.format('donate=')} a later backward() needs them. {inside}, or drop donate=.")
        if self.target.memory_budget is not None and self.traced.differentiable:
            raise ArgumentError(
                f"{flow.format('memory_budget=')} what a later backward() needs outlives the call, and no budget limits it. "
                f"{inside}, call it under jg.no_grad(), or drop memory_budget=."
            )
        sources = [r.source for r in self.traced.made_by_calls if r.source is not None]
        returned = {s.key for s in sources if s.kind is SourceKind.ARGUMENT}
        return tuple(k for k in positions if k not in returned)

    def _compile(self, count: Callable[[Program], None], watch: Watcher, unfused: Collection[int]) -> Program:
        graph = self.traced.graph
        state = self._state_outputs()
        changed = set(state.values())
        donated = [] if self.traced.decided else [graph.inputs[k] for k in self.traced.positions_of(self.donated)]
        free = [v for v in donated if v not in changed]
        program = compile_graph(graph, self.target, {**self._outputs_over(free), **state}, free, watch, unfused)
        count(program)
        return program

    def _state_outputs(self) -> dict[int, Value]:
        """Outputs that are only new data of an input: the program may overwrite the old data.

        None where another program may be right for the call, which then needs the old data.
        """
        if self.traced.decided:
            return {}
        graph = self.traced.graph
        inputs = dict(zip(self.traced.sources, graph.inputs, strict=True))
        uses = Counter(graph.outputs)
        return {
            e.output: inputs[e.target]
            for e in self.traced.effects
            if not e.replaced and e.target in inputs and uses[graph.outputs[e.output]] == 1
        }

    def _state_on_host(self) -> tuple[int, ...]:
        """Outputs that are new data of outside tensors on the host."""
        on_host = [e for e in self.traced.effects if _is_tensor_on_host(e.target)]
        return tuple([e.output for e in on_host])

    def _written_back(self) -> dict[int, int]:
        """Outputs that are new data of outside tensors on a device, but not in their memory; the inputs that these are."""
        inputs = {source: k for k, source in enumerate(self.traced.sources)}
        found = {}
        for e in self.traced.effects:
            on_device = e.target.kind is SourceKind.TENSOR and isinstance(e.target.key._data, DeviceArray)
            k = inputs.get(e.target, -1)
            if e.history or e.replaced or not on_device or k not in self.program.read:
                continue  # others may have gaps
            place = self.program.plan.outputs[e.output]
            same = place.aval.shape == e.target.key.shape and place.aval.dtype == e.target.key.dtype
            at = place.location
            if same and at is not None and at.buffer.role is not BufferRole.INPUT and at.is_contiguous(place.aval.shape):
                found[e.output] = k
        return found

    def _outputs_over(self, free: Sequence[Value]) -> dict[int, Value]:
        """Pairs results with the donated inputs ``free`` of the same shape and dtype, in order."""
        waiting: dict[tuple[Any, Any], deque[Value]] = {}
        for value in free:
            waiting.setdefault((value.aval.shape, value.aval.dtype), deque()).append(value)
        pairs: dict[int, Value] = {}
        for r in self.traced.results:
            if r.output is not None and r.output not in pairs:
                aval = self.traced.graph.outputs[r.output].aval
                if queue := waiting.get((aval.shape, aval.dtype)):
                    pairs[r.output] = queue.popleft()
        return pairs

    # --- a call -----------------------------------------------------------------------------------

    def still_valid(self, leaves: Sequence[Any]) -> str | None:
        """None if the environment is as it was while tracing, else what changed."""
        return interpret(self.plan.checks, CallState(leaves))

    def decides(self, outcomes: Outcomes) -> bool:
        """Whether the first decisions of the program are ``outcomes``."""
        return tuple([d.contents for d in self.traced.decided[: len(outcomes)]]) == outcomes

    def check_decided(self, leaves: Sequence[Any]) -> None:
        """Raises DecidedOtherwise if another program is right for the call."""
        if self.traced.decided:
            self.plan.decided.run(CallState(leaves, outputs=self.outputs(self.operands_before(leaves))))

    def decided_otherwise(self, outcomes: Outcomes) -> str:
        """Why the program is not right for a call that decides ``outcomes`` first, which only differ in the last."""
        decided = self.traced.decided[len(outcomes) - 1]
        return f"{decided.what} was {decided.contents} and is {outcomes[-1]}"

    def run(self, leaves: Sequence[Any]) -> Any:
        """The function's result for a call for which the executable is `still_valid`.

        Raises DecidedOtherwise if another one is right for the call; then nothing has changed.
        """
        call = CallState(leaves)
        with deferring(), self.turn:
            interpret(self.plan.reads, call)
            try:
                interpret(self.plan.execution, call)
            except Exception as error:
                if self.traced.decided:
                    raise DecidedOtherwise(None) from error
                raise
            complete(self.plan.completion, call)
        return call.result

    @gc_paused()
    def make_fast_call(self, call: Call) -> FastCall | None:
        """A function that replaces `still_valid` and `run` for the signature of ``call``."""
        if self.program.runner.address_space is None:
            return None
        writer = FastCallWriter(call, self.traced, self.program, self.donated_used)
        if (fast_call := self.plan.fast_call(writer)) is not None and self.traced.changes_state:
            remember(fast_call, writer, self.turn)
        return fast_call if fast_call is None or isinstance(self.turn, nullcontext) else _in_turn(fast_call, self.turn)

    def invalidate_donated(self, leaves: Sequence[Any]) -> None:
        """What a call does to its donated arguments, after an eager run in its place."""
        self.plan.invalidation.run(CallState(leaves))

    # --- parts of a call, for checks and tools ----------------------------------------------------

    def operands(self, leaves: Sequence[Any]) -> list[Any]:
        """The inputs of the program in this call: tensors, arrays and numbers."""
        call = CallState(leaves)
        interpret(self.plan.reads, call)
        return call.inputs

    def targets(self, leaves: Sequence[Any]) -> list[Any]:
        """The tensors and arrays whose data this call changes; a gradient may have another object after it."""
        return [effect.target.resolve(leaves) for effect in self.traced.effects]

    def operands_before(self, leaves: Sequence[Any]) -> list[Any]:
        """`operands`, with copies of those that a call may change."""
        operands = self.operands(leaves)
        for k, source in enumerate(self.traced.sources):
            x = operands[k]
            may_change = k in self.traced.written or source.kind is SourceKind.GRADIENT
            if may_change and not isinstance(x, (float, int)):
                operands[k] = Tensor(x._data.copy(), x._aval) if isinstance(x, Tensor) else x.copy()
        return operands

    def outputs(self, operands: Sequence[Any]) -> list[np.ndarray]:
        """The program's outputs for ``operands``, which it does not overwrite."""
        call = CallState((), preserve=True, inputs=list(operands))
        interpret(self.plan.execution, call)
        return call.outputs


def _is_tensor_on_host(source: InputSource) -> bool:
    """Whether ``source`` is an outside tensor whose data is on the host; a guard sees to it that it stays there."""
    return source.kind is SourceKind.TENSOR and isinstance(source.key._data, np.ndarray)
