"""Writes the driver of an ejected module: it checks and allocates arrays, launches kernels and calls NumPy."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from math import prod
from typing import Any

import numpy as np

from jitgrad.backends.python import DTYPES, passed
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer
from jitgrad.compiler.placement import ZERO
from jitgrad.compiler.plan import KernelStep, OpStep, Place, Plan
from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.errors import EjectError
from jitgrad.core.ir import Graph, Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import Origin
from jitgrad.eager.float16 import HALF, eager_function
from jitgrad.eject.containers import container_text
from jitgrad.eject.cpu_text import CPU_CHECKS, CPU_HEAD
from jitgrad.eject.function_source import FunctionLibrary, literal_text
from jitgrad.eject.kernel_lines import KernelText
from jitgrad.eject.kernel_writer import KernelWriter
from jitgrad.eject.line_wrapping import wrap_line
from jitgrad.eject.module_spec import InputSpec, ModuleSpec, ResultSpec
from jitgrad.eject.support import SupportLibrary
from jitgrad.eject.vector_math import MathLibrary

_NOTE_COLUMN = 60


def dtype_text(dtype: Dtype) -> str:
    """``np.float32``."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


class DriverWriter:
    """The steps of a program as lines of ``run`` on the CPU, and the functions that these call.

    Attributes:
        head, checks, about: the beginning of the module, functions that every module may need, and what the beginning
            says besides.
        kernels: the numba functions, by name.
        writers: the function that computes each output of the program, by its number; "" for none.
    """

    head: str = CPU_HEAD
    checks: Mapping[str, str] = CPU_CHECKS
    about: Sequence[str] = ()

    def __init__(self, spec: ModuleSpec, plan: Plan, reserved: set[str]) -> None:
        self.spec = spec
        self.plan = plan
        self.reserved = reserved
        self.mathematics: MathLibrary = self.new_mathematics()
        self.support: SupportLibrary = SupportLibrary()
        self.user_functions: FunctionLibrary = FunctionLibrary(reserved, "njit")
        self.library: FunctionLibrary = FunctionLibrary(reserved)
        self.kernels: dict[str, str] = {}
        self.classes: dict[str, str] = {}
        self.lines: list[str] = []
        self.before_return: list[str] = []
        self.used_checks: set[str] = set()
        self._kernel_names: dict[str, str] = {}
        self._buffers: dict[Buffer, tuple[str, Dtype]] = {}
        self._last_writer: dict[Buffer, str] = {}
        self._numbers = count(1)

    def write(self) -> None:
        """Write all lines."""
        self.flat: list[str] = [self._input(k) for k in range(len(self.spec.inputs))]
        if any(i.changed for i in self.spec.inputs):
            self._check_apart()
        for spec, name, buffer in zip(self.spec.inputs, self.flat, self.plan.inputs, strict=False):
            self._buffers[buffer] = name, spec.dtype
        for step in self.plan.steps:
            if isinstance(step, KernelStep):
                self._launch(step)
            else:
                self._call(step)
        self.finish()

    @property
    def writers(self) -> list[str]:
        buffers = [p.location.buffer if p.location is not None else None for p in self.plan.outputs]
        return ["" if b is None else self._last_writer.get(b, "") for b in buffers]

    def line(self, text: str, note: str = "") -> None:
        indented = f"    {text}"
        self.lines += wrap_line(f"{indented:<{_NOTE_COLUMN}}  # {note}" if note else indented)

    # --- inputs -----------------------------------------------------------------------------------

    def _input(self, k: int) -> str:
        """Write the check of input ``k``; the name of its flat array."""
        spec = self.spec.inputs[k]
        name = f"{spec.name}_flat"
        if spec.constant is not None:
            self.line(f"{name} = {self.constant(spec.expression)}")
            return name
        check = "changed_array" if spec.changed else "flat_array"
        self.used_checks.add(check)
        self.line(f"{name} = {check}({spec.expression!r}, {spec.expression}, {spec.shape}, {dtype_text(spec.dtype)})")
        return name

    def _check_apart(self) -> None:
        named = [(i, name) for i, name in zip(self.spec.inputs, self.flat, strict=True) if i.constant is None]
        pairs = ", ".join(f"{i.expression!r}: {self.named_array(i, name)}" for i, name in named)
        self.line(f"arrays = {{{pairs}}}")
        self.line(f"check_apart(arrays, {[i.expression for i, _ in named if i.changed]!r})")

    # --- places -----------------------------------------------------------------------------------

    def new_name(self, base: str) -> str:
        """A name for an array that no function has."""
        base = base if base.isidentifier() else "array"  # a number follows, so keywords do no harm
        name = next(n for n in (f"{base}_{k}" for k in self._numbers) if n not in self.library.names)
        self.reserved.add(name)
        return name

    def _allocate(self, place: Place, base: str) -> None:
        """Make the buffer of ``place``, if it is new."""
        assert place.location is not None
        buffer, dtype = place.location.buffer, place.aval.dtype
        if buffer not in self._buffers:
            name = self.new_name(base)
            self._buffers[buffer] = name, dtype
            self.line(f"{name} = {self.new_array(buffer.nbytes // dtype.itemsize, dtype)}")

    def _elements(self, buffer: Buffer, dtype: Dtype) -> str:
        """The flat array of all of ``buffer`` as elements of ``dtype``."""
        name, found = self._buffers[buffer]
        return name if found == dtype else f"{name}.view({dtype_text(dtype)})"

    def array(self, place: Place) -> str:
        """The text of the NumPy array, or of the number, at ``place``."""
        if place.location is None:
            return self._number(place)
        return self.part(self.readable(self.memory(place)), place)

    def memory(self, place: Place) -> str:
        """The flat array that ``place`` is a part of, as elements of its dtype."""
        assert place.location is not None
        self._allocate(place, "empty")  # nothing writes an array without elements
        return self._elements(place.location.buffer, place.aval.dtype)

    def part(self, text: str, place: Place) -> str:
        """``place`` as a view of the flat array ``text``."""
        assert place.location is not None
        aval, (buffer, offset, strides, _) = place.aval, place.location
        first = offset // aval.dtype.itemsize
        if place.location.is_contiguous(aval.shape):
            size = prod(aval.shape)
            whole = size * aval.dtype.itemsize == buffer.nbytes
            text = text if whole else f"{text}[{first}:{first + size}]"
            return text if whole and aval.ndim == 1 else f"{text}.reshape({aval.shape})"
        if prod(aval.shape) == 0:
            return f"np.empty({aval.shape}, {dtype_text(aval.dtype)})"
        self.used_checks.add("strided_array")
        return f"strided_array({text}{f'[{first}:]' if first else ''}, {aval.shape}, {strides})"

    def _number(self, place: Place) -> str:
        text = literal_text(place.number if isinstance(place.number, np.generic) else place.aval.dtype.type(place.number))
        assert text is not None
        return text

    # --- what depends on where the arrays are ---------------------------------------------------------

    def new_mathematics(self) -> MathLibrary:
        return MathLibrary()

    def new_array(self, elements: int, dtype: Dtype) -> str:
        """The text of a new flat array."""
        return f"np.empty({elements}, {dtype_text(dtype)})"

    def decorator(self, text: KernelText) -> str:
        """What makes a kernel of the function ``text``."""
        return "njit_rows" if "prange(" in text.body else "njit"

    @property
    def functions(self) -> str:
        """The functions that kernels call."""
        return self.mathematics.text + self.support.text + self.user_functions.text

    def on_host(self, text: str) -> str:
        """A result as a NumPy array."""
        return text

    def named_array(self, i: InputSpec, flat: str) -> str:
        """The array of input ``i``, whose memory is compared with that of others."""
        return flat

    def constant(self, name: str) -> str:
        """The flat array of the constant ``name``."""
        return name

    def readable(self, memory: str) -> str:
        """The flat array ``memory`` as NumPy reads it."""
        return memory

    def store(self, place: Place, value: str, note: str) -> None:
        """Write ``value`` at ``place``."""
        self.line(f"{self.array(place)}[...] = {value}", note)

    def change(self, place: Place, call: Callable[[str], str], note: str) -> None:
        """Let ``call`` of the array at ``place`` change it."""
        self.line(call(self.array(place)), note)

    def update(self, flat: str, shape: Shape, value: str) -> None:
        """Write ``value`` into the flat array of an input."""
        self.line(f"{flat}.reshape({shape})[...] = {value}")

    def product(self, step: OpStep) -> str:
        """The matrix product of ``step``'s operands."""
        return " @ ".join(self.array(p) for p in step.reads)

    # --- kernels ----------------------------------------------------------------------------------

    def _launch(self, step: KernelStep) -> None:
        base = "_".join(dict.fromkeys(step.lowered.kernel.ops[-2:]))
        body: Graph = step.node.attr("body")
        values = [v for v in body.outputs if isinstance(v, Value)]
        for place, value in zip(step.writes, values, strict=True):
            producer = body.producer(value)
            self._allocate(place, producer.op.name if producer is not None else "array")
        name = self.launch(step, base, _lines(step.origins))
        for place in step.writes:
            assert place.location is not None
            self._last_writer[place.location.buffer] = name

    def launch(self, step: KernelStep, base: str, note: str) -> str:
        """Write the kernel of ``step`` and its launch; its name."""
        text = KernelWriter(step.lowered, self.mathematics, self.support, self.user_function).write()
        name, slots = self.kernel(text, base), self.slots(step)
        args = [self.argument(text, p.name, p.kind, slots) for p in text.params]
        self.line(f"{name}({', '.join(args)})", note)
        return name

    def user_function(self, name: str, function: Any) -> str:
        what = f"the elementwise function {getattr(function, '__name__', name)}"
        return self.user_functions.name_of(getattr(function, "py_func", function), what)

    def kernel(self, text: KernelText, base: str) -> str:
        """The name of the function of ``text``; equal ones are written once."""
        key = ast.unparse(ast.parse("def kernel" + text.body))
        if key not in self._kernel_names:
            name = f"kernel_{len(self._kernel_names) + 1}_{base}"[:60].rstrip("_")
            self._kernel_names[key] = name
            self.kernels[name] = _function_text(name, text, self.decorator(text))
        return self._kernel_names[key]

    def slots(self, step: KernelStep) -> dict[str, ArgSlot]:
        kernel = step.lowered.kernel
        slots = dict(zip([p.name for p in kernel.params], step.args, strict=True))
        if kernel.epilogue is not None:
            slots.update(zip([p.name for p in kernel.epilogue.params], step.epilogue_args, strict=True))
        return slots

    def argument(self, text: KernelText, name: str, kind: str, slots: dict[str, ArgSlot]) -> str:
        if name in text.numbers:
            return repr(text.numbers[name])
        pointers = {first: pointer for pointer, first in text.first.items()}
        slot = slots[pointers.get(name, name)]
        if isinstance(slot, int):
            return repr(slot) if kind[0] != "f" else str(literal_text(passed(slot, kind)))
        buffer, offset = slot
        if name in pointers:
            _, dtype = self._buffers[buffer]
            return repr(offset // dtype.itemsize)
        dtype = DTYPES[kind.rstrip("*")]
        array = self._elements(buffer, np.dtype(np.uint16) if dtype == HALF else dtype)
        return f"{array}[{offset // dtype.itemsize}:]" if offset and name not in text.first else array

    # --- library steps ----------------------------------------------------------------------------

    def _call(self, step: OpStep) -> None:
        op, attrs, note = step.op, dict(step.attrs), _lines([step.node.origin])
        operands = [self.array(p) for p in step.reads]
        first = step.writes[0]
        assert first.location is not None
        if op is ZERO:
            self._allocate(first, "zeros")
            self.store(first, "0", note)
            return
        in_place = op.updates_first_operand and step.reads[0].location is first.location
        if in_place:
            self.change(first, lambda array: self.function_call(op, [array, *operands[1:]], attrs, into=array), note)
            return
        text = self._result_text(step, operands, attrs)
        if op.multiple:
            names = [self.new_name(f"{op.name}_array") for _ in step.writes]
            self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}", note)
            for place, name in zip(step.writes, names, strict=True):
                self.keep(place, name, op.name, "")
        else:
            self.keep(first, text, op.name, note)

    def _result_text(self, step: OpStep, operands: Sequence[str], attrs: dict[str, Any]) -> str:
        op, avals = step.op, [p.aval for p in step.reads]
        if op.contraction and step.writes[0].aval.dtype != HALF and all(a.dtype == step.writes[0].aval.dtype for a in avals):
            return self.product(step)
        if op.kind is Kind.ELEMENTWISE:
            dtypes, _ = op.dtypes(avals, **attrs)
            if eager_function(op, dtypes) is not op.eager:
                raise EjectError(f"eject: {op.name} at {step.node.origin.full()} has no form for {avals[0]} outside kernels")
            operands = [f"np.asarray({x}, {dtype_text(d)})" for x, d in zip(operands, dtypes, strict=True)]
        return self.function_call(op, operands, attrs)

    def function_call(self, op: OpDef, operands: Iterable[str], attrs: dict[str, Any], into: str = "") -> str:
        name = self.library.name_of(op.eager, f"the op {op.name}", f"numpy_{op.name}")
        texts = []
        for key, value in attrs.items():
            text = literal_text(value)
            if text is None:
                raise EjectError(f"eject: the op {op.name} has the attribute {key} of type {type(value).__name__}")
            texts.append(f"{key}={text}")
        return f"{name}({', '.join([*operands, *([f'into={into}'] if into else []), *texts])})"

    def keep(self, place: Place, text: str, base: str, note: str) -> None:
        """Store the array ``text`` at ``place``: in memory that exists, or in memory of its own."""
        assert place.location is not None
        buffer, aval = place.location.buffer, place.aval
        whole = aval.nbytes == buffer.nbytes and place.location.is_contiguous(aval.shape)
        if " @ " in text and whole and buffer not in self._buffers:
            name = self.new_name(base)
            self._buffers[buffer] = name, aval.dtype
            self.line(f"{name} = ({text}).reshape(-1)", note)
            return
        if buffer in self._buffers or buffer not in self.plan.external:
            self._allocate(place, base)
            self.store(place, text, note)
            return
        name = self.new_name(base)
        self._buffers[buffer] = name, aval.dtype
        self.used_checks.add("result_array")
        self.line(f"{name} = result_array({text}, {aval.shape}, {dtype_text(aval.dtype)})", note)

    # --- results ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write new data into inputs, and return the results."""
        for k, output in self.spec.updates:
            place = self.plan.outputs[output]
            assert place.location is not None or place.number is not None
            own = self.plan.inputs[k] if k < len(self.plan.inputs) else None
            if place.location is None or place.location.buffer is not own:
                self.update(self.flat[k], self.spec.inputs[k].shape, self.output(output))
        texts = [self.result(r) for r in self.spec.results]
        result = container_text(self.spec.treedef, texts, self.classes)
        if self.spec.gradients:
            pairs = [f"{name!r}: {'None' if grad is None else self.result(grad)}" for name, grad in self.spec.gradients]
            result = f"{result}, {{{', '.join(pairs)}}}"
        for line in self.before_return:
            self.line(line)
        self.line(f"return {result}")

    def output(self, k: int) -> str:
        place = self.plan.outputs[k]
        if place.location is None:
            return f"np.full({place.aval.shape}, {self._number(place)})"
        return self.array(place)

    def result(self, spec: ResultSpec) -> str:
        text = spec.expression if spec.output is None else self.output(spec.output)
        for op, attrs in spec.views:
            text = self.function_call(op, [text], dict(attrs))
        return f"{text}[...]" if spec.detached else text


def _lines(origins: Iterable[Origin]) -> str:
    return ", ".join(dict.fromkeys(str(o) for o in origins if o.line))


def _function_text(name: str, text: KernelText, decorator: str) -> str:
    """The function ``name``, whose docstring tells what its arrays are."""
    arrays = [f"{p.name}: {p.note.replace('*', '')}" for p in text.params if p.kind.endswith("*") and p.note]
    head, _, body = text.body.partition("\n")
    doc = textwrap.wrap(f'"""{", ".join(arrays)}."""', 100, initial_indent="    ", subsequent_indent="    ")
    lines = [f"@{decorator}", *wrap_line(f"def {name}{head}"), *doc, *body.splitlines()]
    return "\n\n" + "\n".join(lines) + "\n"
