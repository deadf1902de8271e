"""The steps of a call from its program on: outputs, history and outside state."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from math import prod

import numpy as np

from jitgrad.autograd.checkpoint import WriteLog
from jitgrad.autograd.modes import enable_grad
from jitgrad.compiler.input_source import SourceKind
from jitgrad.compiler.lowering.layout import BufferRole
from jitgrad.core.context import current_interpreter
from jitgrad.core.device_array import copy_elements
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import POOL, SMALL
from jitgrad.jit.decided import DecidedOtherwise
from jitgrad.jit.fast_call import FastCallWriter, NotSupportedError, listed, tuple_text
from jitgrad.jit.input_steps import CallState
from jitgrad.jit.trace_result import TraceResult
from jitgrad.ops.inplace import assign
from jitgrad.runtime.executor import thread_pool
from jitgrad.runtime.executor.fastcall import data_address
from jitgrad.runtime.native_runner import NativeFrame
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import ProgramOp


@dataclass(frozen=True, eq=False, slots=True)
class KeepForCheckpoint:
    """A call within `jg.checkpoint` tells what it changes in place, whose contents backward needs."""

    traced: TraceResult

    def run(self, call: CallState) -> None:
        log = current_interpreter.other()
        if isinstance(log, WriteLog):
            for target in [e.target.resolve(call.leaves) for e in self.traced.effects]:
                if isinstance(target, Tensor):
                    log.keep(target)

    def write(self, w: FastCallWriter) -> None:
        if self.traced.effects:
            w.names["other_interpreter"] = current_interpreter.other
            w.miss_if("other_interpreter() is not None")


@dataclass(frozen=True, eq=False, slots=True)
class RunProgram:
    """Allocate the result buffers and run the program."""

    program: Program

    def run(self, call: CallState) -> None:
        call.outputs = self.program.run(call.arrays, call.interruptible)

    def write(self, w: FastCallWriter) -> None:
        new_frame = self.program.runner.frame
        if w.on_device:
            w.names.update(frames=self.program.frames, new_frame=new_frame)
            self._run_on_device(w)
            return
        w.names.update(frames=deque([frame := new_frame()]), new_frame=new_frame)
        addresses = self._allocate(w)
        if isinstance(frame, NativeFrame) and frame.count:
            self._run_native(w, [*w.pointers, *addresses], frame.declines)
        elif self.program.steps:
            self._run_with_library_calls(w)

    def _allocate(self, w: FastCallWriter) -> list[str]:
        """Text that makes the result buffers; expressions for their addresses."""
        specs = self.program.result_specs
        w.names.update(take=POOL.take, empty=np.empty, data_address=data_address())
        if w.many_results:
            buffers = w.constant("S", specs)
            if max(prod(shape) * dtype.itemsize for shape, dtype in specs) < SMALL:
                w.line(f"o = [empty(s, d) for s, d in {buffers}]")
                w.line("q = [*map(data_address, o)]")
            else:
                w.line(f"o, q = zip(*[take(s, d) for s, d in {buffers}])")
            return ["*q"]
        for k, (shape, dtype) in enumerate(specs):
            shape_text, dtype_text = w.constant("S", shape), w.constant("D", dtype)
            if prod(shape) * dtype.itemsize < SMALL:
                w.line(f"o{k} = empty({shape_text}, {dtype_text})")
                w.line(f"q{k} = data_address(o{k})")
            else:
                w.line(f"o{k}, q{k} = take({shape_text}, {dtype_text})")
        return [f"q{k}" for k in range(len(specs))]

    def _take_frame(self, w: FastCallWriter) -> None:
        """Text that takes a frame for this call alone and writes the numbers among the arguments into it."""
        w.line("try: frame = frames.pop()")
        w.line("except IndexError: frame = new_frame()")
        for k, (memory, text) in w.numbers.items():
            w.line(f"frame.{memory}[{k}] = {text}")

    def _run_native(self, w: FastCallWriter, addresses: list[str], declines: bool) -> None:
        """Text for a program of native code: write addresses to the frame, and run its table.

        ``declines``: a step may be left to NumPy, which may raise.
        """
        size = len(w.pointers) + len(self.program.result_specs)
        w.names.update(
            pack=struct.Struct(f"{size}q").pack_into, pool=thread_pool._Current, current_pool=thread_pool.current_pool
        )
        self._take_frame(w)
        w.line(f"pack(frame.bases, 0{', ' if addresses else ''}{listed(addresses)})")
        w.line("p = pool.pool or current_pool()")
        w.run_by("p.run(frame.address, frame.count)")
        if declines:
            w.line("try:")
            w.line("if frame.declined[0]: frame.finish()", 2)
            self._after_errors(w)
            w.line("finally: frames.append(frame)")
        else:
            w.line("frames.append(frame)")

    def _run_on_device(self, w: FastCallWriter) -> None:
        """Text for a program on a device: its result buffers, then those of library calls, are the list ``r``."""
        self._take_frame(w)
        external = len(self.program.plan.external)
        w.line("r = frame.results()" + (f" + [None] * {external}" if external else ""))
        waiting = tuple_text([f"({k}, {text})" for k, text in w.on_host.items()])
        self._run_frame(w, f"frame.start([{listed(w.pointers, few=3)}], {waiting}, r)")

    def _run_with_library_calls(self, w: FastCallWriter) -> None:
        """Text for a program with library calls, which take arrays and append theirs to ``r``."""
        w.line(f"r = [{', '.join([*w.result_arrays(), *['None'] * len(self.program.plan.external)])}]")
        self._take_frame(w)
        self._run_frame(w, f"frame.run({tuple_text([w.input_text(k) for k in range(len(w.traced.sources))])}, r)")

    def _run_frame(self, w: FastCallWriter, text: str) -> None:
        if w.traced.decided:
            w.line("try:")
            w.run_by(text, 2)
            self._after_errors(w)
        else:
            w.run_by(text)
        w.line("frames.append(frame)")

    def _after_errors(self, w: FastCallWriter) -> None:
        """Text behind ``try``: a step may raise where another branch would have been right."""
        if w.traced.decided:
            w.names["DecidedOtherwise"] = DecidedOtherwise
            w.line("except Exception as error: raise DecidedOtherwise(None) from error")


@dataclass(frozen=True, eq=False, slots=True)
class AttachHistory:
    """Outputs get a history, before the effects: it keeps copies of data that they change."""

    op: ProgramOp

    def run(self, call: CallState) -> None:
        count = len(self.op.graph.outputs)
        tensors = tuple([Tensor(array) for array in call.outputs[:count]])
        call.tensors.update(enumerate(tensors))
        self.op.attach(tuple(call.inputs), tensors, call.outputs[count:])

    def write(self, w: FastCallWriter) -> None:
        count = len(self.op.graph.outputs)
        for k in range(count):
            w.tensors[k] = f"u{k}"
            w.line(f"u{k} = {w.new_tensor(k)}")
        operands = tuple_text([w.object_text(s) for s in w.traced.sources])
        saved = listed([w.array_of(count + k)[0] for k in range(self.op.split.saved)])
        w.names["attach"] = self.op.attach
        w.line(f"attach({operands}, {tuple_text([f'u{k}' for k in range(count)])}, [{saved}])")


@dataclass(frozen=True, eq=False, slots=True)
class WriteData:
    """Tensors and arrays changed in place get their new data, unless the program wrote it there.

    Where their histories change, so do those of their views, as in eager execution.

    ``origin`` is the function, for errors about tensors whose old data is needed later.
    """

    traced: TraceResult
    program: Program
    origin: Origin

    def run(self, call: CallState) -> None:
        for effect in self.traced.effects:
            target, new = effect.target.resolve(call.leaves), call.outputs[effect.output]
            if effect.history:
                with enable_grad():
                    assign(target, call.tensors.get(effect.output, Tensor(new)))
                continue
            if effect.replaced:
                current_interpreter.eager.replace(target, Tensor(new))
                continue
            data = target._data if isinstance(target, Tensor) else target
            if new is not data:
                copy_elements(data, new)
            if isinstance(target, Tensor):
                target._storage.bump(self.origin)

    def write(self, w: FastCallWriter) -> None:
        tensors, others = [], []
        for effect in self.traced.effects:
            if effect.history:
                raise NotSupportedError
            if effect.replaced:
                w.names["replace"] = current_interpreter.eager.replace
                w.line(f"replace({w.object_text(effect.target)}, {w.new_tensor(effect.output)})")
                continue
            place = self.program.plan.outputs[effect.output]
            elsewhere = place.location is None or place.location.buffer.role is not BufferRole.INPUT
            if elsewhere and effect.output not in self.program.written_back:
                w.names["copyto"] = copy_elements if w.on_device else np.copyto
                w.line(f"copyto({w.data_text(effect.target)}, {w.array_of(effect.output)[0]})")
            if effect.target.kind is SourceKind.TENSOR:
                tensors.append(effect.target.key)
            elif not w.is_array(effect.target):
                others.append(w.object_text(effect.target))
        if tensors or others:
            outside = w.constant("L", tuple(tensors)) if tensors else "()"
            w.line(f"for t in {outside}{f' + {tuple_text(others)}' if others else ''}:")
            # a version is only of interest to those who have asked for the tensor's storage
            origin = w.constant("W", self.origin)
            w.line(f"if (m := t._memory) is not None: m.version += 1; m.changed_place = {origin}", 2)
