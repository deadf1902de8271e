"""Runs a program on the CUDA device: kernels and matrix products in order, library calls on the host."""

from __future__ import annotations

from typing import Any

from jitgrad.backends.base import AddressSpace
from jitgrad.backends.cuda_target.device_program import DeviceProgram, device_call, is_empty, transform_of
from jitgrad.backends.cuda_target.frame import CudaFrame
from jitgrad.core.fork import cached_property
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.device.driver import PRODUCTS
from jitgrad.runtime.executor.gemm import gemms_of
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program


class CudaRunner:
    """Runs ``program`` on ``device``."""

    tiled_products: frozenset[Any] = frozenset()
    interruptible = False
    repeats = False

    def __init__(self, program: Program, device: CudaDevice, results_on_host: bool) -> None:
        self.program = program
        self.device = device
        self.results_on_host = results_on_host
        written = {p.location.buffer for p in program.plan.outputs if p.location is not None}
        self.address_space: AddressSpace | None = None if results_on_host else AddressSpace.DEVICE
        self.overwritten: tuple[int, ...] = tuple(k for k, buffer in enumerate(program.plan.inputs) if buffer in written)
        device.pool.add_holder(self, last=True)

    @cached_property
    def code(self) -> DeviceProgram:
        """What the device does, with the kernels loaded."""
        return DeviceProgram(self.program, self.device)

    @property
    def launched(self) -> str:
        return "as one CUDA graph" if self.code.has_graph else ""

    def frame(self) -> CudaFrame:
        return CudaFrame(self.code, self.overwritten, self.results_on_host)

    def release(self) -> None:
        """Let go of the memory of frames that no call uses, and of their graphs, because memory is short."""
        self.program.frames.clear()

    def computed_by(self, call: LibraryCall) -> str:
        if is_empty(call):
            return "nobody: no elements"
        if gemms_of(call.step, PRODUCTS) is not None:
            return "cuBLAS"
        if transform_of(call) is not None:
            return "cuFFT"
        if device_call(call) is not None:
            return "a kernel"
        return "the host" if self.code.host_work.first_result(call) is None else "the host, before the step"
