"""The source of a fast call: a function, generated for one signature, that does a CallPlan."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.backends.base import AddressSpace
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.lowering.layout import BufferRole
from jitgrad.core.aval import Aval
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import address_of
from jitgrad.jit.signature import Call
from jitgrad.jit.trace_result import TraceResult
from jitgrad.runtime.program import Program

FastCall = Callable[[tuple[Any, ...], dict[str, Any]], Any]

MISS = object()  # the result of a fast call that does not apply; it has changed nothing

FEW = 24  # the text handles up to this number of tensors one by one, and more in loops

_ARRAYS = (np.ndarray, np.generic)
_HOST = (*_ARRAYS, float, int)


class NotSupportedError(Exception):
    """This signature cannot have a fast call."""


def usable_address(tensor: Tensor) -> int:
    """The address of ``tensor``'s data, which it remembers; 0 if kernels need a copy."""
    data = tensor._data
    if type(data) is np.ndarray and data.flags.c_contiguous and data.flags.aligned:
        tensor._address = address_of(data)
        return tensor._address
    return 0


def device_address(tensor: Tensor) -> int:
    """The address of ``tensor``'s data on the device; 0 if it is elsewhere, or kernels need a copy."""
    data = tensor._data
    return data.address if type(data) is DeviceArray and data.is_contiguous else 0


def same_aval(tensor: Tensor, expected: Aval) -> bool:
    """Whether ``tensor`` has this aval; if so it takes the object: the next test is by identity."""
    aval = tensor.aval
    if aval is expected or (
        aval.shape == expected.shape and aval.dtype == expected.dtype and aval.weak == expected.weak
    ):
        tensor._aval = expected
        return True
    return False


@lru_cache(maxsize=4096)
def interned(aval: Aval) -> Aval:
    """One object for all equal avals: a result then passes the next call's test by identity."""
    return aval


_ELEMENT = re.compile(r"(\w+)\[(\d+)\]")


def listed(texts: Sequence[str], few: int = FEW) -> str:
    """Expressions with commas; more than ``few`` consecutive elements of one list become a slice of it."""
    parts: list[str] = []
    k = 0
    while k < len(texts):
        end = k + 1
        if (match := _ELEMENT.fullmatch(texts[k])) is not None:
            name, first = match[1], int(match[2])
            while end < len(texts) and texts[end] == f"{name}[{first + end - k}]":
                end += 1
        parts.append(texts[k] if end - k <= few else f"*{name}[{first}:{first + end - k}]")
        parts += texts[k + 1 : end] if end - k <= few else []
        k = end
    return ", ".join(parts)


def tuple_text(texts: Sequence[str]) -> str:
    """An expression for the tuple of ``texts``."""
    return f"({listed(texts)}{',' if texts else ''})"


class FastCallWriter:
    """The lines and names of a fast call, to which each step of a CallPlan adds its text."""

    def __init__(self, call: Call, traced: TraceResult, program: Program, donated_used: Collection[int]) -> None:
        self.call = call
        self.traced = traced
        self.program = program
        self.donated_used = donated_used  # positions of the inputs that are donated and overwritten
        self.lines: list[str] = []
        self.run_line: int = 0  # of the text, where the program runs
        self.names: dict[str, Any] = {"MISS": MISS, "Tensor": Tensor, "ndarray": np.ndarray, "same_aval": same_aval}
        self.names.update(usable_address=usable_address, device_address=device_address, of_result=Tensor.of_result)
        self.on_device: bool = program.runner.address_space is AddressSpace.DEVICE
        self.leaves: list[str] = []  # an expression for each leaf of the arguments
        self.lists: dict[str, int] = {}  # names of the lists of tensors that loops handle, with their lengths
        self.known = ""  # the name of what is known of the addresses of outside tensors on a device, and the list of these
        self.known_addresses = ""
        self.pointers: list[str] = []  # an expression for the address of each input of the program
        # of the inputs that are numbers: the frame's array for them, and an expression for the number
        self.numbers: dict[int, tuple[str, str]] = {}
        # of the inputs of a program on a device that are on the host: an expression for the array or number
        self.on_host: dict[int, str] = {}
        self.tensors: dict[int, str] = {}  # an expression for each output of the program that is a tensor already
        self._data_lists: set[str] = set()  # lists whose arrays have a list of their own

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def run_by(self, text: str, depth: int = 1) -> None:
        """The line that runs the program."""
        self.line(text, depth)
        self.run_line = len(self.lines) + 1

    def constant(self, letter: str, value: Any) -> str:
        name = f"{letter}{len(self.names)}"
        self.names[name] = value
        return name

    def miss_if(self, condition: str) -> None:
        self.line(f"if {condition}: return MISS")

    @property
    def text(self) -> str:
        return "def fast_call(args, kwargs):\n" + "\n".join(self.lines) + "\n"

    def compile(self) -> FastCall:
        exec(compile(self.text, f"<jitgrad fast call {self.traced.graph.name}>", "exec"), self.names)
        fast_call: FastCall = self.names["fast_call"]
        return fast_call

    # --- objects and arrays of the caller ---------------------------------------------------------

    def object_text(self, source: InputSource) -> str:
        """An expression for the object at ``source``."""
        if source.kind is SourceKind.ARGUMENT:
            return str(self.leaves[source.key])
        if source.kind is SourceKind.GRADIENT:
            return f"{self.object_text(source.key)}._grad"
        return self.constant("T", source.key)

    def is_array(self, source: InputSource) -> bool:
        """Whether the object at ``source`` is an array, not a tensor."""
        x = self.call.leaves[source.key] if source.kind is SourceKind.ARGUMENT else source.key
        return isinstance(x, _ARRAYS)

    def data_text(self, source: InputSource) -> str:
        """An expression for the array of the tensor or array at ``source``."""
        return self.object_text(source) if self.is_array(source) else f"{self.object_text(source)}._data"

    def address_text(self, tensor: str) -> str:
        """An expression for the address of the data of ``tensor``; 0 where the general path has to look at it."""
        return f"device_address({tensor})" if self.on_device else f"{tensor}._address or usable_address({tensor})"

    def stays_on_host(self, source: InputSource) -> bool:
        """Whether the object at ``source`` is an input on the host of a program on a device."""
        x = source.resolve(self.call.leaves) if self.on_device else None
        return isinstance(x._data if isinstance(x, Tensor) else x, _HOST)

    def input_text(self, k: int) -> str:
        """An expression for the array of input ``k``."""
        return f"frame.{self.numbers[k][0]}[{k}, ...]" if k in self.numbers else self.data_text(self.traced.sources[k])

    # --- outputs of the program -------------------------------------------------------------------

    @property
    def many_results(self) -> bool:
        """Whether the result buffers are the lists ``o`` and ``q``, not ``o0``, ``q0``, ..."""
        return len(self.program.result_specs) > FEW

    def result_arrays(self) -> list[str]:
        """Expressions for the arrays of the result buffers."""
        return ["*o"] if self.many_results else [f"o{k}" for k in range(len(self.program.result_specs))]

    def _donated_data(self, k: int) -> str:
        """An expression for the array of a donated argument that holds a result now."""
        if k not in self.donated_used:
            raise NotSupportedError
        text = self.leaves[self.traced.sources[k].key]
        name = text.partition("[")[0]
        if name not in self.lists:
            return f"{text}._data"
        if name not in self._data_lists:
            self._data_lists.add(name)
            self.line(f"e{name} = [t._data for t in {name}]")
        return f"e{text}"

    def array_of(self, output: int) -> tuple[str, str]:
        """Expressions for an output's array and address, "0" where kernels need a copy of it."""
        program = self.program
        place = program.plan.outputs[output]
        if place.location is not None:
            slot = program.slots[place.location.buffer]
            if place.location.buffer.role is BufferRole.INPUT:
                return self._donated_data(slot), self.pointers[slot]
            k = slot - len(program.plan.inputs)
            whole = place.location.is_contiguous(place.aval.shape)
            if k < len(program.result_specs) and whole and program.result_specs[k][0] == place.aval.shape:
                if self.on_device:
                    return f"r[{k}]", "0"
                return (f"o[{k}]", f"q[{k}]") if self.many_results else (f"o{k}", f"q{k}")
        in_list = program.plan.external or self.on_device
        arrays = "r" if in_list else "o" if self.many_results else tuple_text(self.result_arrays())
        return f"{self.constant('view', program.output_views[output])}((), {arrays})", "0"

    def aval_of(self, output: int, weak: bool) -> Aval:
        aval = self.program.plan.outputs[output].aval
        return interned(Aval(aval.shape, aval.dtype, weak))

    def new_tensor(self, output: int, weak: bool = False) -> str:
        """An expression that makes a tensor of ``output``."""
        array, address = self.array_of(output)
        return f"of_result({array}, {self.constant('R', self.aval_of(output, weak))}, {address})"
