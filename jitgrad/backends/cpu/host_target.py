"""What the targets in this process's memory share: the CPU's kernel text, NumPy arrays, and one
cache of kernels each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from jitgrad.backends.base import CompiledLaunch, KernelCache
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.emit import emit_kernel
from jitgrad.backends.cpu.schedule import cpu_tuning, schedule
from jitgrad.compiler.lowering.kernel_ir import Kernel, Schedule
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.compiler.pipeline import PASSES, Pass
from jitgrad.compiler.plan import OpStep, Plan
from jitgrad.compiler.recompute.limit import MemoryBudget
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Dtype
from jitgrad.core.ir import Graph
from jitgrad.eager.buffer_pool import POOL
from jitgrad.runtime.executor import fastcall, instruction_loop
from jitgrad.runtime.executor.tiled_products import expect_products
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.native_runner import NativeRunner
from jitgrad.runtime.program import Program


class HostTarget(ABC):
    """A target whose kernels read and write NumPy arrays."""

    device = "cpu"
    tuning: Tuning = cpu_tuning()
    passes: Sequence[Pass] = PASSES
    memory_budget: MemoryBudget | None = None
    runs_loops: bool = True
    native: bool = False

    def __init__(self) -> None:
        self._kernels = KernelCache(self.load)

    @abstractmethod
    def load(self, kernel: Kernel, source: Source, entry: str) -> Any:
        """The function ``entry``, "kernel" or "epilogue", of the text ``source``."""

    def schedule(self, nest: LoopNest) -> Schedule:
        return schedule(nest, self.tuning)

    def emit(self, kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
        return emit_kernel(kernel, schedule)

    def compile(self, kernel: Kernel, schedule: Schedule) -> CompiledLaunch:
        return self._kernels.find(kernel, schedule, *self.emit(kernel, schedule))

    def allocate(self, shape: tuple[int, ...], dtype: Dtype) -> Any:
        return POOL.empty(shape, dtype)

    def constant(self, array: Any) -> Any:
        return array.copy()

    def library_call(self, step: OpStep, slots: Mapping[Buffer, int], plan: Plan) -> LibraryCall:
        return LibraryCall(step, slots, len(plan.inputs), plan.external, native=False)


class NativeTarget(HostTarget):
    """A target whose kernels are machine code, which the instruction loop runs without Python."""

    native = True

    def warm_up(self) -> None:
        instruction_loop.loop()
        fastcall.call_code()

    def expect(self, graph: Graph) -> None:
        expect_products(graph)

    def library_call(self, step: OpStep, slots: Mapping[Buffer, int], plan: Plan) -> LibraryCall:
        return LibraryCall(step, slots, len(plan.inputs), plan.external, native=True)

    def runner(self, program: Program) -> NativeRunner:
        return NativeRunner(program)
