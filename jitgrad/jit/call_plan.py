"""The steps of a call in order: the general path interprets them, and a fast call is their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Donated
from jitgrad.jit.argument_check import CheckArguments
from jitgrad.jit.building_steps import BuildResult, InvalidateDonated, WrapResults
from jitgrad.jit.decided import CheckDecided
from jitgrad.jit.fast_call import FastCall, FastCallWriter, NotSupportedError
from jitgrad.jit.input_steps import (
    CallState,
    CheckContiguous,
    CheckDevices,
    CheckGradients,
    CheckGuard,
    CheckOrders,
    CheckOverlap,
    CheckShared,
    ReadInputs,
)
from jitgrad.jit.number_check import CheckNumbers
from jitgrad.jit.prepared_arrays import OrderChanged, PrepareArrays
from jitgrad.jit.result_steps import AttachHistory, KeepForCheckpoint, RunProgram, WriteData
from jitgrad.jit.trace_result import TraceResult
from jitgrad.jit.writable_check import CheckWritable
from jitgrad.runtime.program_op import ProgramOp


class CallStep(Protocol):
    """One step of a call; ``run`` and the text of ``write`` do the same.

    The text may handle fewer calls: it returns MISS before the call has changed anything, and the
    general path follows. A step without a text raises NotSupportedError.
    """

    def run(self, call: CallState) -> str | None:
        """Do the step; the reason if the trace is no longer valid."""

    def write(self, w: FastCallWriter) -> None:
        """Add the text that does the step."""


@dataclass(frozen=True, eq=False, slots=True)
class CallPlan:
    """All steps of a call of one executable.

    A fast call for ``f(x, w)`` with one result is about::

        def fast_call(args, kwargs):
            if type(args) is not tuple or len(args) != 2: return MISS            # CheckArguments
            args_0, args_1, = args
            if type(args_0) is not Tensor or args_0._aval is not V0 ...: return MISS
            if guard() is not None: return MISS                                  # CheckGuard
            p0 = args_0._address or usable_address(args_0)                       # ReadInputs
            ...
            o0, q0 = take(S0, D0)                                                # RunProgram
            try: frame = frames.pop()
            except IndexError: frame = new_frame()
            pack(frame.bases, 0, p0, p1, q0)
            (pool.pool or current_pool()).run(frame.address, frame.count)
            frames.append(frame)
            t0 = of_result(o0, R0, q0)                                           # WrapResults
            return t0                                                            # BuildResult
    """

    checks: Sequence[CallStep]  # find out whether the executable applies to the call
    reads: Sequence[CallStep]  # find the program's inputs
    execution: Sequence[CallStep]  # compute the program's outputs
    decided: CheckDecided  # the first step of the completion
    completion: Sequence[CallStep]  # change outside state and make the result
    invalidation: InvalidateDonated  # the step of the completion that also follows an eager run

    def fast_call(self, w: FastCallWriter) -> FastCall | None:
        """A function ``args, kwargs -> result or MISS``; None if there can be none.

        There is none for very many arguments, and for one tensor at several places of a long list.
        """
        try:
            for step in (*self.checks, *self.reads, *self.execution, *self.completion):
                step.write(w)
        except NotSupportedError:
            return None
        return w.compile()


def plan_call(
    traced: TraceResult, prepare: PrepareArrays, op: ProgramOp | None, origin: Origin, donated: tuple[int, ...]
) -> CallPlan:
    """The steps of a call; ``op`` is the function as an op if gradients flow through it."""
    program = prepare.program
    tombstone = Donated(f"@jit function {traced.graph.name!r} at {origin.full()}")
    invalidation = InvalidateDonated(traced, donated, tombstone)
    reshaped = {result.source for result in traced.results if result.through}  # whose order decides what results share
    history = (AttachHistory(op),) if op is not None else ()
    effects = (WriteData(traced, program, origin), WrapResults(traced))
    return CallPlan(
        checks=(
            CheckArguments(),
            CheckNumbers(traced),
            CheckGuard(traced.guard),
            CheckShared(traced),
            CheckDevices(traced),
            CheckOrders(traced),
            CheckGradients(traced),
        ),
        reads=(
            ReadInputs(traced, program.read),
            CheckWritable(traced, origin),
            CheckOverlap(traced, origin),
            CheckContiguous(traced, origin),
            KeepForCheckpoint(traced),
            OrderChanged(tuple([k for k in prepare.overwritten if traced.sources[k] not in reshaped])),
        ),
        execution=(prepare, RunProgram(program)),
        decided=(decided := CheckDecided(traced)),
        completion=(decided, *history, *effects, invalidation, BuildResult(traced)),
        invalidation=invalidation,
    )


def interpret(steps: Iterable[CallStep], call: CallState) -> str | None:
    """Do ``steps`` in order, up to the first that returns a reason."""
    for step in steps:
        if (reason := step.run(call)) is not None:
            return reason
    return None
