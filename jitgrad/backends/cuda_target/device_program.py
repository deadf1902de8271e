"""A program as the device runs it: calls of C functions in tables, and the steps between them that need Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.launch import LaunchShape, epilogue_launch, kernel_launch
from jitgrad.backends.cuda.schedule import BLOCK_THREADS, CudaSchedule
from jitgrad.backends.cuda_target import call_table
from jitgrad.backends.cuda_target.call_table import Address, CallTable, DriverCall, Word
from jitgrad.backends.cuda_target.device_call import DeviceCall
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.graphs import MIN_CALLS
from jitgrad.backends.cuda_target.host_outputs import HostWork, find_host_work
from jitgrad.backends.cuda_target.indexed import find_access
from jitgrad.backends.cuda_target.integers import find_integers
from jitgrad.backends.cuda_target.lines import find_lines
from jitgrad.backends.cuda_target.ordered_copies import ordered_copy
from jitgrad.backends.cuda_target.sorts import find_sorts
from jitgrad.backends.cuda_target.systems import find_system
from jitgrad.backends.cuda_target.transforms import find_transform
from jitgrad.backends.cuda_target.windows import find_windows
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer
from jitgrad.compiler.plan import Place
from jitgrad.core.aval import Dtype, Shape
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.device.cufft import TransformShape
from jitgrad.device.driver import PRODUCTS, TransformHandle
from jitgrad.runtime.executor.gemm import gemms_of
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program

# Results of a replayed graph that are copied out of it: callers may keep losses, and its addresses must stay.
_MAX_COPIED, _MAX_COPIED_BYTES = 8, 1 << 16
_ALIGNMENT = 256  # bytes, of copies beside each other


class CopiedResult(NamedTuple):
    """A small result: its number, its slot, and the region of the array that the caller gets."""

    number: int
    slot: int
    region: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ExternalResult:
    """A result that a library op on the device writes, and that `Program.run` does not allocate.

    ``returned``: whether it is an output of the program, which the caller may keep.
    """

    number: int
    shape: Shape
    dtype: Dtype
    returned: bool


@lru_cache(maxsize=256)
def _code(source: Source, capability: Capability) -> DeviceCode:
    return DeviceCode(source, "kernel", capability, {})


def device_call(call: LibraryCall) -> DeviceCall | None:
    """The kernel that computes ``call``, into a whole array; of numbers, only some have one."""
    if _to_whole_arrays(call) and (found := find_integers(call)) is not None:
        return found
    if not _from_arrays_to_whole_ones(call):
        return None
    arguments = call.op, call.avals, call.attrs
    finders = find_access, find_windows, find_lines, find_sorts
    return next((found for find in finders if (found := find(*arguments)) is not None), None) or find_system(call.step)


def _without_kernel(call: LibraryCall) -> bool:
    if is_empty(call) or gemms_of(call.step, PRODUCTS) is not None or transform_of(call) is not None:
        return False
    return device_call(call) is None


def is_empty(call: LibraryCall) -> bool:
    """Whether ``call`` has nothing to compute: no result has elements."""
    return not any(place.aval.size for _, place in call.writes)


def transform_of(call: LibraryCall) -> TransformShape | None:
    """How cuFFT computes ``call``; None if it does not."""
    return find_transform(call.op, call.avals, call.attrs) if _from_arrays_to_whole_ones(call) else None


def _from_arrays_to_whole_ones(call: LibraryCall) -> bool:
    """Whether the operands of ``call`` are no numbers, and its results lie in order."""
    return all(p.location is not None for _, p, _, _ in call.reads) and _to_whole_arrays(call)


def _to_whole_arrays(call: LibraryCall) -> bool:
    """Whether the results of ``call`` lie in order."""
    return all(p.location is not None and p.location.is_contiguous(p.aval.shape) for _, p in call.writes)


class DeviceProgram:
    """The parts of ``program`` on ``device``.

    The bases of a frame are the addresses of its regions: inputs and results by their slots, then the arena, and
    what the attributes say.

    Attributes:
        parts: in the order in which they run.
        arena, work, copies, stream, products, graph: regions; the last three have handles in place of addresses. Transforms
            use the ``work_bytes`` bytes of ``work`` while they run. Operands that lie apart are brought in order in the
            ``copies_bytes`` bytes of ``copies``.
        region_count: how many regions there are.
        external: results to allocate before a run, or once for all runs.
        copied: results that a replayed graph writes to memory of the frame; empty if there can be no graph.
        checks_values: whether a kernel may find values wrong.
        host_work: what the host computes before a run; ``host_values`` is the region of its first result, before others.
    """

    def __init__(self, program: Program, device: CudaDevice) -> None:
        self.program = program
        self.device = device
        first = len(program.slots)
        self.arena: int = first
        self.work: int = first + 1
        self.stream: int = first + 2
        self.products: int = first + 3
        self.graph: int = first + 4
        self.copies: int = first + 5
        self.host_values: int = first + 6
        host = [step for step in program.steps if isinstance(step, LibraryCall) and _without_kernel(step)]
        self.host_work: HostWork = find_host_work(program, host)
        self.region_count: int = self.host_values + self.host_work.values
        self.work_bytes: int = 0
        self.copies_bytes: int = 0
        self._plans: list[TransformHandle] = []  # that the calls refer to by their handles
        self.external: list[ExternalResult] = []
        self.checks_values: bool = False
        self._copied_bytes = 0  # bytes of ``copies`` that the step uses
        self.parts: list[CallTable | LibraryCall] = []
        self._calls: list[DriverCall] = []
        for step in program.steps:
            self._add_step(step)
        self._write_back()
        self._end_table()
        self.copied: list[CopiedResult] = self._copied_results()
        self.replay: CallTable | None = self._replay_table() if self.has_graph else None

    @property
    def has_graph(self) -> bool:
        """Whether the whole program is one table that is worth a graph."""
        return len(self.parts) == 1 and isinstance(part := self.parts[0], CallTable) and len(part.calls) >= MIN_CALLS

    @property
    def uses_products(self) -> bool:
        return any(isinstance(part, CallTable) and part.products for part in self.parts)

    def base(self, buffer: Buffer, offset: int) -> Address:
        """Where ``buffer`` lies."""
        region = self.program.slots.get(buffer)
        if region is not None:
            return Address(region, offset)
        return Address(self.arena, self.program.plan.offsets[buffer] + offset)

    # --- steps ------------------------------------------------------------------------------------

    def _add_step(self, step: Launch | LibraryCall) -> None:
        self._copied_bytes = 0  # work has one order, so the copies for the next step may lie over those for the last one
        if isinstance(step, Launch):
            self._add_kernels(step)
        elif is_empty(step):
            for slot, place in step.writes:  # which somebody else may read, though there is nothing to compute
                self._result(slot, place)
        elif (products := gemms_of(step.step, PRODUCTS)) is not None:
            handle = Address(self.products, 0)
            self._calls += [call_table.product_call(gemm, [self.base(*at) for at in gemm.operands], handle) for gemm in products]
        elif (transform := transform_of(step)) is not None:
            self._add_transform(step, transform)
        elif (launch := device_call(step)) is not None:
            self._add_device_call(step, launch)
        elif (number := self.host_work.first_result(step)) is not None:
            self._add_host_results(step, number)
        else:
            self._end_table()
            self.parts.append(step)

    def _write_back(self) -> None:
        """Copy new data to the inputs that it is for, when all steps have read the old."""
        plan = self.program.plan
        for output, k in self.program.written_back.items():
            place = plan.outputs[output]
            if place.aval.nbytes:
                target, source = self.base(plan.inputs[k], 0), self._at(place)
                self._calls.append(call_table.copy_call(target, source, place.aval.nbytes, Address(self.stream, 0)))

    def _end_table(self) -> None:
        if self._calls:
            self.parts.append(CallTable(self._calls, self.device.driver))
            self._calls = []

    def _launch(self, function: int, blocks: int, threads: int, args: Sequence[Word]) -> None:
        self._calls.append(call_table.launch_call(function, blocks, threads, args, Address(self.stream, 0)))

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
        args = [slot if isinstance(slot, int) else self.base(*slot) for slot in slots]
        self._launch(code.function(self.device.driver), shape.blocks, threads, (*args, shape.iterations))

    def _add_device_call(self, call: LibraryCall, launch: DeviceCall) -> None:
        """The kernel ``launch`` that computes ``call``."""
        at = self._at if launch.strided else self._contiguous
        operands = {k: at(call.reads[k][1]) for k in dict.fromkeys((*launch.operands, *([0] if launch.changes else [])))}
        results = [self._result(slot, place) for slot, place in call.writes]
        nbytes = call.writes[0][1].aval.nbytes
        if launch.changes and not call.in_place and nbytes:
            self._calls.append(call_table.copy_call(results[0], operands[0], nbytes, Address(self.stream, 0)))
        faults: tuple[int, ...] = ()
        if launch.fault is not None:
            self.checks_values = True
            faults = self.device.faults.register(_described(call), launch.fault)
        self._launch_call(launch, [*results, *(operands[k] for k in launch.operands)], faults)

    def _launch_call(self, launch: DeviceCall, pointers: Sequence[Address], faults: tuple[int, ...] = ()) -> None:
        function = _code(launch.source, Capability(*self.device.driver.capability)).function(self.device.driver)
        self._launch(function, launch.blocks, launch.threads, [*pointers, *launch.words, *faults, launch.iterations])

    def _add_host_results(self, call: LibraryCall, number: int) -> None:
        """Copy what the host has computed, from result ``number`` on, to where steps read it: before, others may lie there."""
        for k, (slot, place) in enumerate(call.writes, self.host_values + number):
            self._calls.append(
                call_table.copy_call(self._result(slot, place), Address(k, 0), place.aval.nbytes, Address(self.stream, 0))
            )

    def _add_transform(self, call: LibraryCall, shape: TransformShape) -> None:
        """The calls of cuFFT that compute ``call``, on contiguous operands."""
        (source,) = [self._contiguous(p) for _, p, _, _ in call.reads]
        ((slot, place),) = call.writes
        target = self._result(slot, place)
        plan = self.device.driver.transform_plan(shape)
        self._plans.append(plan)
        self.work_bytes = max(self.work_bytes, plan.work_bytes)
        inverse, operands = call.attrs["inverse"], (source, target)
        work, stream = Address(self.work, 0), Address(self.stream, 0)
        self._calls += call_table.transform_calls(plan.handle, place.aval.dtype, operands, inverse, work, stream)

    def _result(self, slot: int, place: Place) -> Address:
        """Where a call writes its result at ``place``: an array that each run allocates, or one that is part of the plan."""
        if slot < 0:
            return self._at(place)
        assert place.location is not None
        plan, buffer = self.program.plan, place.location.buffer
        of = {k for k, p in enumerate(plan.outputs) if p.location is not None and p.location.buffer is buffer}
        returned = not of.isdisjoint(self.program.returned) or not of <= self.host_work.certain
        self.external.append(ExternalResult(slot - len(plan.inputs), place.aval.shape, place.aval.dtype, returned))
        return Address(slot, 0)

    def _at(self, place: Place) -> Address:
        assert place.location is not None
        return self.base(place.location.buffer, place.location.offset)

    def _contiguous(self, place: Place) -> Address:
        """The address of the value at ``place``, or of a copy in row-major order."""
        if place.location is None or place.location.is_contiguous(place.aval.shape) or not place.aval.size:
            return self._at(place)
        lowest, _ = place.location.ends(place.aval.shape, place.aval.dtype.itemsize)
        source = self.base(place.location.buffer, place.location.offset + lowest)
        target = Address(self.copies, self._copied_bytes)
        self._copied_bytes += -(-place.aval.nbytes // _ALIGNMENT) * _ALIGNMENT
        self.copies_bytes = max(self.copies_bytes, self._copied_bytes)
        self._launch_call(ordered_copy(place.aval, place.location.strides), [target, source])
        return target

    # --- graphs -----------------------------------------------------------------------------------

    def _copied_results(self) -> list[CopiedResult]:
        specs = self.program.result_specs
        sizes = [prod(shape) * dtype.itemsize for shape, dtype in specs]
        outputs = [self.program.plan.outputs[k].location for k in self.program.returned]
        returned = {self.program.slots[at.buffer] - len(self.program.plan.inputs) for at in outputs if at is not None}
        small = [k for k, nbytes in enumerate(sizes) if 0 < nbytes <= _MAX_COPIED_BYTES and k in returned]
        small = sorted(sorted(small, key=lambda k: sizes[k])[:_MAX_COPIED]) if self.has_graph else []
        first = self.region_count
        self.region_count += len(small)
        slot = len(self.program.plan.inputs)
        return [CopiedResult(k, slot + k, first + j, sizes[k]) for j, k in enumerate(small)]

    def _replay_table(self) -> CallTable:
        """Launch the graph, then copy its small results to arrays of the caller's."""
        stream = Address(self.stream, 0)
        copies = [call_table.copy_call(Address(r.region, 0), Address(r.slot, 0), r.nbytes, stream) for r in self.copied]
        return CallTable([call_table.graph_call(Address(self.graph, 0), stream), *copies], self.device.driver)


def _described(call: LibraryCall) -> str:
    """What ``call`` does, for errors."""
    origin = str(call.step.node.origin)
    return f"{call.op} of {', '.join(map(str, call.avals))}" + (f" ({origin})" if origin else "")
