"""The steps of a call from its program on: outputs, history, outside state, and the result."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import optree

from jitgrad.autograd.checkpoint import WriteLog
from jitgrad.autograd.modes import enable_grad
from jitgrad.compiler.input_source import SourceKind
from jitgrad.compiler.lowering.layout import BufferRole
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.device_array import copy_elements, to_host
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.eager.buffer_pool import POOL, SMALL
from jitgrad.jit.fast_call import FEW, FastCallWriter, NotSupportedError, listed, tuple_text
from jitgrad.jit.input_steps import CallState
from jitgrad.jit.trace_result import EffectKind, Result, TraceResult
from jitgrad.ops.inplace import assign
from jitgrad.runtime.executor import thread_pool
from jitgrad.runtime.executor.fastcall import data_address
from jitgrad.runtime.native_runner import NativeFrame
from jitgrad.runtime.ownership import invalidate
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import ProgramOp


@dataclass(frozen=True, eq=False, slots=True)
class KeepForCheckpoint:
    """A call within `jg.checkpoint` tells what it changes in place, whose contents backward needs."""

    traced: TraceResult

    def run(self, call: CallState) -> None:
        log = current_interpreter.other()
        if isinstance(log, WriteLog):
            for target in [e.target.resolve(call.leaves) for e in self.traced.effects_of(EffectKind.DATA)]:
                if isinstance(target, Tensor):
                    log.keep(target)

    def write(self, w: FastCallWriter) -> None:
        if self.traced.effects_of(EffectKind.DATA):
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
        w.line("(pool.pool or current_pool()).run(frame.address, frame.count)")
        if declines:
            w.line("try:")
            w.line("if frame.declined[0]: frame.finish()", 2)
            w.line("finally: frames.append(frame)")
        else:
            w.line("frames.append(frame)")

    def _run_on_device(self, w: FastCallWriter) -> None:
        """Text for a program on a device: its result buffers, then those of library calls, are the list ``r``."""
        self._take_frame(w)
        external = len(self.program.plan.external)
        w.line("r = frame.results()" + (f" + [None] * {external}" if external else ""))
        waiting = tuple_text([f"({k}, {text})" for k, text in w.on_host.items()])
        w.line(f"frame.start([{listed(w.pointers, few=3)}], {waiting}, r)")
        w.line("frames.append(frame)")

    def _run_with_library_calls(self, w: FastCallWriter) -> None:
        """Text for a program with library calls, which take arrays and append theirs to ``r``."""
        w.line(f"r = [{', '.join([*w.result_arrays(), *['None'] * len(self.program.plan.external)])}]")
        self._take_frame(w)
        w.line(f"frame.run({tuple_text([w.input_text(k) for k in range(len(w.traced.sources))])}, r)")
        w.line("frames.append(frame)")


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
        for effect in self.traced.effects_of(EffectKind.DATA):
            assert effect.output is not None
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
        for effect in self.traced.effects_of(EffectKind.DATA):
            if effect.output is None or effect.history:
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


@dataclass(frozen=True, eq=False, slots=True)
class SetGradients:
    """Tensors whose gradients the function changes get the new ones, or None."""

    traced: TraceResult

    def run(self, call: CallState) -> None:
        for effect in self.traced.effects_of(EffectKind.GRADIENT):
            grad = None if effect.output is None else Tensor(call.outputs[effect.output])
            effect.target.resolve(call.leaves)._grad = grad

    def write(self, w: FastCallWriter) -> None:
        effects = self.traced.effects_of(EffectKind.GRADIENT)
        cleared = [e for e in effects if e.output is None and e.target.kind is SourceKind.TENSOR]
        if len(cleared) > FEW:
            w.line(f"for t in {w.constant('L', tuple(e.target.key for e in cleared))}: t._grad = None")
            effects = [e for e in effects if e not in cleared]
        for effect in effects:
            grad = "None" if effect.output is None else w.new_tensor(effect.output)
            w.line(f"{w.object_text(effect.target)}._grad = {grad}")


@dataclass(frozen=True, eq=False, slots=True)
class WrapResults:
    """Outputs that are results without a history become tensors."""

    traced: TraceResult

    def run(self, call: CallState) -> None:
        for r in self.traced.results:
            if r.output is not None and r.output not in call.tensors and not r.number:
                array = call.outputs[r.output]
                call.tensors[r.output] = Tensor(array, Aval(array.shape, array.dtype, r.weak))

    def write(self, w: FastCallWriter) -> None:
        new = [r for r in self.traced.results if not r.number and r.output is not None and r.output not in w.tensors]
        weak = {r.output: r.weak for r in new if r.output is not None}
        if len(weak) <= FEW:
            for output, is_weak in weak.items():
                w.tensors[output] = f"t{output}"
                w.line(f"t{output} = {w.new_tensor(output, is_weak)}")
            return
        avals = w.constant("R", tuple(w.aval_of(output, weak[output]) for output in weak))
        arrays, addresses = (listed(texts) for texts in zip(*[w.array_of(output) for output in weak], strict=True))
        w.line(f"t = [*map(of_result, ({arrays},), {avals}, ({addresses},))]")
        w.tensors.update((output, f"t[{k}]") for k, output in enumerate(weak))


@dataclass(frozen=True, eq=False, slots=True)
class InvalidateDonated:
    """The caller's donated tensors lose their data; a tensor that is also a result keeps it."""

    traced: TraceResult
    donated: tuple[int, ...]
    tombstone: Donated

    def run(self, call: CallState) -> None:
        results = {id(r.source.key) for r in self.traced.results if r.source is not None}
        invalidate((call.leaves[k] for k in self.donated if id(call.leaves[k]) not in results), self.tombstone)

    def write(self, w: FastCallWriter) -> None:
        if self.donated:
            if any(r.source is not None and r.source.kind is not SourceKind.ARGUMENT for r in self.traced.results):
                raise NotSupportedError  # a donated argument may be that object
            w.names["invalidate"] = invalidate
            texts = [w.leaves[k] for k in self.donated]
            w.line(f"invalidate(({listed(texts)},), {w.constant('G', self.tombstone)})")


@dataclass(frozen=True, eq=False, slots=True)
class BuildResult:
    """The result of the function: containers around tensors, passed objects and static values.

    What the function stores outside is part of the same tree, and is stored last.
    """

    traced: TraceResult

    def run(self, call: CallState) -> None:
        leaves: list[Any] = []
        copies = self.traced.made.copies()
        for r in self.traced.results:
            if r.source is not None:
                x = r.source.resolve(call.leaves)
            elif r.output is None:
                x = r.value if r.copied is None else copies[r.copied]
            else:
                x = to_host(call.outputs[r.output]).item() if r.number else call.tensors[r.output]
            leaves.append(x if r.view is None else r.view.of(x))
        call.result = optree.tree_unflatten(self.traced.treedef, leaves)
        if self.traced.stores:
            call.result, values = call.result
            for store, value in zip(self.traced.stores, values, strict=True):
                store.make(value)

    def write(self, w: FastCallWriter) -> None:
        texts = []
        if self.traced.made:
            w.line(f"copies = {w.constant('J', self.traced.made.copies)}()")
        for r in self.traced.results:
            if r.output is not None:
                text = self._number_text(w, r.output) if r.number else w.tensors[r.output]
            elif r.copied is not None:
                text = f"copies[{r.copied}]"
            else:
                text = w.constant("C", r.value) if r.source is None else w.object_text(r.source)
            texts.append(text if r.view is None else f"{w.constant('W', r.view.of)}({text})")
        containers = _tree_text(w, optree.tree_unflatten(self.traced.treedef, texts))
        unflatten = w.constant("T", self.traced.treedef.unflatten)
        tree = containers or f"{unflatten}([{listed(texts)}])"
        if self.traced.stores:
            w.line(f"result, stored = {tree}")
            self._write_stores(w)
            tree = "result"
        w.line(f"return {tree}")

    def _write_stores(self, w: FastCallWriter) -> None:
        """Text that fills the places outside; constants in dicts, such as modes of many modules, in one loop."""
        _, values = optree.tree_unflatten(self.traced.treedef, self.traced.results)
        constants = []
        for k, (store, r) in enumerate(zip(self.traced.stores, values, strict=True)):
            if store.kind == "item" and type(r) is Result and r.output is None and r.source is None:
                constants.append((store.holder, store.key, r.value))
            else:
                w.line(f"{w.constant('M', store.make)}(stored[{k}])")
        if constants:
            w.line(f"for place, key, value in {w.constant('N', constants)}: place[key] = value")

    def _number_text(self, w: FastCallWriter, output: int) -> str:
        array = w.array_of(output)[0]
        if not w.on_device:
            return f"{array}.item()"
        w.names["to_host"] = to_host
        return f"to_host({array}).item()"


def _tree_text(w: FastCallWriter, tree: Any) -> str:
    """An expression for tuples, lists and dicts of expressions; "" for other containers."""
    kind = type(tree)
    if kind is str:
        return str(tree)
    if kind not in (tuple, list, dict):
        return ""
    parts = [_tree_text(w, x) for x in (tree.values() if kind is dict else tree)]
    if "" in parts:
        return ""
    if kind is dict:
        return "{" + ", ".join(f"{w.constant('K', k)}: {text}" for k, text in zip(tree, parts, strict=True)) + "}"
    return tuple_text(parts) if kind is tuple else f"[{listed(parts)}]"
