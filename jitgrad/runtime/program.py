"""A compiled function at run time: its steps over an arena, relocated to the buffers of this call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jitgrad.backends.base import Backend, CompiledKernel, CompiledLaunch
from jitgrad.backends.python import DTYPES, Pointer, passed
from jitgrad.compiler.gc_paused import gc_paused
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import ArgSlot
from jitgrad.compiler.plan import KernelStep, OpStep, Place, Plan
from jitgrad.core.aval import Dtype
from jitgrad.eager.buffer_pool import POOL, address_of
from jitgrad.runtime.executor import instruction_loop, thread_pool
from jitgrad.runtime.executor.gemm import Gemm
from jitgrad.runtime.executor.instructions import InstructionTable
from jitgrad.runtime.library_call import LibraryCall


@dataclass(eq=False, slots=True)
class Launch:
    """A kernel step with its compiled kernel, and the words of the argument tables of its two functions."""

    step: KernelStep
    kernel: CompiledKernel
    words: tuple[ArgSlot, ...]
    epilogue_words: tuple[ArgSlot, ...]

    @staticmethod
    def of(step: KernelStep, found: CompiledLaunch) -> Launch:
        words = (*step.lowered.words, *found.words)
        return Launch(step, found.kernel, words, (*step.lowered.epilogue_words, *found.epilogue_words))


@dataclass(eq=False, slots=True)
class _Segment:
    """Consecutive native instructions of one frame: the table, its relocations, and what must stay alive."""

    table: np.ndarray[Any, Any]
    count: int
    keep: list[Any] = field(default_factory=list)

    @property
    def address(self) -> int:
        return address_of(self.table)


class Program:
    """Runs a Plan. Calls from several threads each get a frame (arena and tables) of their own."""

    def __init__(self, plan: Plan, backend: Backend) -> None:
        self.plan = plan
        self.backend = backend
        self.new_kernels = 0
        self.new_from_disk = 0
        self.slots: dict[Buffer, int] = {}
        for buffer in (*plan.inputs, *plan.results, *plan.made):
            self.slots.setdefault(buffer, len(self.slots))
        found: dict[int, CompiledLaunch] = {}  # by the id of what was lowered
        self.steps: list[Launch | LibraryCall] = [self._prepare(step, found) for step in plan.steps]
        self.kernels = tuple(dict.fromkeys(s.kernel for s in self.steps if isinstance(s, Launch)))
        self.result_specs = self._result_specs()
        self.output_views = tuple(self._output_view(p) for p in plan.outputs)
        self._frames: list[Any] = []
        self._lock = threading.Lock()

    def _prepare(self, step: KernelStep | OpStep, known: dict[int, CompiledLaunch]) -> Launch | LibraryCall:
        if isinstance(step, OpStep):
            return LibraryCall(step, self.slots, len(self.plan.inputs), self.plan.made, native=self.backend.native)
        first = step.lowered.duplicate_of or step.lowered  # which is not here when a step is run alone, to measure it
        found = known.get(id(first))
        if found is None:
            found = known[id(first)] = self.backend.compile(step.lowered.kernel)
            self.new_kernels += found.new
            self.new_from_disk += found.new and found.kernel.from_disk
        return Launch.of(step, found)

    @cached_property
    def native_parts(self) -> list[InstructionTable | LibraryCall]:
        """The steps for the native loop: tables of what it runs without Python, and the steps between them."""
        parts: list[InstructionTable | LibraryCall] = []
        table: InstructionTable | None = None
        for step in self.steps:
            if isinstance(step, LibraryCall) and step.small is None and step.products is None:
                parts.append(step)
                table = None
                continue
            if table is None:
                parts.append(table := InstructionTable(self._base))
            if isinstance(step, Launch):
                table.kernel(step.step.lowered, step.kernel, step.words, step.epilogue_words)
            elif step.small is not None:
                table.add(step.small)
            else:
                for gemm in step.products or ():
                    table.multiply(gemm)
        return parts

    @property
    def tiled_products(self) -> frozenset[Gemm]:
        """The matrix products that go by tiles, not by BLAS."""
        return frozenset().union(*(part.tiled for part in self.native_parts if isinstance(part, InstructionTable)))

    @cached_property
    def read(self) -> frozenset[int]:
        """Positions of the inputs whose data the program looks at, or hands out."""
        places = [*self.plan.outputs, *(p for step in self.plan.steps for p in (*step.reads, *step.writes))]
        found = {self.slots[p.location.buffer] for p in places if p.location is not None and p.location.buffer in self.slots}
        return frozenset(k for k in found if k < len(self.plan.inputs))

    def _base(self, word: tuple[Buffer, int]) -> tuple[int, int]:
        """(region, offset) of a place: inputs and results are regions by their slots, the arena is the last."""
        buffer, offset = word
        slot = self.slots.get(buffer)
        if slot is not None:
            return slot, offset
        return len(self.slots), self.plan.offsets[buffer] + offset

    def _result_specs(self) -> tuple[tuple[tuple[int, ...], Dtype], ...]:
        """Shape and dtype of the array for each result buffer: those of the first output that lies in it in order."""
        lying: dict[Buffer, list[Place]] = {}
        for place in self.plan.outputs:
            if place.location is not None:
                lying.setdefault(place.location.buffer, []).append(place)
        specs = []
        for buffer in self.plan.results:
            places = lying[buffer]
            first = next((p for p in places if p.location and p.location.is_contiguous(p.aval.shape)), None)
            dtype = places[0].aval.dtype
            flat = ((buffer.nbytes // dtype.itemsize,), dtype)
            specs.append(flat if first is None else (first.aval.shape, first.aval.dtype))
        return tuple(specs)

    def _output_view(self, place: Place) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        """How to make an output from (input arrays, result arrays)."""
        if place.location is None:
            value = np.asarray(place.number, place.aval.dtype)
            return lambda inputs, results: value.copy()
        buffer, shape = place.location.buffer, place.aval.shape
        number = self.slots[buffer]
        if buffer.role == "input":
            return lambda inputs, results: inputs[number]
        number -= len(self.plan.inputs)
        spec_shape = self.result_specs[number][0] if number < len(self.result_specs) else None
        if place.location.is_contiguous(shape):
            if spec_shape == shape:
                return lambda inputs, results: results[number]
            return lambda inputs, results: results[number].reshape(shape)
        strides, dtype = tuple(s * place.aval.dtype.itemsize for s in place.location.strides), place.aval.dtype
        return lambda inputs, results: np.ndarray(shape, dtype, results[number], 0, strides)

    def run(self, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """The results for C-contiguous ``inputs`` of exactly the planned shapes and dtypes. Donated inputs change."""
        with self._lock:
            frame = self._frames.pop() if self._frames else None
        if frame is None:
            with gc_paused():
                frame = NativeFrame(self) if self.backend.native else PythonFrame(self)
        results: list[Any] = [POOL.empty(shape, dtype) for shape, dtype in self.result_specs]
        results += [None] * len(self.plan.made)  # library calls fill these in
        try:
            frame.run(inputs, results)
        finally:
            with self._lock:
                self._frames.append(frame)
        return [view(inputs, results) for view in self.output_views]


class _Frame:
    """Memory of one running call: the arena and views into it for library calls."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arena = np.empty(max(64, program.plan.arena_bytes) + 64, np.uint8)
        self.shift = -address_of(self.arena) % 64  # the arena proper starts at a cache line

    def bytes_of(self, buffer: Buffer, inputs: Sequence[Any], results: Sequence[Any]) -> np.ndarray[Any, Any]:
        """The memory of ``buffer`` as a flat array of bytes."""
        slot = self.program.slots.get(buffer)
        if slot is None:
            offset = self.shift + self.program.plan.offsets[buffer]
            return self.arena[offset : offset + buffer.nbytes]
        array: np.ndarray[Any, Any] = inputs[slot] if slot < len(inputs) else results[slot - len(inputs)]
        return array.reshape(-1).view(np.uint8)

    def view(self, place: Place, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """What a library call gets for ``place``."""
        if place.location is None:
            return place.number
        aval, location = place.aval, place.location
        memory = self.bytes_of(location.buffer, inputs, results)
        strides = tuple(s * aval.dtype.itemsize for s in location.strides)
        return np.ndarray(aval.shape, aval.dtype, memory, location.offset, strides)

    def keep(self, slot: int, array: np.ndarray[Any, Any], inputs: Sequence[Any], results: list[Any]) -> None:
        """``array`` is the memory of ``slot`` in this call."""
        results[slot - len(inputs)] = array


class PythonFrame(_Frame):
    """Runs kernels as Python functions, chunk by chunk as the native loop does."""

    def run(self, inputs: Sequence[Any], results: list[Any]) -> None:
        with np.errstate(all="ignore"):
            for step in self.program.steps:
                if isinstance(step, LibraryCall):
                    step.run(self, inputs, results)
                else:
                    self.launch(step, inputs, results)

    def launch(self, step: Launch, inputs: Sequence[Any], results: list[Any]) -> None:
        lowered, kernel = step.step.lowered, step.kernel
        main = [self.word(w, p, inputs, results) for w, p in zip(step.words, kernel.main.params, strict=True)]
        for start in range(0, lowered.units, lowered.grain):
            kernel.main_code(*main, start, min(start + lowered.grain, lowered.units))
        if kernel.epilogue is not None:
            words = zip(step.epilogue_words, kernel.epilogue.params, strict=True)
            kernel.epilogue_code(*[self.word(w, p, inputs, results) for w, p in words], 0, 1)

    def word(self, word: ArgSlot, kind: str, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        if isinstance(word, int):
            return passed(word, kind)
        buffer, offset = word
        dtype = DTYPES[kind.rstrip("*")]
        return Pointer(self.bytes_of(buffer, inputs, results).view(dtype), offset // dtype.itemsize)


class NativeFrame(_Frame):
    """Instruction tables for the native loop. Pointers are filled in at each call from the bases of its buffers."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.bases = np.zeros(len(program.slots) + 1, np.int64)
        self.bases[-1] = address_of(self.arena) + self.shift
        self.numbers = np.zeros(len(program.plan.inputs) + 1)  # for inputs that are floats, at their positions
        self.numbers_at = address_of(self.numbers)
        self.parts = [self._segment(p) if isinstance(p, InstructionTable) else p for p in program.native_parts]
        self.native = any(isinstance(p, _Segment) for p in self.parts)
        only = self.parts[0] if len(self.parts) == 1 else None
        # where the table of a program of native code alone lies, for callers that run it themselves
        self.address, self.count = (only.address, only.count) if isinstance(only, _Segment) else (0, 0)

    def _segment(self, table: InstructionTable) -> _Segment:
        """A relocation, then the instructions of ``table``."""
        words = np.array([w if isinstance(w, int) else 0 for w in table.args] or [0], np.int64)
        where, buffer, offset = table.relocations
        arrays = (words, self.bases, where, buffer, offset)
        relocation = np.array([address_of(a) for a in arrays], np.int64)
        first = np.zeros((1, instruction_loop.INSTRUCTION_WORDS), np.int64)
        first[0, :4] = instruction_loop.RELOCATE, 0, address_of(relocation), len(where)
        rows = np.concatenate([first, table.rows(address_of(words))])
        return _Segment(rows, len(rows), [*arrays, relocation])

    def keep(self, slot: int, array: np.ndarray[Any, Any], inputs: Sequence[Any], results: list[Any]) -> None:
        results[slot - len(inputs)] = array
        if self.native:
            self.bases[slot] = address_of(array)  # the table after this call is relocated by it

    def run(self, inputs: Sequence[Any], results: list[Any]) -> None:
        if self.native:
            bases = self.bases
            k = 0
            for array in inputs:
                bases[k] = address_of(array)
                k += 1
            for array in results[: len(self.program.result_specs)]:
                bases[k] = address_of(array)
                k += 1
        if self.count:
            thread_pool.run(self.address, self.count)
            return
        with np.errstate(all="ignore"):
            for part in self.parts:
                if isinstance(part, _Segment):
                    thread_pool.run(part.address, part.count)
                else:
                    part.run(self, inputs, results)
