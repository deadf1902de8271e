"""The cuda target: kernels as PTX, and programs over arrays in the device's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jitgrad.backends.base import CompiledLaunch, KernelCache, user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.emit import emit_kernel
from jitgrad.backends.cuda.schedule import cuda_tuning, schedule
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.passes import device_passes
from jitgrad.backends.cuda_target.runner import CudaRunner
from jitgrad.compiler.lowering.kernel_ir import Kernel, Schedule
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.compiler.pipeline import Pass
from jitgrad.compiler.plan import OpStep, Plan
from jitgrad.compiler.recompute.limit import MemoryBudget
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Dtype
from jitgrad.core.ir import Graph
from jitgrad.device.cuda import cuda_device
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program


class CudaTarget:
    """Programs for the CUDA device.

    ``results_on_host``: whether they return ndarrays, for functions of tensors on the host; inputs
    may be on the host or on the device in any case.
    """

    name = device = "cuda"
    passes: Sequence[Pass] = device_passes()
    memory_budget: MemoryBudget | None = None
    runs_loops: bool = False
    native: bool = False

    def __init__(self, results_on_host: bool = False) -> None:
        self.results_on_host = results_on_host
        self._kernels = KernelCache(self.load)

    @property
    def capability(self) -> Capability:
        """The compute capability of the device. Raises CudaError if there is none."""
        return Capability(*cuda_device().driver.capability)

    @property
    def tuning(self) -> Tuning:
        return cuda_tuning(self.capability)

    def warm_up(self) -> None:
        cuda_device()  # says what is missing before a trace begins

    def expect(self, graph: Graph) -> None:
        """Nothing to compile ahead."""

    def schedule(self, nest: LoopNest) -> Schedule:
        return schedule(nest, self.tuning, self.capability)

    def emit(self, kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
        return emit_kernel(kernel, schedule)

    def load(self, kernel: Kernel, source: Source, entry: str) -> DeviceCode:
        """The function ``entry``, "kernel" or "epilogue", of the text ``source``."""
        return DeviceCode(source, entry, self.capability, user_functions(kernel))

    def compile(self, kernel: Kernel, schedule: Schedule) -> CompiledLaunch:
        return self._kernels.find(kernel, schedule, *self.emit(kernel, schedule))

    def allocate(self, shape: tuple[int, ...], dtype: Dtype) -> Any:
        return cuda_device().empty(shape, dtype)

    def constant(self, array: Any) -> Any:
        return array.copy() if self.results_on_host else cuda_device().from_host(array)

    def library_call(self, step: OpStep, slots: Mapping[Buffer, int], plan: Plan) -> LibraryCall:
        return LibraryCall(step, slots, len(plan.inputs), plan.external, native=False)

    def runner(self, program: Program) -> CudaRunner:
        return CudaRunner(program, cuda_device(), self.results_on_host)


CUDA = CudaTarget()
CUDA_FOR_HOST = CudaTarget(results_on_host=True)
