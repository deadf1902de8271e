"""The cpu target: LLVM compiles kernels, by structure, and machine code is kept on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.host_target import NativeTarget
from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.effort import FEW_STEPS, LOOPS, SMALL_LOOPS, Effort
from jitgrad.backends.llvm.library_names import LibraryNames, library_key, native_names
from jitgrad.compiler.lowering.kernel_ir import AccumulatorScope, Kernel
from jitgrad.core.fork import cached_property, importing
from jitgrad.core.requirements import require_numba


class _UserNames(Mapping[str, Any]):
    """The namespace of kernel source with functions of the user."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    @cached_property
    def _all(self) -> Mapping[str, Any]:
        require_numba(f"{', '.join(self._functions)}, a function of yours in a compiled kernel,")
        with importing:
            from jitgrad.backends.llvm.numba_function import numba_function

        return {**native_names(), **{name: numba_function(function) for name, function in self._functions.items()}}

    def __getitem__(self, key: str) -> Any:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _effort(kernel: Kernel) -> Effort:
    """Of the epilogue: without columns it merges a number a block, of which there are few."""
    epilogue = kernel.epilogue
    assert epilogue is not None
    numbers = not epilogue.columns and all(merge.where is AccumulatorScope.BLOCK for merge in epilogue.merges)
    return FEW_STEPS if numbers else SMALL_LOOPS


class CpuTarget(NativeTarget):
    """Compiles kernels with LLVM, at most twice per structure (see `KernelCache`)."""

    name = "cpu"

    def load(self, kernel: Kernel, source: Source, entry: str) -> CodeObject:
        """Code that LLVM may still be compiling."""
        functions = user_functions(kernel)
        return compile_entry(
            source.identity,
            entry,
            _UserNames(functions) if functions else LibraryNames(),
            params=source.params,
            # a user's function is identified by its object, which means nothing to another process:
            # not kept on disk
            key=None if functions else library_key(),
            effort=_effort(kernel) if entry == "epilogue" else LOOPS,
            row_vectors=source.row_vectors,
            wait=False,
        )
