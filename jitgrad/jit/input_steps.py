"""The steps of a call before its program: the validity of the trace, and the program's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.memory_orders import Question
from jitgrad.core.aval import Aval
from jitgrad.core.errors import GuardError, UnguardableError
from jitgrad.core.origin import Origin
from jitgrad.core.storage import is_in_order
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.eager.buffer_pool import address_of
from jitgrad.guards.guard import Guard
from jitgrad.jit.device_addresses import DeviceAddresses
from jitgrad.jit.fast_call import FEW, FastCallWriter, NotSupportedError, listed, tuple_text
from jitgrad.jit.memory_overlap import WrittenRanges, overlapping, overlaps_itself, share_element
from jitgrad.jit.trace_result import TraceResult
from jitgrad.ops.views import is_element_view
from jitgrad.runtime.program_op import contiguous


@dataclass(eq=False, slots=True)
class CallState:
    """A call on the general path; a fast call has local variables instead."""

    leaves: Sequence[Any]  # the arguments, flat
    preserve: bool = False  # whether the program must leave all inputs unchanged
    inputs: list[Any] = field(default_factory=list)  # the tensors, arrays and numbers that the program reads
    arrays: list[np.ndarray] = field(default_factory=list)  # what the program gets for them
    outputs: list[np.ndarray] = field(default_factory=list)
    tensors: dict[int, Tensor] = field(default_factory=dict)  # the outputs that are tensors already
    interruptible: bool = True  # whether the program changes nothing that anyone sees
    stored: int = 0  # how many of the stores outside have been made
    result: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class CheckGuard:
    """The objects that the trace read from its environment have not changed."""

    guard: Guard

    def run(self, call: CallState) -> str | None:
        return self.guard.check()

    def write(self, w: FastCallWriter) -> None:
        w.names["guard"] = self.guard.check
        w.miss_if("guard() is not None")


# the condition that a tensor's gradient is not as in the trace: by whether it required grad, or None where there was none
_CHANGED_GRADIENTS = {
    None: "{0}._grad is not None",
    False: "{0}._grad is None or {0}._grad._requires_grad",
    True: "{0}._grad is None or not {0}._grad._requires_grad",
}


@dataclass(frozen=True, eq=False, slots=True)
class CheckGradients:
    """Each gradient that the trace read is a tensor, which requires grad or not, or is None, as it was then."""

    traced: TraceResult

    def run(self, call: CallState) -> str | None:
        for source, wanted in self.traced.grads_read:
            grad = source.resolve(call.leaves)._grad
            if (grad is None) != (wanted is None):
                return f"the gradient of {self.traced.describe(source)} is {'gone' if grad is None else 'there now'}"
            if grad is not None and grad._requires_grad is not wanted:
                return f"the gradient of {self.traced.describe(source)} has {'no' if wanted else 'a'} history now"
        return None

    def write(self, w: FastCallWriter) -> None:
        for expected, changed in _CHANGED_GRADIENTS.items():
            sources = [source for source, wanted in self.traced.grads_read if wanted is expected]
            outside = tuple([source.key for source in sources if source.kind is SourceKind.TENSOR])
            if len(outside) > FEW:
                w.miss_if(f"any([{changed.format('t')} for t in {w.constant('L', outside)}])")
                sources = [source for source in sources if source.kind is not SourceKind.TENSOR]
            for source in sources:
                w.miss_if(changed.format(w.object_text(source)))


@dataclass(frozen=True, eq=False, slots=True)
class CheckShared:
    """The arguments that are also outside tensors are the same as in the trace."""

    traced: TraceResult

    def run(self, call: CallState) -> str | None:
        for k, tensor in self.traced.shared:
            if call.leaves[k] is not tensor:
                return f"argument {k} was {self.traced.names.get(id(tensor), 'an outside tensor')}"
        for k in sorted(self.traced.shared_arguments(call.leaves)):
            return f"argument {k} is {self.traced.names.get(id(call.leaves[k]), 'an outside tensor')}"
        return None

    def write(self, w: FastCallWriter) -> None:
        for k, tensor in self.traced.shared:
            w.miss_if(f"{w.leaves[k]} is not {w.constant('T', tensor)}")
        taken = {k for k, _ in self.traced.shared}
        tensors = [k for k, x in enumerate(w.call.leaves) if type(x) is Tensor and k not in taken]
        if not self.traced.compared:  # CheckOverlap finds those without gradients
            tensors = [k for k in tensors if w.call.leaves[k]._requires_grad]
        if tensors and (outside := frozenset(self.traced.told_apart())):
            ids = listed([f"id({w.leaves[k]})" for k in tensors])
            w.miss_if(f"not {w.constant('O', outside)}.isdisjoint(({ids},))")


@dataclass(frozen=True, eq=False, slots=True)
class CheckDevices:
    """The outside tensors are where they were in the trace; the signature tells where arguments are."""

    traced: TraceResult

    def run(self, call: CallState) -> str | None:
        for source, device in self.traced.place.outside:
            if (now := source.resolve(call.leaves).device) != device:
                return f"{self.traced.describe(source)} was on {device} and is on {now}"
        return None

    def write(self, w: FastCallWriter) -> None:
        """A tensor that is elsewhere has no address that a fast call can use."""


_OF_MEMORY: Mapping[Question, str] = {is_in_order: "a view in another order", is_element_view: "an element of another tensor"}


@dataclass(frozen=True, eq=False, slots=True)
class CheckOrders:
    """Tensors lie in memory in the order of their axes, and are elements of others, or not, as when the trace asked."""

    traced: TraceResult

    def run(self, call: CallState) -> str | None:
        for source, question, answer in self.traced.orders:
            if question(source.resolve(call.leaves)._view) != answer:
                is_now = "is" if answer == (question is is_in_order) else "is no longer"
                return f"{self.traced.describe(source)} {is_now} {_OF_MEMORY.get(question, 'a view of another tensor')}"
        return None

    def write(self, w: FastCallWriter) -> None:
        for source, question, answer in self.traced.orders:
            w.names[question.__name__] = question
            w.miss_if(f"{question.__name__}({w.object_text(source)}._view) is not {answer}")


@dataclass(frozen=True, eq=False, slots=True)
class ReadInputs:
    """The program's inputs, with the avals of the trace; ``read``: those whose data matters.

    Kernels need contiguous data: a fast call misses where the general path copies.
    """

    traced: TraceResult
    read: frozenset[int]

    def run(self, call: CallState) -> None:
        traced = self.traced
        for source, value in zip(traced.sources, traced.graph.inputs, strict=True):
            x, aval = source.resolve(call.leaves), value.aval
            if type(x) is Tensor and type(x._data) is Donated:
                raise x._data.error(f"{traced.describe(source)} of @jit function {traced.graph.name!r}", aval)
            if type(x) not in (float, int) and (x is None or x.shape != aval.shape or x.dtype != aval.dtype):
                actual = "nothing" if x is None else str(Aval(x.shape, x.dtype))
                raise GuardError(f"{traced.describe(source)} was {aval} while tracing and is {actual} now")
            call.inputs.append(x)

    def write(self, w: FastCallWriter) -> None:
        sources = self.traced.sources
        looped: dict[int, str] = {}  # addresses that a loop finds
        tensors = [k for k, s in enumerate(sources) if s.kind is SourceKind.TENSOR and not w.stays_on_host(s)]
        grads = [k for k, s in enumerate(sources) if s.kind is SourceKind.GRADIENT and s.key.kind is SourceKind.TENSOR]
        few = 2 if w.on_device else FEW  # a look at a device array is a call
        if tensors and w.on_device:
            self._write_known_addresses(w, "b", tuple(sources[k].key for k in tensors))
        elif len(tensors) > few:
            self._write_addresses(w, "b", w.constant("L", tuple(sources[k].key for k in tensors)))
        if w.known_addresses or len(tensors) > few:
            looped.update((k, f"b[{j}]") for j, k in enumerate(tensors))
        if len(grads) > few:
            avals = w.constant("V", tuple(self.traced.graph.inputs[k].aval for k in grads))
            w.line(f"gs = [t._grad for t in {w.constant('L', tuple(sources[k].key.key for k in grads))}]")
            w.miss_if(f"not all([g._aval is v or same_aval(g, v) for g, v in zip(gs, {avals})])")
            self._write_addresses(w, "d", "gs")
            looped.update((k, f"d[{j}]") for j, k in enumerate(grads))
        for name in w.lists:
            self._write_addresses(w, f"b{name}", name)
        for k, source in enumerate(sources):
            text = w.leaves[source.key] if source.kind is SourceKind.ARGUMENT else ""
            unread = k not in self.read and source.kind in (SourceKind.ARGUMENT, SourceKind.TENSOR)
            if text.partition("[")[0] in w.lists:
                looped[k] = f"b{text}"
            elif unread and not self.traced.written:
                looped[k] = "0"  # results may be views of it, but no kernel reads its data
            w.pointers.append(looped.get(k) or self._pointer(w, k, source))

    def _write_addresses(self, w: FastCallWriter, name: str, tensors: str) -> None:
        w.line(f"{name} = [{w.address_text('t')} for t in {tensors}]")
        w.miss_if(f"0 in {name}")

    def _write_known_addresses(self, w: FastCallWriter, name: str, tensors: tuple[Tensor, ...]) -> None:
        """Addresses on a device, which stay while the tensors have the same arrays."""
        known = w.constant("A", DeviceAddresses(tensors))
        w.names["is_"] = is_
        w.line(f"a = [t._data for t in {w.constant('L', tensors)}]")
        w.line(f"k = {known}.known")
        w.line("if not all(map(is_, a, k.arrays)):")
        w.line(f"if (k := {known}.look(a)) is None: return MISS", 2)
        w.line(f"{name} = k.addresses")
        w.known, w.known_addresses = "k", name

    def _pointer(self, w: FastCallWriter, k: int, source: InputSource) -> str:
        text = w.object_text(source)
        if w.stays_on_host(source):
            return self._on_host(w, k, source)
        number = type(w.call.leaves[source.key]) if source.kind is SourceKind.ARGUMENT else None
        if number in (float, int):
            w.numbers[k] = ("floats" if number is float else "ints", text)
            return f"frame.numbers_at + {8 * k}"
        if source.kind is SourceKind.GRADIENT:
            w.line(f"g{k} = {text}")
            text, aval = f"g{k}", w.constant("V", self.traced.graph.inputs[k].aval)
            w.miss_if(f"{text}._aval is not {aval} and not same_aval({text}, {aval})")
        elif w.is_array(source):
            w.names |= {"address_of": address_of, "contiguous": contiguous}
            if source.kind is not SourceKind.ARGUMENT:  # of which the strides are checked; `table.T` may have any
                w.line(f"x{k} = contiguous({text})")
                text = f"x{k}"
            w.line(f"p{k} = address_of({text})")
            return f"p{k}"
        w.line(f"p{k} = {w.address_text(text)}")
        w.miss_if(f"not p{k}")
        return f"p{k}"

    def _on_host(self, w: FastCallWriter, k: int, source: InputSource) -> str:
        """Input ``k`` of a program on a device is an array or a number on the host."""
        if source.kind is SourceKind.GRADIENT:
            raise NotSupportedError
        w.on_host[k] = text = w.object_text(source)
        if isinstance(source.resolve(w.call.leaves), Tensor):
            w.on_host[k] = f"{text}._data"
            w.miss_if(f"type({text}._data) is not ndarray")
        return "0"


@dataclass(frozen=True, eq=False, slots=True)
class CheckOverlap:
    """No other input, and no other element, shows memory that the function changes: the program reads its old data.

    The general path raises an error where a fast call misses, if they share an element.
    """

    traced: TraceResult
    origin: Origin

    def run(self, call: CallState) -> None:
        written = self.traced.written
        if not written:
            return
        arrays = [array_of(x) for x in call.inputs]
        for k in written:
            if overlaps_itself(arrays[k]):
                raise UnguardableError(
                    f"@jit function {self.traced.graph.name!r} at {self.origin.full()} changes "
                    f"{self.traced.describe(self.traced.sources[k])} {_aval_of(call.inputs[k])} in place, of which several "
                    "elements share memory: a change of one changes others. Pass .clone() of it."
                )
        if not overlapping(arrays, written):
            return
        for k in written:
            for j, other in enumerate(arrays):
                if j != k and share_element(arrays[k], other):
                    one, two = (self.traced.describe(self.traced.sources[n]) for n in (k, j))
                    raise UnguardableError(
                        f"@jit function {self.traced.graph.name!r} at {self.origin.full()} changes {one} "
                        f"{_aval_of(call.inputs[k])} in place, and {two} {_aval_of(call.inputs[j])} shows the same memory. "
                        "Pass .clone() of one of them, or make the view inside the function."
                    )

    def write(self, w: FastCallWriter) -> None:
        """Outside tensors are not compared with each other: their overlap never changes."""
        sources = self.traced.sources
        if len(w.on_host) > 1 and any(k in w.on_host and sources[k].kind is SourceKind.ARGUMENT for k in self.traced.written):
            raise NotSupportedError
        w.names.update(overlaps_itself=overlaps_itself)
        for k in self.traced.written:
            if k in w.on_host:
                w.miss_if(f"overlaps_itself({w.on_host[k]})")
        sizes = [v.aval.nbytes for v in self.traced.graph.inputs]
        written = [k for k in self.traced.written if k not in w.on_host]
        arrays = [k for k in range(len(sources)) if k not in w.numbers and k not in w.on_host]
        arguments = [k for k in arrays if sources[k].kind in (SourceKind.ARGUMENT, SourceKind.GRADIENT)]
        pairs = [(k, j) for k in written for j in arrays if j != k and (j in arguments or k in arguments)]
        if len(pairs) <= FEW:
            overlaps = [f"-{sizes[j]} < {w.pointers[j]} - {w.pointers[k]} < {sizes[k]}" for k, j in pairs]
        else:
            others = arrays if any(k in arguments for k in written) else arguments
            read = [j for j in others if j not in written]
            ranges = w.constant("ranges", WrittenRanges([sizes[k] for k in written], [sizes[j] for j in read]))
            starts = [listed([w.pointers[k] for k in positions]) for positions in (written, read)]
            overlaps = [f"{ranges}.overlap([{starts[0]}], [{starts[1]}])"]
        self._write_conditions(w, overlaps, {w.pointers[j] for pair in pairs for j in pair})

    def _write_conditions(self, w: FastCallWriter, overlaps: list[str], pointers: set[str]) -> None:
        """Text of the conditions ``overlaps``. They are skipped where outside tensors have the arrays, and the others of
        ``pointers`` the values, of an earlier call."""
        if not w.known or not overlaps:
            for condition in overlaps:
                w.miss_if(condition)
            return
        others = sorted(text for text in pointers if not text.startswith(f"{w.known_addresses}["))
        w.line(f"if {w.known}.apart_from != (apart := {tuple_text(others)}):")
        for condition in overlaps:
            w.line(f"if {condition}: return MISS", 2)
        w.line(f"{w.known}.apart_from = apart", 2)


@dataclass(frozen=True, eq=False, slots=True)
class CheckContiguous:
    """The inputs that the trace supposed to be C-contiguous are so."""

    traced: TraceResult
    origin: Origin

    def run(self, call: CallState) -> None:
        for k in self.traced.contiguous:
            if not array_of(call.inputs[k]).flags.c_contiguous:
                raise UnguardableError(
                    f"@jit function {self.traced.graph.name!r} at {self.origin.full()} changes a tensor in place of which a "
                    f"reshape is alive, and {self.traced.describe(self.traced.sources[k])} {_aval_of(call.inputs[k])}, from "
                    "which they come, is not contiguous: whether they share memory depends on that. Pass a contiguous copy "
                    "(np.ascontiguousarray), or reshape a .clone() in the function."
                )

    def write(self, w: FastCallWriter) -> None:
        for k in self.traced.contiguous:
            if k not in w.numbers:
                w.miss_if(f"not {w.data_text(self.traced.sources[k])}.flags.c_contiguous")


def _aval_of(x: Any) -> Aval:
    return x.aval if isinstance(x, Tensor) else Aval(x.shape, x.dtype)


def array_of(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x._data
    return x if isinstance(x, np.ndarray) else np.asarray(x)
