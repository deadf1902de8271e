"""The CPU backend: kernels as machine code, compiled by structure and kept on disk."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from jitgrad import vecmath
from jitgrad.backends.base import CompiledKernel, CompiledLaunch, KernelCache
from jitgrad.backends.codegen.scalar import function_name
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cpu.row_loops import emit_cpu
from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.kernel_library import FUNCTIONS
from jitgrad.compiler.lowering.kernel_ir import Compute, Kernel


@cache
def library_key() -> str:
    """A digest of what kernel source can call from other rooms than this one: part of a kernel's identity on disk."""
    digest = hashlib.sha256()
    for path in sorted(Path(vecmath.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def native_names() -> Mapping[str, Any]:
    """What kernel source can call besides `jitgrad.backends.llvm.intrinsics`: vector mathematics, and integer forms."""
    mathematics = importlib.import_module("jitgrad.backends.llvm.vector_functions")
    front = importlib.import_module("jitgrad.backends.llvm.kernel_frontend")
    integers = {name: front.written(function) for name, function in FUNCTIONS.items()}
    return {**mathematics.NAMES, **integers, "INF": math.inf, "NAN": math.nan}


class _Names(Mapping[str, Any]):
    """The namespace of kernel source, made (and llvmlite imported) only when something is really compiled."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    @cached_property
    def _all(self) -> Mapping[str, Any]:
        if not self._functions:
            return native_names()
        compiled = importlib.import_module("jitgrad.backends.llvm.numba_function").numba_function
        return {**native_names(), **{name: compiled(function) for name, function in self._functions.items()}}

    def __getitem__(self, key: str) -> Any:
        return self._all[key]

    def __iter__(self) -> Any:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def user_functions(kernel: Kernel) -> dict[str, Any]:
    """The user's scalar functions in ``kernel``, by the name they have in its source."""
    statements = [s for sweep in kernel.sweeps for s in (*sweep.before, *sweep.body)]
    statements += kernel.prologue
    if kernel.epilogue is not None:
        statements += [*kernel.epilogue.scalars, *kernel.epilogue.columns]
    ops = {s.node.op for s in statements if isinstance(s, Compute) and s.node.op.function is not None}
    return {function_name(op): op.function for op in ops}


class CpuBackend:
    """Compiles kernels with LLVM, at most twice per structure (see `KernelCache`)."""

    name = "cpu"
    native = True

    def __init__(self) -> None:
        self._structures = KernelCache()
        self._codes: dict[tuple[str, str, tuple[str, ...]], CodeObject] = {}

    def compile(self, kernel: Kernel) -> CompiledLaunch:
        def build(main: Source, epilogue: Source | None, general: bool) -> CompiledKernel:
            functions = user_functions(kernel)
            # the epilogue first: LLVM compiles it while the kernel, which takes longer, is lowered
            epilogue_code = None if epilogue is None else self._machine_code(epilogue, "epilogue", functions)
            main_code = self._machine_code(main, "kernel", functions)
            from_disk = all(c.from_disk for c in (main_code, epilogue_code) if c is not None)
            return CompiledKernel(kernel.name, main, epilogue, kernel, main_code, epilogue_code, from_disk, general)

        return self._structures.find(*emit_cpu(kernel), build)

    def _machine_code(self, source: Source, entry: str, functions: Mapping[str, Any]) -> CodeObject:
        """Code that may still be compiling; kernels that end alike share their epilogue."""
        # a user's function is identified by its object, which means nothing to another process: not kept on disk
        key = None if functions else library_key()
        identity = source.identity, entry, source.params
        known = None if functions else self._codes.get(identity)
        if known is None:
            known = compile_entry(
                source.identity,
                entry,
                _Names(functions),
                params=source.params,
                key=key,
                small=entry == "epilogue",
                wait=False,
            )
            if not functions:
                self._codes[identity] = known
        return known
