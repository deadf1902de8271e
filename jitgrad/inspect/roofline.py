"""How near a kernel is to what the machine allows: the time of a copy of as many bytes, and of its own arithmetic."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jitgrad.core.fork import cached_property
from jitgrad.core.tensor import Tensor
from jitgrad.inspect.traffic import plan_traffic
from jitgrad.jit.decorator import JitFunction
from jitgrad.runtime.executor import thread_pool
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction
from jitgrad.runtime.executor.instructions import InstructionTable
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.native_runner import NativeFrame, NativeRunner
from jitgrad.runtime.program import Program

# Less is in the second-level cache, where a launch and the call around it weigh more than bytes do.
MIN_BYTES = 1 << 18
CACHED_BYTES = 1 << 14  # of a part of a kernel's arrays that stays in the first-level cache
MAX_CACHED_ROW = 1 << 18  # bytes of a row that stays in the second-level cache
LAUNCHES = 256  # of that part, so that the call around them does not count
TIMED_RUNS = 15


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step that runs alone.

    Attributes:
        median, fastest: of its samples.
        copy: the fastest sample of a kernel that reads and writes as many bytes, measured in turn
            with it; None of library calls, and of steps with less than 256 kB.
        arithmetic: the time it would take if all its elements were in the first-level cache, or the
            second-level one for long rows; None where a row does not fit, of transposes, and
            without machine code.
    """

    median: float
    fastest: float
    copy: float | None = None
    arithmetic: float | None = None


@dataclass(slots=True)
class Roofline:
    """Measures steps; copies of one size are compiled once."""

    _copies: dict[int, Callable[[], Any]] = field(default_factory=dict)
    _seconds: dict[int, float] = field(default_factory=dict)

    def time(self, single: Program, arrays: Sequence[np.ndarray[Any, Any]]) -> StepTime:
        """The time of ``single``, a program of one step, on ``arrays``, and its limits."""
        (traffic,) = plan_traffic(single.plan).values()
        nbytes = sum(traffic)
        (step,) = single.steps
        if not isinstance(step, Launch) or nbytes < MIN_BYTES:
            (samples,) = in_turn([lambda: single.run(arrays)])
            return StepTime(float(np.median(samples)), min(samples))
        samples, copies = in_turn([lambda: single.run(arrays), self.copying(nbytes)])
        arithmetic = arithmetic_seconds(single, step, nbytes, arrays)
        return StepTime(float(np.median(samples)), min(samples), min(copies), arithmetic)

    def copy_seconds(self, nbytes: int) -> float:
        """The fastest of some copies that read and write ``nbytes`` in all."""
        if nbytes not in self._seconds:
            (samples,) = in_turn([self.copying(nbytes)])
            self._seconds[nbytes] = min(samples)
        return self._seconds[nbytes]

    def copying(self, nbytes: int) -> Callable[[], Any]:
        """A call that reads and writes ``nbytes`` in all, by a kernel on all threads."""
        count = max(1, nbytes // 16)
        if count not in self._copies:
            source = Tensor(np.ones(count))
            function = JitFunction(lambda x: x.copy(), check="off")
            compiled = function.executable_for(function._signature.take((source,), {}))
            self._copies[count] = lambda: compiled.program.run([source._data])
        return self._copies[count]


def in_turn(calls: Sequence[Callable[[], Any]]) -> list[list[float]]:
    """The times of each of ``calls``, in turn, after one call of each."""
    samples: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(TIMED_RUNS):
        for call, own in zip(calls, samples, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return samples


def arithmetic_seconds(
    single: Program, launch: Launch, nbytes: int, arrays: Sequence[np.ndarray[Any, Any]]
) -> float | None:
    """The time of ``launch``, the step of ``single``, at the rate of its first iterations, run again and again."""
    lowered, schedule = launch.step.lowered, launch.step.lowered.schedule
    row = nbytes // schedule.iterations
    count = max(1, min(schedule.block_size, schedule.iterations, CACHED_BYTES // max(1, row)))
    if row > MAX_CACHED_ROW or schedule.transposed or not isinstance(single.runner, NativeRunner):
        return None
    if schedule.nontemporal:  # stores past the caches go to memory every time
        ordinary = replace(schedule, nontemporal=frozenset())
        launch = Launch.of(launch.step, single.target.compile(lowered.kernel, ordinary))
    frame = NativeFrame(_FirstIterations(single, launch, count))
    (samples,) = in_turn([lambda: frame.run(arrays, [])])
    threads = min(thread_pool.get_num_threads(), schedule.blocks)
    return min(samples) / LAUNCHES / count * schedule.iterations / threads


class _FirstIterations(NativeRunner):
    """Launches the first ``count`` iterations of a kernel many times, without its epilogue."""

    def __init__(self, program: Program, launch: Launch, count: int) -> None:
        super().__init__(program)
        self.launch = launch
        self.count = count

    @cached_property
    def parts(self) -> list[InstructionTable | LibraryCall]:
        table = InstructionTable(self._base)
        for _ in range(LAUNCHES):
            table.add(Instruction(KERNEL, self.launch.kernel.main_code, self.launch.args, self.count, self.count))
        return [table]
