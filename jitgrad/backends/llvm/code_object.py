"""Kernel source text to machine code in memory, compiled by LLVM and kept on disk between
processes.

A kernel is machine code ``void kernel(int64_t *args, int64_t start, int64_t stop)``. Its source is a plain
Python function whose parameters are the table's entries, then ``start`` and ``stop``::

    def kernel(x0, x1, y0, alpha, start, stop):
        for i in range(start, stop):
            y0[i] = x0[i] * x1[i] + alpha

    code = compile_entry(source, "kernel", {}, params=("f32*", "f32*", "f32*", "f32"), key="")

Entry ``k`` of the table holds parameter ``k``: an address, an integer, or a float's bit pattern
(f32 in the low 32 bits). LLVM assumes that no two pointer parameters overlap in memory that the
kernel writes: pass a buffer that is both read and written through one parameter.

How to write source that vectorises (each form is tested in
tests/backends/llvm/test_code_object.py):

* ``for i in range(a, b):`` with unit step over the contiguous direction, and ``p[i]``, ``p[base +
  i]`` or ``row = at(p, r * n)`` then ``row[i]`` for addresses; indices are i64 and never wrap
  around.
* ``select(c, a, b)`` instead of ``if``; ``reassoc_add``, ``reassoc_mul``, ``fmax``, ``fmin`` for
  what is carried from one iteration to the next; plain operators for everything the user wrote.
* a cast of every constant and every result (``to_f32(0.5)``): a bare literal is an f64, which no
  operator takes together with an f32, and integer arithmetic is 64 bits wide.
* nothing that can raise: `compile_entry` refuses such source, for instance a ``range`` whose step
  is no literal.

Source may define further functions and call them from ``entry``; they are translated wherever they
are called.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jitgrad.backends.llvm import disk_cache as disk
from jitgrad.backends.llvm.compile_threads import Compilation
from jitgrad.backends.llvm.effort import LOOPS, TILES, Effort
from jitgrad.core.errors import BackendError
from jitgrad.core.fork import cached_property, fork_safe_lock, importing


@dataclass(frozen=True, slots=True)
class Built:
    """Object code, and a function that gives the optimised module of it."""

    object_code: bytes
    module: Callable[[], Any]


class CodeObject:
    """A kernel in memory; it stays there as long as this object lives.

    LLVM may still be compiling it: reading the code or its address waits, and raises the compiler's
    errors.

    Attributes:
        source: the Python text it was compiled from.
        from_disk: whether it came from the disk cache, not from the compiler.
    """

    def __init__(
        self, source: str, symbol: str, build: Callable[[], Built], from_disk: bool, pending: Compilation[Any] | None = None
    ):
        self.source = source
        self.from_disk = from_disk
        self._symbol = symbol
        self._build = build
        self._pending = pending
        self._lock = fork_safe_lock()
        self._loaded: tuple[Built, Any, int] | None = None

    def _load(self) -> tuple[Built, Any, int]:
        """The object code, the engine that owns its memory, and its address; loaded once."""
        with self._lock:
            if self._loaded is None:
                with importing:
                    from jitgrad.backends.llvm import target

                built = self._build()
                self._loaded = built, *target.load_code(built.object_code, self._symbol)
            return self._loaded

    @property
    def ready(self) -> bool:
        """Whether its address can be had without waiting for LLVM."""
        return self._pending is None or self._pending.made

    @property
    def object_code(self) -> bytes:
        """Relocatable object code."""
        return self._load()[0].object_code

    @property
    def address(self) -> int:
        """Address of ``void (int64_t *args, int64_t start, int64_t stop)``."""
        return self._load()[2]

    @cached_property
    def llvm(self) -> str:
        """Optimised LLVM IR; compiled anew when the kernel came from disk."""
        return str(self._load()[0].module())

    @cached_property
    def asm(self) -> str:
        """Assembly text; compiled anew when the kernel came from disk."""
        with importing:
            from jitgrad.backends.llvm import target

        return target.assembly(self._load()[0].module())


@dataclass(slots=True)
class CompileCounters:
    """How many functions this process compiled, and how many it loaded from disk."""

    compiled: int = 0
    from_disk: int = 0


COUNTERS = CompileCounters()


@cache
def fingerprint() -> str:
    """A digest of everything besides the source that machine code depends on."""
    with importing:
        import llvmlite

        from jitgrad.backends.llvm import target

    texts = [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return target.digest(*texts, llvmlite.__version__, np.__version__, platform.python_version(), target.cpu(), target.features())


def compile_entry(
    source: str,
    entry: str,
    namespace: Mapping[str, Any],
    *,
    params: Sequence[str],
    key: str | None,
    effort: Effort = LOOPS,
    row_vectors: int | None = None,
    wait: bool = True,
) -> CodeObject:
    """Machine code of the function ``entry`` that ``source`` defines.

    Args:
        source: Python text; defines ``entry(*params, start, stop)`` (see the module docstring).
        namespace: names the source uses besides `jitgrad.backends.llvm.intrinsics.INTRINSICS`.
        params: the type of each parameter: ``"f16" "f32" "f64" "i8" ... "u64" "bool"``, or one with
            ``*`` for a pointer to it.
        key: identifies the contents of ``namespace`` in the disk cache (empty if the source does);
            None keeps this kernel off the disk.
        effort: of LLVM.
        row_vectors: of an iteration of the innermost loops; None leaves that to an estimate.
        wait: False returns while LLVM is still compiling; the code's ``address`` then raises its
            errors.

    Raises:
        BackendError: if the source does not compile, or could raise an exception while running.
    """

    def lower() -> tuple[str, list[str]]:
        with importing:
            from jitgrad.backends.llvm import kernel_frontend

        bits = kernel_vector_bits()
        return kernel_frontend.source_to_llvm(source, entry, params, namespace, bits, effort.interleaves, row_vectors)

    types = " ".join([*params, effort.name, str(row_vectors or "")])
    return _cached_or_built(source, entry, None if key is None else (types, key), lower, wait, effort)


def compile_control_code(
    source: str, entry: str, library: str, *, effort: Effort = TILES, wait: bool = True
) -> CodeObject:
    """Machine code of control code (`jitgrad.backends.llvm.int_dialect`), which is called as a
    kernel is.

    Args:
        library: the functions that ``source`` may call: "thread_pool" for those of
            `jitgrad.backends.llvm.atomics`, "f32" or "f64" for those of
            `jitgrad.backends.llvm.tiles`.
        effort: of LLVM; one that runs few passes.
        wait: as for `compile_entry`.

    Raises:
        BackendError: if ``source`` is not of the int dialect.
    """

    def lower() -> tuple[str, list[str]]:
        with importing:
            from jitgrad.backends.llvm.stored_control_code import control_code

        return control_code(source, entry, library), []

    return _cached_or_built(source, entry, (f"control code {effort.name}", library), lower, wait, effort)


def compile_ir(text: str, entry: str, *, key: str | None, effort: Effort = LOOPS, wait: bool = True) -> CodeObject:
    """Machine code of the function ``entry`` of LLVM IR ``text``; ``key``, ``effort`` and ``wait`` as
    for `compile_entry`.

    Raises:
        BackendError: if the IR is malformed.
    """
    identity = None if key is None else (f"IR {effort.name}", key)
    return _cached_or_built(text, entry, identity, lambda: (text, []), wait, effort)


def kernel_vector_bits() -> int:
    """The preferred vector width of kernels in bits; 0 where it is LLVM's own choice."""
    with importing:
        from jitgrad.backends.llvm import target

    return target.vector_bits()


def exports(names: Sequence[str]) -> bool:
    """Whether machine code may call C functions of these names."""
    with importing:
        from jitgrad.backends.llvm import target

    return target.resolvable(names)


def _cached_or_built(
    source: str,
    entry: str,
    identity: tuple[str, str] | None,
    lower: Callable[[], tuple[str, list[str]]],
    wait: bool,
    effort: Effort = LOOPS,
) -> CodeObject:
    """The stored machine code of ``source`` and ``identity``, else that of the IR of ``lower``."""
    with importing:
        from jitgrad.backends.llvm import target

    name = None if identity is None else target.digest(source, entry, *identity, fingerprint())
    stored = disk.load_entry(name) if name is not None else None
    if stored is not None and stored.source == source and target.resolvable(stored.externals):
        COUNTERS.from_disk += 1
        again = cache(lambda: target.optimize(*lower(), entry, effort))
        built = Built(stored.object_code, again)
        code = CodeObject(source, entry, lambda: built, from_disk=True)
    else:
        COUNTERS.compiled += 1
        pending = target.compile_aside(*lower(), entry, effort)
        code = CodeObject(source, entry, lambda: _checked(pending.result(), source, entry, name), False, pending)
    if wait:
        _ = code.address
    return code


def _checked(compiled: Any, source: str, entry: str, name: str | None) -> Built:
    """The compiler's result, checked, and stored under ``name``."""
    with importing:
        from jitgrad.backends.llvm import target

    if compiled.raises:
        raise BackendError(f"kernel {entry} can raise an exception, which compiled kernels cannot:\n{source}")
    if not target.resolvable(compiled.externals):
        raise BackendError(f"kernel {entry} needs {compiled.externals}, which this process does not export")
    if name is not None and not compiled.names_absolute_address:
        disk.store_entry(name, disk.Stored(source, compiled.object_code, compiled.externals))
    return Built(compiled.object_code, lambda: compiled.module)
