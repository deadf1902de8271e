"""The numba target: numba compiles the kernel text of the cpu target, and the same instruction loop
runs it.

A kernel function of the dialect, ``(builder, *TypedValue) -> TypedValue``, is the body of a numba
intrinsic, so the text needs no change. The target checks our translator independently: only the
kernel functions are ours.
"""

from __future__ import annotations

from typing import Any

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.host_target import NativeTarget
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.core.fork import importing
from jitgrad.core.requirements import require_numba


class NumbaCode:
    """Machine code that numba made of one function of a kernel.

    Attributes:
        address: of ``void (int64_t *args, int64_t start, int64_t stop)``.
    """

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.address: int = int(compiled.address)

    @property
    def llvm(self) -> str:
        """Optimised LLVM IR."""
        return str(self._compiled.inspect_llvm())

    @property
    def asm(self) -> str:
        """Assembly text."""
        return str(self._compiled._library.get_asm_str())


class NumbaTarget(NativeTarget):
    """Compiles kernels with numba, in 0.2 to 1 s each, and keeps them in memory only."""

    name = "numba"

    def load(self, kernel: Kernel, source: Source, entry: str) -> NumbaCode:
        require_numba('backend="numba"')
        with importing:
            from jitgrad.backends.llvm import numba_intrinsics

        return NumbaCode(numba_intrinsics.compile_with_numba(source.identity, entry, source.params, user_functions(kernel)))
