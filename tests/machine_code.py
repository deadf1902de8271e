"""How tests call machine code, and how they read it: compiled for a CPU that they name, not for that of this machine."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from jitgrad.backends.llvm import kernel_frontend, target
from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.library_names import native_names
from jitgrad.eager.float16 import in_kernels

LOOP = "def kernel(x0, y0, start, stop):\n    for i in range(start, stop):\n"

AVX2, AVX512 = "znver3", "sapphirerapids"
CPUS = (AVX2, AVX512)
_FEATURES = {AVX2: "+avx2,+fma,+f16c", AVX512: "+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl"}
needs_f16c = pytest.mark.skipif(not in_kernels(), reason="kernels have no float16 on this CPU")
needs_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="LLVM has this machine's target only")


def table(*words: Any) -> np.ndarray[Any, Any]:
    """An argument table: addresses of arrays, bits of NumPy floats, plain integers."""

    def word(value: Any) -> int:
        if isinstance(value, np.ndarray):
            return value.ctypes.data
        if isinstance(value, np.floating):
            return int(value.view(f"u{value.itemsize}"))
        return int(value)

    return np.array([word(value) for value in words], np.int64)


def run(code: CodeObject, words: np.ndarray[Any, Any], start: int, stop: int) -> None:
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    kernel(words.ctypes.data, start, stop)


@contextmanager
def _compiling_for(cpu: str) -> Iterator[None]:
    """LLVM compiles for ``cpu``; kernels of this process wait meanwhile."""
    answers = (target.platform, target.has_fma, target.vector_bits, target.target_machine)
    with target.LLVM_LOCK, pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "cpu", lambda: cpu)
        patch.setattr(target, "features", lambda: _FEATURES[cpu])
        for answer in answers:
            answer.cache_clear()
        try:
            yield
        finally:
            for answer in answers:
                answer.cache_clear()


def assembly_of(cpu: str, entry: str, lower: Callable[[], tuple[str, Sequence[str]]]) -> tuple[str, str]:
    """(optimised LLVM IR, assembly) for ``cpu`` of the IR that ``lower`` gives; nothing of it is loaded."""
    with _compiling_for(cpu):
        module = target.optimize(*lower(), entry)
        return str(module), target.assembly(module)


def kernel_assembly(
    cpu: str, source: str, params: Sequence[str], names: Mapping[str, Any] | None = None, interleaves: bool = True
) -> tuple[str, str]:
    """(optimised LLVM IR, assembly) for ``cpu`` of the function ``kernel`` of kernel source."""
    namespace = native_names() if names is None else names

    def lower() -> tuple[str, Sequence[str]]:
        return kernel_frontend.source_to_llvm(source, "kernel", params, namespace, target.vector_bits(), interleaves)

    return assembly_of(cpu, "kernel", lower)


def program_assembly(cpu: str, function: Any, *args: Any) -> str:
    """Assembly for ``cpu`` of the kernels that a compiled function runs for these arguments."""
    mains = [step.kernel.main for step in function.lookup(*args).program.steps if hasattr(step, "kernel")]
    return "\n".join(kernel_assembly(cpu, main.identity, main.params)[1] for main in mains)


def unary(expression: str, source: str, target: str, values: Any) -> Any:
    """The array of ``expression`` of ``x`` over ``values``, compiled."""
    text = LOOP + f"        x = x0[i]\n        y0[i] = {expression}\n"
    code = compile_entry(text, "kernel", {}, params=(source + "*", target + "*"), key=None)
    out = np.empty(values.shape, np.dtype(target if target == "bool" else target[0] + str(int(target[1:]) // 8)))
    run(code, table(values, out), 0, values.size)
    return out
