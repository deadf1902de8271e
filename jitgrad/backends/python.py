"""The python target: Python runs the kernel text of the cpu target, step by step in a debugger."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.host_target import HostTarget
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import Graph
from jitgrad.eager.float16 import compute_dtype
from jitgrad.runtime.frame import HostFrame
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Launch, Program
from jitgrad.vecmath import numpy_namespace

DTYPES = {dtype_name(np.dtype(c)): np.dtype(c) for c in "?bhilBHILefd"}


class Pointer:
    """A pointer parameter of a kernel: the elements of ``array`` from ``offset`` on."""

    __slots__ = ("array", "offset")

    def __init__(self, array: np.ndarray[Any, Any], offset: int = 0) -> None:
        self.array = array
        self.offset = offset

    def __getitem__(self, k: int) -> Any:
        return self.array[self._place(k)]

    def __setitem__(self, k: int, value: Any) -> None:
        self.array[self._place(k)] = value

    def _place(self, k: int) -> int:
        place = self.offset + int(k)
        if not 0 <= place < self.array.size:
            raise IndexError(f"a kernel reads or writes element {place} of a buffer of {self.array.size}")
        return place


def passed(word: int, kind: str) -> Any:
    """``word`` as an argument of type ``kind``: an integer, or the float of that bit pattern."""
    if kind[0] != "f":
        return word
    number = np.array(word, np.int64).astype(f"i{int(kind[1:]) // 8}").view(DTYPES[kind])
    return number.astype(compute_dtype(DTYPES[kind]))[()]


def _to(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    def convert(x: Any) -> Any:
        return np.asarray(x).astype(dtype).astype(compute_dtype(dtype))[()]

    return convert


def _scratch(dtype: np.dtype[Any]) -> Callable[[int], Pointer]:
    return lambda count: Pointer(np.zeros(count, dtype))


def _transpose_rows_in(tile: Pointer, p: Pointer, stride: int, n: int, m: int) -> None:
    for j in range(n):
        for k in range(LANES):
            tile[j * LANES + k] = p[min(k, m - 1) * stride + j]


def _transpose_rows_out(p: Pointer, tile: Pointer, stride: int, n: int, m: int) -> None:
    for j in range(n):
        for k in range(m):
            p[k * stride + j] = tile[j * LANES + k]


def _transpose_tile(tile: Pointer, p: Pointer, stride: int, n: int, m: int) -> None:
    for k in range(m):
        for j in range(n):
            tile[k * LANES + j] = p[j * stride + k]


@cache
def names() -> Mapping[str, Any]:
    """The functions of kernel source, as Python functions on NumPy scalars."""
    functions: dict[str, Any] = {**numpy_namespace(), **INTEGER_FUNCTIONS}
    functions.update({f"to_{name}": _to(dtype) for name, dtype in DTYPES.items()})
    functions.update({f"scratch_{name}": _scratch(dtype) for name, dtype in DTYPES.items()})
    functions.update(
        transpose_rows_in=_transpose_rows_in,
        transpose_rows_out=_transpose_rows_out,
        transpose_tile=_transpose_tile,
        at=lambda p, n: Pointer(p.array, p.offset + int(n)),
        stream=Pointer.__setitem__,
        prefetch=lambda p, n: None,
        prefetch_beside=lambda p, n: None,
        freeze=lambda x: x,
        as_half=np.float32,
        as_bits=np.float16,
        select=lambda c, a, b: a if c else b,
        reassoc_add=lambda a, x: a + x,
        reassoc_mul=lambda a, x: a * x,
        fmax=np.maximum,
        fmin=np.minimum,
        INF=np.inf,
        NAN=np.nan,
    )
    return functions


class PythonTarget(HostTarget):
    """Executes kernel source as Python."""

    name = "python"

    def warm_up(self) -> None:
        """Nothing to compile ahead."""

    def expect(self, graph: Graph) -> None:
        """Nothing to compile ahead."""

    def load(self, kernel: Kernel, source: Source, entry: str) -> Callable[..., None]:
        """The function of that name; its lines show in tracebacks and debuggers."""
        filename = f"<jitgrad kernel {kernel.name} {abs(hash(source.identity)):x}>"
        linecache.cache[filename] = (len(source.text), None, source.text.splitlines(True), filename)
        namespace = {**names(), **user_functions(kernel)}
        exec(compile(source.text, filename, "exec"), namespace)
        return namespace[entry]  # type: ignore[no-any-return]

    def runner(self, program: Program) -> PythonRunner:
        return PythonRunner(program)


class PythonRunner:
    """Runs ``program`` step by step."""

    tiled_products: frozenset[Any] = frozenset()

    def __init__(self, program: Program) -> None:
        self.program = program

    def computed_by(self, call: LibraryCall) -> str:
        return call.multiplied_by(self.tiled_products)

    def frame(self) -> PythonFrame:
        return PythonFrame(self.program)


class PythonFrame(HostFrame):
    """Runs kernels as Python functions, block by block as the instruction loop does."""

    def run(self, inputs: Sequence[Any], results: list[Any], interruptible: bool = False) -> None:
        with np.errstate(all="ignore"):
            for step in self.program.steps:
                if isinstance(step, Launch):
                    self.launch(step, inputs, results)
                else:
                    step.run(self, inputs, results)

    def launch(self, step: Launch, inputs: Sequence[Any], results: list[Any]) -> None:
        lowered, kernel = step.step.lowered, step.kernel
        args = [self.argument(a, p, inputs, results) for a, p in zip(step.args, kernel.main.params, strict=True)]
        iterations, block_size = lowered.schedule.iterations, lowered.schedule.block_size
        for start in range(0, iterations, block_size):
            kernel.main_code(*args, start, min(start + block_size, iterations))
        if kernel.epilogue is not None:
            pairs = zip(step.epilogue_args, kernel.epilogue.params, strict=True)
            kernel.epilogue_code(*[self.argument(a, p, inputs, results) for a, p in pairs], 0, 1)

    def argument(self, slot: ArgSlot, kind: str, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        if isinstance(slot, int):
            return passed(slot, kind)
        buffer, offset = slot
        dtype = DTYPES[kind.rstrip("*")]
        return Pointer(self.bytes_of(buffer, inputs, results).view(dtype), offset // dtype.itemsize)
