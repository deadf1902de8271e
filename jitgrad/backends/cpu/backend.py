"""The cpu target: LLVM compiles kernels, by structure, and machine code is kept on disk."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jitgrad import vecmath
from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.host_target import NativeTarget
from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.core.fork import cached_property, importing
from jitgrad.core.requirements import require_numba


@cache
def library_key() -> str:
    """A digest of the functions that kernel source calls from `jitgrad.vecmath`: part of a kernel's
    identity on disk."""
    digest = hashlib.sha256()
    for path in sorted(Path(vecmath.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def native_names() -> Mapping[str, Any]:
    """Functions of kernel source besides `jitgrad.backends.llvm.intrinsics`: vector mathematics,
    and integer forms."""
    with importing:
        from jitgrad.backends.llvm import kernel_frontend, vector_functions

    integers = {name: kernel_frontend.written(function) for name, function in INTEGER_FUNCTIONS.items()}
    return {**vector_functions.VECTOR_FUNCTIONS, **integers, "INF": math.inf, "NAN": math.nan}


class _Names(Mapping[str, Any]):
    """The namespace of kernel source. llvmlite is imported when it is first read, so never for a
    kernel from disk."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    @cached_property
    def _all(self) -> Mapping[str, Any]:
        if not self._functions:
            return native_names()
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


class CpuTarget(NativeTarget):
    """Compiles kernels with LLVM, at most twice per structure (see `KernelCache`)."""

    name = "cpu"

    def load(self, kernel: Kernel, source: Source, entry: str) -> CodeObject:
        """Code that LLVM may still be compiling."""
        functions = user_functions(kernel)
        return compile_entry(
            source.identity,
            entry,
            _Names(functions),
            params=source.params,
            # a user's function is identified by its object, which means nothing to another process:
            # not kept on disk
            key=None if functions else library_key(),
            small=entry == "epilogue",
            wait=False,
        )
