"""The numba target: numba compiles the kernel text of the cpu target, and the same instruction loop runs it.

A kernel function of the dialect, ``(builder, *TypedValue) -> TypedValue``, is the body of a numba intrinsic, so the text
needs no change. The target checks our translator independently: everything but the kernel functions is numba's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jitgrad.backends.base import CompiledKernel, CompiledLaunch, KernelCache
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.backend import user_functions
from jitgrad.backends.cpu.row_loops import emit_cpu
from jitgrad.compiler.lowering.kernel_ir import Kernel


class NumbaCode:
    """Machine code that numba made of one function of a kernel.

    Attributes:
        address: of ``void (int64_t *args, int64_t start, int64_t stop)``.
        from_disk: never; numba's own cache on disk needs a file for each function.
    """

    from_disk = False

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.address = int(compiled.address)

    @property
    def llvm(self) -> str:
        """Optimised LLVM IR."""
        return str(self._compiled.inspect_llvm())

    @property
    def asm(self) -> str:
        """Assembly text."""
        return str(self._compiled._library.get_asm_str())


class NumbaBackend:
    """Compiles kernels with numba, at most twice per structure (see `KernelCache`)."""

    name = "numba"
    native = True

    def __init__(self) -> None:
        self._structures = KernelCache()
        self._codes: dict[tuple[str, str, tuple[str, ...]], NumbaCode] = {}

    def compile(self, kernel: Kernel) -> CompiledLaunch:
        def build(main: Source, epilogue: Source | None, general: bool) -> CompiledKernel:
            functions = user_functions(kernel)
            main_code = self._code(main, "kernel", functions)
            epilogue_code = None if epilogue is None else self._code(epilogue, "epilogue", functions)
            return CompiledKernel(kernel.name, main, epilogue, kernel, main_code, epilogue_code, False, general)

        return self._structures.find(*emit_cpu(kernel), build)

    def _code(self, source: Source, entry: str, functions: Mapping[str, Any]) -> NumbaCode:
        from jitgrad.backends.llvm import numba_intrinsics

        identity = source.identity, entry, source.params
        known = None if functions else self._codes.get(identity)
        if known is None:
            known = NumbaCode(numba_intrinsics.compile_source(source.identity, entry, source.params, functions))
            if not functions:
                self._codes[identity] = known
        return known
