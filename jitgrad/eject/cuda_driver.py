"""Writes the driver of an ejected CUDA module: it keeps arrays on the device, and launches kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jitgrad.compiler.plan import KernelStep, OpStep, Place
from jitgrad.core.aval import Dtype, Shape
from jitgrad.eject.cuda_functions import CudaMathLibrary
from jitgrad.eject.cuda_text import CUDA_CHECKS, CUDA_DIVIDE, CUDA_HEAD
from jitgrad.eject.driver import DriverWriter, dtype_text
from jitgrad.eject.expressions import numpy_name
from jitgrad.eject.grid import GridKernelWriter, GridText
from jitgrad.eject.kernel_lines import KernelText
from jitgrad.eject.module_spec import InputSpec, ResultSpec
from jitgrad.eject.vector_math import MathLibrary


class CudaDriverWriter(DriverWriter):
    """The steps of a program as lines of ``run`` on arrays of the device.

    Products are cuBLAS's where cupy is installed. NumPy computes all other library steps, and these products elsewhere,
    on copies on the host.
    """

    head = CUDA_HEAD
    checks: Mapping[str, str] = CUDA_CHECKS
    about: Sequence[str] = (
        "The kernels are for ``numba.cuda``, which contracts products and sums: results differ from those of the CPU by "
        "rounding. Arguments are NumPy arrays or arrays on the device; results are on the device, and have "
        "``copy_to_host()``.",
    )

    @property
    def functions(self) -> str:
        text = super().functions.replace("np.divide(", "divide(")
        return (CUDA_DIVIDE if "divide(" in text else "") + text.replace("@njit\n", "@device_function\n")

    def write(self) -> None:
        self.used_checks.add("host")  # for `example`
        super().write()

    def on_host(self, text: str) -> str:
        return f"host({text})"

    def named_array(self, i: InputSpec, flat: str) -> str:
        return i.expression

    def new_mathematics(self) -> MathLibrary:
        return CudaMathLibrary()

    def new_array(self, elements: int, dtype: Dtype) -> str:
        return f"cuda.device_array({elements}, {dtype_text(dtype)})"

    def decorator(self, text: KernelText) -> str:
        return "cuda.jit"

    def constant(self, name: str) -> str:
        return f"cuda.to_device({name})"

    def readable(self, memory: str) -> str:
        return f"{memory}.copy_to_host()"

    def store(self, place: Place, value: str, note: str) -> None:
        self._write(self.memory(place), self.part("memory", place), value, note)

    def _write(self, flat: str, part: str, value: str, note: str = "") -> None:
        self.used_checks.update(("library_array", "write"))
        self.line(f"write({flat}, lambda memory: {part}, {value})", note)

    def change(self, place: Place, call: Callable[[str], str], note: str) -> None:
        self.line(f"changed = {self.array(place)}")
        self.line(call("changed"), note)
        self.store(place, "changed", "")

    def update(self, flat: str, shape: Shape, value: str) -> None:
        self._write(flat, f"memory.reshape({shape})", value)

    def product(self, step: OpStep) -> str:
        self.used_checks.add("library_array")
        matrices = [p if p.location is None else self.part(f"library_array({self.memory(p)})", p) for p in step.reads]
        return " @ ".join(m if isinstance(m, str) else self.array(m) for m in matrices)

    def keep(self, place: Place, text: str, base: str, note: str) -> None:
        self._allocate(place, base)
        self.store(place, text, note)

    def output(self, k: int) -> str:
        place = self.plan.outputs[k]
        if place.location is None:
            return f"cuda.to_device({super().output(k)})"
        if place.location.is_contiguous(place.aval.shape) and place.aval.size:
            return self.part(self.memory(place), place)
        return f"cuda.to_device(np.ascontiguousarray({self.array(place)}))"

    def result(self, spec: ResultSpec) -> str:
        if spec.output is not None:
            return super().result(spec)
        if not spec.views:
            return spec.expression
        text = f"host({spec.expression})"
        for op, attrs in spec.views:
            text = self.function_call(op, [text], dict(attrs))
        return f"cuda.to_device(np.ascontiguousarray({text}))"

    def finish(self) -> None:
        for i, flat in zip(self.spec.inputs, self.flat, strict=True):
            if i.changed:
                self.used_checks.add("copy_back")
                self.before_return.append(f"copy_back({i.expression}, {flat})")
        super().finish()

    # --- kernels ----------------------------------------------------------------------------------

    def launch(self, step: KernelStep, base: str, note: str) -> str:
        text = GridKernelWriter(step.lowered, self.mathematics, self.support, self.user_function).write()
        scratch = {}
        for name, (elements, kind) in text.scratch.items():
            scratch[name] = self.new_name(name)
            dtype = numpy_name(kind)
            self.line(f"{scratch[name]} = cuda.device_array({elements}, {dtype})")
        name = self._grid(text, base, step, scratch, note)
        if text.finish is None:
            return name
        return self._grid(text.finish, f"{base}_finish", step, scratch, note)

    def _grid(self, text: GridText, base: str, step: KernelStep, scratch: dict[str, str], note: str) -> str:
        name, slots = self.kernel(text, base), self.slots(step)
        args = [scratch.get(p.name) or self.argument(text, p.name, p.kind, slots) for p in text.params]
        self.line(f"{name}[{text.blocks}, {text.threads}]({', '.join(args)})", note)
        return name
