"""The python target: Python runs the kernel text of the cpu target, step by step in a debugger."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.base import AddressSpace, user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.host_target import HostTarget
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.compiler.lowering.layout import ArgSlot, BufferOffset
from jitgrad.compiler.plan import BlockRun
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import Graph
from jitgrad.eager.float16 import compute_dtype
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.frame import HostFrame
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.runtime.program import Program
from jitgrad.vecmath import numpy_namespace

Arrays = tuple[Sequence[Any], Sequence[Any]]  # inputs, results
DTYPES = {dtype_name(np.dtype(c)): np.dtype(c) for c in "?bhilBHILefd"}


class Pointer:
    """A pointer parameter of a kernel: the elements of ``array`` from ``offset`` on."""

    __slots__ = ("array", "offset")

    def __init__(self, array: np.ndarray[Any, Any], offset: int = 0) -> None:
        self.array: np.ndarray[Any, Any] = array
        self.offset: int = offset

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


def _load_between(p: Pointer, k: int, position: int, low: int, high: int) -> Any:
    return p[k] if low <= position < high else p.array.dtype.type(0)


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


def _lanes_in(tile: Pointer, p: Pointer, stride: int, n: int, m: int) -> None:
    for i in range(m):
        for k in range(n):
            tile[i * n + k] = p[i * stride + k]


def _lanes_out(p: Pointer, tile: Pointer, stride: int, n: int, m: int) -> None:
    for i in range(m):
        for k in range(n):
            p[i * stride + k] = tile[i * n + k]


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
        lanes_in=_lanes_in,
        lanes_out=_lanes_out,
        at=lambda p, n: Pointer(p.array, p.offset + int(n)),
        element_at=lambda p, n: p[int(n)],
        load_between=_load_between,
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

    address_space: AddressSpace | None = None
    launched = ""
    interruptible = True
    repeats = False
    tiled_products: frozenset[Any] = frozenset()

    def __init__(self, program: Program) -> None:
        self.program = program

    def computed_by(self, call: LibraryCall) -> str:
        return call.computed_by(self.tiled_products)

    def frame(self) -> PythonFrame:
        return PythonFrame(self.program)


class PythonFrame(HostFrame):
    """Runs kernels as Python functions, block by block as the instruction loop does."""

    def run(self, inputs: Sequence[Any], results: list[Any], interruptible: bool = False) -> None:
        arrays = inputs, results
        runs = {run.first: run for run in self.program.plan.block_runs}
        steps = iter(enumerate(self.program.steps))
        with np.errstate(all="ignore"):
            for k, step in steps:
                if k in runs:
                    others = [following for _, following in itertools.islice(steps, runs[k].stop - k - 1)]
                    self.run_blocks(runs[k], [s for s in (step, *others) if isinstance(s, Launch)], arrays)
                elif isinstance(step, Launch):
                    self.launch(step, arrays)
                    self.finish(step, arrays)
                else:
                    step.run(self, inputs, results)

    def launch(self, step: Launch, arrays: Arrays) -> None:
        kernel, schedule = step.kernel, step.step.lowered.schedule
        args = [self.argument(a, p, arrays) for a, p in zip(step.args, kernel.main.params, strict=True)]
        for start in range(0, schedule.iterations, schedule.block_size):
            kernel.main_code(*args, start, min(start + schedule.block_size, schedule.iterations))

    def run_blocks(self, run: BlockRun, launches: Sequence[Launch], arrays: Arrays) -> None:
        """All of ``launches`` for one block of rows, then for the next; their epilogues last."""
        memory = {b: np.empty(local.nbytes, np.uint8) for b, local in run.local.items()}
        for block, start in enumerate(range(0, run.rows, run.block_rows)):
            stop = min(start + run.block_rows, run.rows)
            for step in launches:
                pairs = zip(step.args, step.kernel.main.params, strict=True)
                args = [
                    self.block_pointer(a, p, memory[a[0]], block)
                    if not isinstance(a, int) and a[0] in memory
                    else self.argument(a, p, arrays)
                    for a, p in pairs
                ]
                per_row = step.step.lowered.schedule.iterations // run.rows
                step.kernel.main_code(*args, start * per_row, stop * per_row)
        for step in launches:
            self.finish(step, arrays)

    def finish(self, step: Launch, arrays: Arrays) -> None:
        """The epilogue of a kernel."""
        if step.kernel.epilogue is not None:
            pairs = zip(step.epilogue_args, step.kernel.epilogue.params, strict=True)
            step.kernel.epilogue_code(*[self.argument(a, p, arrays) for a, p in pairs], 0, 1)

    def argument(self, slot: ArgSlot, kind: str, arrays: Arrays) -> Any:
        if isinstance(slot, int):
            return passed(slot, kind)
        buffer, offset = slot
        dtype = DTYPES[kind.rstrip("*")]
        return Pointer(self.bytes_of(buffer, *arrays).view(dtype), offset // dtype.itemsize)

    def block_pointer(self, slot: BufferOffset, kind: str, memory: np.ndarray[Any, Any], block: int) -> Pointer:
        """A pointer into the whole buffer, of which ``memory`` has one block."""
        dtype = DTYPES[kind.rstrip("*")]
        return Pointer(memory.view(dtype), (slot[1] - block * memory.nbytes) // dtype.itemsize)
