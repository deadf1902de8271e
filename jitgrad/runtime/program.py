"""A compiled function at run time: the steps of its plan, and how its results are made."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from jitgrad.backends.base import CompiledKernel, CompiledLaunch, Frame, Runner, Target
from jitgrad.compiler.loops.loop_op import LOOP, LoopBody
from jitgrad.compiler.lowering.layout import Buffer, BufferRole
from jitgrad.compiler.lowering.lower import Lowered
from jitgrad.compiler.plan import KernelStep, OpStep, Place, Plan
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Dtype
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.fork import cached_property, fork_safe_lock
from jitgrad.core.gc_paused import gc_paused
from jitgrad.runtime.executor.deferred_interrupts import was_deferred
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.loop_call import LoopCall

NO_TURNS: Mapping[LoopBody, Any] = MappingProxyType({})
LONG_SECONDS = 0.2  # a longer run of a program waits for the kernels where Ctrl-C is heard

OutputView = Callable[[Sequence[Any], Sequence[Any]], Any]  # an output from (input arrays, result arrays)


class Program:
    """Runs a Plan on a target. Calls from several threads each get a frame of their own.

    Attributes:
        state_on_host: numbers of the outputs that are new data of tensors on the host.
        inputs_on_host: positions of the inputs that are outside tensors on the host, in every call.
        written_back: numbers of the outputs that a program on a device copies to an input at its end, and of those inputs:
            new data that does not lie there already.
        returned: numbers of the outputs that the caller may keep; others take the place of earlier ones, as gradients do.
        frames: those that no call uses at the moment.
    """

    def __init__(self, plan: Plan, target: Target, turns: Mapping[LoopBody, Program] = NO_TURNS) -> None:
        """``turns``: the programs of the turns of loops in ``plan``."""
        self.plan = plan
        self.target = target
        self.turns = turns
        self.state_on_host: Sequence[int] = ()
        self.inputs_on_host: Sequence[int] = ()
        self.written_back: Mapping[int, int] = {}
        self.returned: Sequence[int] = range(len(plan.outputs))
        self.new_kernels: int = 0
        self.new_from_disk: int = 0
        self.slots: dict[Buffer, int] = {}
        for buffer in (*plan.inputs, *plan.results, *plan.external):
            self.slots.setdefault(buffer, len(self.slots))
        launches: dict[Lowered, CompiledLaunch] = {}
        self.steps: list[Launch | LibraryCall] = [self._prepare(step, launches) for step in plan.steps]
        self.kernels: tuple[CompiledKernel, ...] = tuple(dict.fromkeys(s.kernel for s in self.steps if isinstance(s, Launch)))
        self.result_specs: tuple[tuple[tuple[int, ...], Dtype], ...] = self._result_specs()
        self.output_views: tuple[OutputView, ...] = tuple(self._output_view(p) for p in plan.outputs)
        self.seconds: float = math.inf  # of the shortest run so far
        self.frames: list[Frame] = []
        self._lock = fork_safe_lock()

    def _prepare(self, step: KernelStep | OpStep, launches: dict[Lowered, CompiledLaunch]) -> Launch | LibraryCall:
        if isinstance(step, OpStep) and step.op is LOOP:
            turn = self.turns[step.attrs["body"]]
            self.new_kernels += turn.new_kernels
            self.new_from_disk += turn.new_from_disk
            return LoopCall(step, self.slots, len(self.plan.inputs), self.plan.external, turn, native=self.target.native)
        if isinstance(step, OpStep):
            call: LibraryCall = self.target.library_call(step, self.slots, self.plan)
            return call
        launch = launches.get(step.lowered)
        if launch is None:
            launch = launches[step.lowered] = self.target.compile(step.lowered.kernel, step.lowered.schedule)
            self.new_kernels += launch.new
            self.new_from_disk += launch.new and launch.kernel.from_disk
        return Launch.of(step, launch)

    @cached_property
    def runner(self) -> Runner:
        """How the target runs this program."""
        return self.target.runner(self)

    @cached_property
    def read(self) -> frozenset[int]:
        """Positions of the inputs whose data the program looks at, or hands out."""
        places = [*self.plan.outputs, *(p for step in self.plan.steps for p in (*step.reads, *step.writes))]
        read = {self.slots[p.location.buffer] for p in places if p.location is not None and p.location.buffer in self.slots}
        return frozenset(k for k in read if k < len(self.plan.inputs))

    def _result_specs(self) -> tuple[tuple[tuple[int, ...], Dtype], ...]:
        """Shape and dtype of the array for each result buffer: those of the first output that lies
        in it in order."""
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

    def _output_view(self, place: Place) -> OutputView:
        """How to make an output from (input arrays, result arrays)."""
        if place.location is None:
            value = np.asarray(place.number, place.aval.dtype)
            return lambda inputs, results: self.target.constant(value)
        buffer, shape = place.location.buffer, place.aval.shape
        number = self.slots[buffer]
        if buffer.role is BufferRole.INPUT:
            return lambda inputs, results: inputs[number]
        number -= len(self.plan.inputs)
        spec_shape = self.result_specs[number][0] if number < len(self.result_specs) else None
        if place.location.is_contiguous(shape):
            if spec_shape == shape:
                return lambda inputs, results: results[number]
            return lambda inputs, results: results[number].reshape(shape)
        strides, dtype = tuple(s * place.aval.dtype.itemsize for s in place.location.strides), place.aval.dtype
        return lambda inputs, results: _strided(results[number], shape, dtype, strides)

    @property
    def tuning(self) -> Tuning:
        """The thresholds with which the passes made this program."""
        limited = self.plan.limited
        return replace(self.target.tuning, spare_memory=0 if limited is None else limited.spare_memory)

    @property
    def long(self) -> bool:
        """Whether a run takes so long that Ctrl-C should stop it, or its time is not known yet. Never if a signal cannot."""
        return self.seconds > LONG_SECONDS and self.runner.interruptible

    def prepare(self) -> None:
        """Load the machine code, as the first run does."""
        with self._lock:
            if not self.frames:
                self.frames.append(self.runner.frame())

    def run(self, inputs: Sequence[Any], interruptible: bool = True) -> list[Any]:
        """The results for C-contiguous ``inputs`` of exactly the planned shapes and dtypes. Donated
        inputs change.

        ``interruptible``: a signal may stop the run if it is `long`. Donated inputs have any
        contents then.
        """
        try:
            frame = self.frames.pop()  # at once, whatever other threads do
        except IndexError:
            with gc_paused():
                frame = self.runner.frame()
        results = frame.results()
        results += [None] * len(self.plan.external)  # library calls fill these in
        start = time.perf_counter()
        try:
            frame.run(inputs, results, interruptible and self.long)
            while (outputs := self._outputs(inputs, results, start)) is None:
                pass  # once more after an interrupt that is deferred: inputs may be overwritten
        finally:
            self.frames.append(frame)
        return outputs

    def _outputs(self, inputs: Sequence[Any], results: list[Any], start: float) -> list[Any] | None:
        """The outputs of a run that began at ``start``; None if an interrupt came meanwhile, which is deferred."""
        try:
            self.seconds = min(self.seconds, time.perf_counter() - start)
            return [view(inputs, results) for view in self.output_views]
        except KeyboardInterrupt as interrupt:
            if not was_deferred(interrupt):
                raise
            return None


def _strided(array: Any, shape: tuple[int, ...], dtype: Dtype, strides: tuple[int, ...]) -> Any:
    """Elements in the memory of ``array``, from its start on."""
    if isinstance(array, DeviceArray):
        return array.view(shape, strides)
    return np.ndarray(shape, dtype, array, 0, strides)
