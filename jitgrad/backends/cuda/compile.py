"""Kernel source to PTX, through llvmlite: needs neither a GPU nor CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability, ptx_version
from jitgrad.core.errors import BackendError
from jitgrad.core.fork import importing
from jitgrad.core.requirements import require_numba

_TWO_BLOCKS = ".minnctapersm 2"  # as `translate` asks for


@dataclass(frozen=True, slots=True)
class CudaCode:
    """PTX of one kernel.

    A launch passes one 64-bit word for each of the source's parameters, in their order: the
    address for a pointer, an integer as i64, the bits of a float (f32 in the low 32). The last
    word is the number of iterations (`jitgrad.backends.cuda.launch.LaunchShape`).

    Attributes:
        entry: the name of the kernel in ``ptx``.
        threads: of a block.
        shared_bytes: what a block shares. The kernel declares it itself: a launch passes 0 bytes of
            dynamic shared memory.
        llvm: optimised LLVM IR.
        source, functions: what it was compiled from, for the emulator.
    """

    ptx: str
    entry: str
    threads: int
    shared_bytes: int
    llvm: str
    source: Source
    functions: Mapping[str, Callable[..., Any]]


def for_one_block(ptx: str) -> str | None:
    """The kernel ``ptx`` with twice the registers for a thread, which leave room for one block on a processor; None if it
    has them already. For kernels that an assembler spills otherwise: how many registers a kernel takes depends on it."""
    text = ptx.replace(_TWO_BLOCKS, ".minnctapersm 1")
    return None if text == ptx else text


def compile_source(
    source: Source, entry: str, capability: Capability, functions: Mapping[str, Callable[..., Any]] | None = None
) -> CudaCode:
    """PTX of the kernel ``entry`` that ``source`` defines, for GPUs of ``capability`` and later ones.

    Args:
        functions: the users' scalar functions that the source calls, by their names in it
            (`jitgrad.backends.base.user_functions`).

    Raises:
        BackendError: if the source, or a user's function, cannot be compiled for GPUs.
    """
    with importing:
        from jitgrad.backends.cuda import device_functions, ptx, translate
        from jitgrad.backends.llvm.parallel_llvm import LLVM_LOCK

    with LLVM_LOCK:
        machine = ptx.machine(ptx_version(Capability(*capability), ptx.llvm_version()))
        users = {name: _user_function(f) for name, f in (functions or {}).items()}
        translated = translate.translate_kernel(source.identity, entry, source.params, users, str(machine.target_data))
        linked = device_functions.for_gpu_linking(translated.linked, str(machine.target_data))
        module = ptx.optimize_for_gpu(machine, translated, linked, entry)
        if found := ptx.undefined(module):
            raise BackendError(_refusal(entry, found, functions or {}) + source.text)
        text = str(machine.emit_assembly(module))
    launched = translated.threads, translated.shared_bytes
    return CudaCode(text, entry, *launched, str(module), source, dict(functions or {}))


def _user_function(function: Callable[..., Any]) -> Any:
    require_numba(f"{function.__name__}, a function of yours in a compiled kernel,")
    with importing:
        from jitgrad.backends.llvm.numba_function import numba_function

    return numba_function(function)


def _refusal(entry: str, found: tuple[str, ...], functions: Mapping[str, Callable[..., Any]]) -> str:
    """Why the kernel ``entry`` cannot be compiled."""
    calls = f"calls {', '.join(found)}, which GPUs do not have"
    if not functions:
        return f"kernel {entry} {calls}\n"
    names = ", ".join(getattr(f, "__name__", name) for name, f in functions.items())
    remedy = "Write it with functions of `math` such as exp, log, tanh and pow, and without what can raise."
    return f"@elementwise {names}: as numba compiles it, it {calls}. {remedy}\n"
