"""The emulated target: CUDA kernel text, run by the emulator on NumPy arrays. It needs no GPU, and
no user sees it: tests and tools register it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda import emulator
from jitgrad.backends.cuda.emit import emit_kernel
from jitgrad.backends.cuda.launch import LaunchShape, epilogue_launch, kernel_launch
from jitgrad.backends.cuda.schedule import CudaSchedule, cuda_tuning, schedule
from jitgrad.backends.python import Arrays, PythonFrame, PythonRunner, PythonTarget
from jitgrad.compiler.lowering.kernel_ir import Kernel, Schedule
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.compiler.tuning import Tuning
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.program import Program

CAPABILITY = (9, 0)


@dataclass(frozen=True, slots=True)
class EmulatedCode:
    """One function of a kernel, as the emulator takes it."""

    source: Source
    entry: str
    functions: Mapping[str, Callable[..., Any]]


class EmulatedTarget(PythonTarget):
    """Schedules and writes kernels for CUDA, and runs them in the emulator."""

    name = "emulated"
    tuning: Tuning = cuda_tuning(CAPABILITY)

    def schedule(self, nest: LoopNest) -> CudaSchedule:
        return schedule(nest, self.tuning, CAPABILITY)

    def emit(self, kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
        return emit_kernel(kernel, schedule)

    def load(self, kernel: Kernel, source: Source, entry: str) -> Any:
        return EmulatedCode(source, entry, user_functions(kernel))

    def runner(self, program: Program) -> EmulatedRunner:
        return EmulatedRunner(program)


class EmulatedRunner(PythonRunner):
    """Runs ``program`` step by step."""

    def frame(self) -> EmulatedFrame:
        return EmulatedFrame(self.program)


class EmulatedFrame(PythonFrame):
    """Launches kernels in the emulator; addresses are those of NumPy's memory."""

    def launch(self, step: Launch, arrays: Arrays) -> None:
        schedule = step.step.lowered.schedule
        assert isinstance(schedule, CudaSchedule)
        self.start(step.kernel.main_code, kernel_launch(step.step.lowered.kernel, schedule), step.args, arrays)

    def finish(self, step: Launch, arrays: Arrays) -> None:
        if step.kernel.epilogue is not None:
            schedule = step.step.lowered.schedule
            assert isinstance(schedule, CudaSchedule)
            shape = epilogue_launch(step.step.lowered.kernel, schedule)
            self.start(step.kernel.epilogue_code, shape, step.epilogue_args, arrays)

    def start(self, code: EmulatedCode, shape: LaunchShape, slots: Sequence[ArgSlot], arrays: Arrays) -> None:
        """Run one function of a kernel."""
        allocations: dict[int, tuple[np.ndarray[Any, Any], int]] = {}
        words = []
        for slot in slots:
            if isinstance(slot, int):
                words.append(slot)
                continue
            buffer, offset = slot
            memory = self.bytes_of(buffer, *arrays)
            words.append(memory.__array_interface__["data"][0] + offset)
            allocations[words[-1]] = memory, offset
        words.append(shape.iterations)
        args = code.source, code.entry, code.source.params, shape.blocks, shape.threads, words
        emulator.launch(*args, allocations.__getitem__, code.functions)
