"""The python backend: the same kernel source as on the CPU, run by Python itself. Slow, instant, steppable."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.base import CompiledKernel, CompiledLaunch, KernelCache
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.backend import user_functions
from jitgrad.backends.cpu.row_loops import emit_cpu
from jitgrad.backends.llvm.kernel_library import FUNCTIONS
from jitgrad.compiler.lowering.kernel_ir import LANES, Kernel
from jitgrad.core.aval import dtype_name
from jitgrad.eager.float16 import compute_dtype
from jitgrad.vecmath import numpy_namespace

DTYPES = {dtype_name(np.dtype(c)): np.dtype(c) for c in "?bhilBHILefd"}


class Pointer:
    """What a kernel parameter is: the elements of ``array`` from ``offset`` on."""

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
    """What a kernel parameter of ``kind`` gets for ``word``: the integer, or the float whose bit pattern it is."""
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
    """What kernel source can call, as Python functions on NumPy scalars."""
    found: dict[str, Any] = {**numpy_namespace(), **FUNCTIONS}
    found.update({f"to_{name}": _to(dtype) for name, dtype in DTYPES.items()})
    found.update({f"scratch_{name}": _scratch(dtype) for name, dtype in DTYPES.items()})
    found.update(
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
    return found


class PythonBackend:
    """Executes kernel source as Python."""

    name = "python"
    native = False

    def __init__(self) -> None:
        self._structures = KernelCache()

    def compile(self, kernel: Kernel) -> CompiledLaunch:
        def build(main: Source, epilogue: Source | None, general: bool) -> CompiledKernel:
            functions = user_functions(kernel)
            code = _load(main, "kernel", kernel.name, functions)
            epilogue_code = None if epilogue is None else _load(epilogue, "epilogue", kernel.name, functions)
            return CompiledKernel(kernel.name, main, epilogue, kernel, code, epilogue_code, False, general)

        return self._structures.find(*emit_cpu(kernel), build)


def _load(source: Source, entry: str, name: str, functions: Mapping[str, Any]) -> Callable[..., None]:
    """The function that ``source`` defines; its lines show in tracebacks and debuggers."""
    filename = f"<jitgrad kernel {name} {abs(hash(source.identity)):x}>"
    linecache.cache[filename] = (len(source.text), None, source.text.splitlines(True), filename)
    namespace = {**names(), **functions}
    exec(compile(source.text, filename, "exec"), namespace)
    return namespace[entry]  # type: ignore[no-any-return]
