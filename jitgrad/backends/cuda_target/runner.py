"""Runs a program on the CUDA device: kernels and matrix products in order, library calls on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.launch import LaunchShape, epilogue_launch, kernel_launch
from jitgrad.backends.cuda.schedule import BLOCK_THREADS, CudaSchedule
from jitgrad.backends.cuda_target.device_call import CALL_THREADS, DeviceCall
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.indexed import find_access
from jitgrad.backends.cuda_target.lines import find_lines
from jitgrad.backends.cuda_target.windows import find_windows
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer
from jitgrad.compiler.plan import Place
from jitgrad.core.device_array import DeviceArray, copy_elements, to_host
from jitgrad.core.op import Kind
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.device.driver import Matrix, Product
from jitgrad.eager.run import checked_result, run_eagerly
from jitgrad.runtime.executor.gemm import Gemm, gemms_of
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program

BYTES = np.dtype(np.uint8)
_ALIGNMENT = 16  # of numbers that are copied to the device together


@dataclass(frozen=True, slots=True)
class _OnDevice:
    """A library call that a kernel of its own computes; ``what`` says in words what it does."""

    call: LibraryCall
    launch: DeviceCall
    function: int
    what: str


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A launch; an argument is a word, or a region of memory and an offset."""

    function: int
    blocks: int
    threads: int
    args: tuple[int | tuple[int, int], ...]


@lru_cache(maxsize=256)
def _code(source: Source, capability: Capability) -> DeviceCode:
    return DeviceCode(source, "kernel", capability, {})


class CudaRunner:
    """Runs ``program`` on ``device``."""

    tiled_products: frozenset[Any] = frozenset()

    def __init__(self, program: Program, device: CudaDevice, results_on_host: bool) -> None:
        self.program = program
        self.device = device
        self.results_on_host = results_on_host
        self.arena_region = len(program.slots)
        written = {p.location.buffer for p in program.plan.outputs if p.location is not None}
        self.overwritten = tuple(k for k, buffer in enumerate(program.plan.inputs) if buffer in written)
        self.steps: list[_Kernel | Gemm | _OnDevice | LibraryCall] = []
        for step in program.steps:
            if isinstance(step, Launch):
                self._add_kernels(step)
            elif (products := gemms_of(step.step)) is not None:
                self.steps += products
            else:
                self.steps.append(self._by_kernel(step) or step)

    def frame(self) -> CudaFrame:
        return CudaFrame(self)

    def computed_by(self, call: LibraryCall) -> str:
        if gemms_of(call.step) is not None:
            return "cuBLAS"
        return "a kernel" if self._device_call(call) is not None else "the host"

    def _device_call(self, call: LibraryCall) -> DeviceCall | None:
        """The kernel that computes ``call``: from arrays, into a whole array."""
        written = [p for _, p in call.writes]
        if any(p.location is None for _, p, _, _ in call.reads):
            return None
        if any(p.location is None or not p.location.is_contiguous(p.aval.shape) for p in written):
            return None
        arguments = call.op, call.avals, call.attrs
        return find_access(*arguments) or find_windows(*arguments) or find_lines(*arguments)

    def _by_kernel(self, call: LibraryCall) -> _OnDevice | None:
        launch = self._device_call(call)
        if launch is None:
            return None
        code = _code(launch.source, Capability(*self.device.driver.capability))
        origin = str(call.step.node.origin)
        what = f"{call.op} of {', '.join(map(str, call.avals))}" + (f" ({origin})" if origin else "")
        return _OnDevice(call, launch, code.function(self.device.driver), what)

    def _add_kernels(self, launch: Launch) -> None:
        """The kernel of ``launch``, and its epilogue as a second one."""
        lowered, kernel = launch.step.lowered, launch.kernel
        schedule = lowered.schedule
        assert isinstance(schedule, CudaSchedule)
        if schedule.iterations:
            self._add(kernel.main_code, launch.args, kernel_launch(lowered.kernel, schedule), schedule.threads)
        if kernel.epilogue is not None:
            self._add(kernel.epilogue_code, launch.epilogue_args, epilogue_launch(lowered.kernel, schedule), BLOCK_THREADS)

    def _add(self, code: DeviceCode, slots: Sequence[ArgSlot], shape: LaunchShape, threads: int) -> None:
        args = tuple([slot if isinstance(slot, int) else self.base(*slot) for slot in slots])
        function = code.function(self.device.driver)
        self.steps.append(_Kernel(function, shape.blocks, threads, (*args, shape.iterations)))

    def base(self, buffer: Buffer, offset: int) -> tuple[int, int]:
        """(region, offset) of an address: inputs and results are regions by their slots, the arena is the last."""
        region = self.program.slots.get(buffer)
        if region is not None:
            return region, offset
        return self.arena_region, self.program.plan.offsets[buffer] + offset


class CudaFrame:
    """The arena of one call at a time, and the addresses of its inputs and results."""

    def __init__(self, runner: CudaRunner) -> None:
        self.runner = runner
        self.device = runner.device
        self.arena = self.device.empty((max(runner.program.plan.arena_bytes, 1),), BYTES)
        self.bases: list[int] = []

    def run(self, inputs: Sequence[Any], results: list[Any], interruptible: bool = False) -> None:
        """Run all steps; numbers and arrays among ``inputs`` that are on the host are copied to the device."""
        runner, driver = self.runner, self.device.driver
        arrays = self._on_device(inputs)
        self.bases = [a.address for a in arrays] + [0 if a is None else a.address for a in results] + [self.arena.address]
        for step in runner.steps:
            if isinstance(step, _Kernel):
                bases = self.bases
                args = [a if type(a) is int else bases[a[0]] + a[1] for a in step.args]  # type: ignore[index]
                driver.launch(step.function, step.blocks, step.threads, args)
            elif isinstance(step, Gemm):
                driver.multiply(self._product(step))
            elif isinstance(step, _OnDevice):
                self._run_on_device(step, len(inputs), results)
            else:
                self._run_on_host(step, len(inputs), results)
        for k in runner.overwritten:
            if isinstance(inputs[k], np.ndarray):
                copy_elements(inputs[k], arrays[k])
        if runner.results_on_host:
            results[:] = [to_host(x) for x in results]

    def _on_device(self, inputs: Sequence[Any]) -> list[DeviceArray]:
        """``inputs`` as arrays on the device. What is on the host is copied at once, in one buffer."""
        waiting = [(k, x) for k, x in enumerate(inputs) if isinstance(x, np.ndarray)]
        if not waiting:
            return list(inputs)
        arrays: list[Any] = list(inputs)
        offsets = np.cumsum([0] + [-(-x.nbytes // _ALIGNMENT) * _ALIGNMENT for _, x in waiting]).tolist()
        packed = np.empty(offsets[-1], BYTES)
        for (_, x), start in zip(waiting, offsets, strict=False):
            packed[start : start + x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(BYTES)
        memory = self.device.from_host(packed)
        for (k, x), start in zip(waiting, offsets, strict=False):
            arrays[k] = DeviceArray(memory.address + start, x.shape, x.dtype, memory.owner, self.device)
        return arrays

    def _product(self, gemm: Gemm) -> Product:
        addresses = [self._address(*operand) for operand in gemm.operands]
        layouts = zip(addresses, (gemm.left, gemm.right, gemm.out), gemm.batch.strides, strict=True)
        left, right, out = [Matrix(address, layout.transposed, layout.leading, step) for address, layout, step in layouts]
        return Product(gemm.dtype, gemm.sizes, left, right, out, gemm.batch.length)

    def _address(self, buffer: Buffer, offset: int) -> int:
        region, start = self.runner.base(buffer, offset)
        return self.bases[region] + start

    def _array(self, place: Place) -> DeviceArray:
        """The value at ``place``, in device memory."""
        assert place.location is not None
        buffer, offset, strides = place.location
        size, address = place.aval.dtype.itemsize, self._address(buffer, offset)
        return DeviceArray(address, place.aval.shape, place.aval.dtype, None, self.device, [s * size for s in strides])

    def _run_on_device(self, step: _OnDevice, inputs: int, results: list[Any]) -> None:
        launch, call = step.launch, step.call
        operands = [self._array(p) for _, p, _, _ in call.reads]
        operands = [x if x.is_contiguous else self.device.copy(x) for x in operands]
        ((slot, place),) = call.writes
        if slot < 0:
            out = self._array(place)
        else:
            results[slot - inputs] = out = self.device.empty(place.aval.shape, place.aval.dtype)
            self.bases[slot] = out.address
        if launch.changes and not call.in_place:
            self.device.copy_into(out, operands[0])
        args = [out.address, *(operands[k].address for k in launch.operands), *launch.words]
        args += self.device.faults.note(step.what) if launch.checks_bounds else ()
        self.device.driver.launch(step.function, launch.blocks, CALL_THREADS, [*args, launch.iterations])

    # --- library calls ----------------------------------------------------------------------------

    def _run_on_host(self, call: LibraryCall, inputs: int, results: list[Any]) -> None:
        """Compute an op that has no kernel by NumPy, on copies."""
        operands = [p.number if p.location is None else to_host(self._array(p)) for _, p, _, _ in call.reads]
        with np.errstate(all="ignore"):
            if call.in_place:
                call.function(*operands, into=operands[0], **call.attrs)
                returned = operands[0]
            elif call.op.kind is Kind.ELEMENTWISE:
                returned = run_eagerly(call.op, operands, call.avals, call.attrs)
            else:
                returned = call.function(*operands, **call.attrs)
        for (slot, place), result in zip(call.writes, returned if call.op.multiple else (returned,), strict=True):
            array = checked_result(call.op, result, place.aval)
            if slot < 0:
                self.device.copy_into(self._array(place), array)
            else:
                results[slot - inputs] = kept = self.device.from_host(array)
                self.bases[slot] = kept.address
