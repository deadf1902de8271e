"""Calls into LLVM that several threads make at the same time, each with a context of its own.

llvmlite takes one lock for every call, although LLVM needs none for modules of different contexts. The two long calls, for
passes and for object code, go past that lock here. All others are short, and keep it.

Import this module only when a kernel is compiled or loaded: it imports llvmlite.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache, partial
from threading import Event, RLock, get_ident
from typing import Any, ClassVar

from llvmlite import binding

LLVM_LOCK = RLock()  # held for every call but the long ones of the threads that compile kernels
_INSTEAD = RLock()  # of a version of llvmlite without a lock
# LLVM's loop strength reduction takes half of the time of writing object code. Kernels address arrays by one index,
# which costs nothing on x86, and are as fast without it.
_LOOP_STRENGTH_REDUCTION = "-disable-lsr={}"
_LLVM_WITH_REPEATED_OPTIONS = 20  # older versions may end the process if an option is set twice


def llvmlite_lock() -> Any:
    """The lock of every other call into LLVM; finalizers of modules take it at any time."""
    return getattr(binding.ffi.lib, "_lock", _INSTEAD)


def _without_lock(name: str) -> Any:
    """The C function ``name`` of llvmlite, which takes no lock."""
    function = getattr(binding.ffi.lib, name)
    return getattr(function, "_cfn", function)


@cache
def _short(name: str) -> Any:
    """The C function ``name`` of llvmlite, which takes no lock and keeps the GIL.

    A thread that releases the GIL waits up to 5 ms to get it back from one that runs Python.
    """
    library = binding.ffi.lib
    function = getattr(ctypes.PyDLL(library._name, handle=library._handle), name)
    function.argtypes, function.restype = getattr(library, name).argtypes, getattr(library, name).restype
    return function


def optimize_module(passes: Any, module: Any, builder: Any) -> None:
    """Run a module pass manager; ``module`` has a context that no other thread uses meanwhile."""
    _without_lock("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def parsed_in(context: Any, text: str) -> Any:
    """The module of IR ``text``, whose context ends with it.

    The garbage collector may finalize the context first, which frees its modules: then nothing is left to free.
    """
    module = binding.parse_assembly(text, context)
    module._dispose = partial(_dispose_module, module._ptr, context)
    return module


def _dispose_module(pointer: Any, context: Any) -> None:
    if not context.closed:
        binding.ffi.lib.LLVMPY_DisposeModule(pointer)


def printed(module: Any) -> str:
    """The text of ``module``, as its ``__str__`` gives it."""
    text = ctypes.c_char_p()
    _short("LLVMPY_PrintModuleToString")(module, ctypes.byref(text))
    try:
        return (text.value or b"").decode()
    finally:
        _short("LLVMPY_DisposeString")(text)


def emit_object(machine: Any, module: Any) -> bytes:
    """Relocatable object code of ``module``, written without loop strength reduction.

    No other thread uses ``machine`` or the context of ``module`` meanwhile.
    """
    error = ctypes.c_char_p()
    with without_strength_reduction():
        memory = _without_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, ctypes.byref(error))
    if not memory:
        raise RuntimeError((error.value or b"").decode())
    try:
        return ctypes.string_at(_short("LLVMPY_GetBufferStart")(memory), _short("LLVMPY_GetBufferSize")(memory))
    finally:
        _short("LLVMPY_DisposeMemoryBuffer")(memory)


class _Writing:
    """The threads that write object code. The option that they set holds for the whole process: while one writes, no
    one else, such as numba, can call LLVM.

    llvmlite's lock guards what is here. Whoever waits for threads that write does not hold it, because these take it
    for finalizers.
    """

    threads: ClassVar[set[int]] = set()
    none = Event()
    others_wait = False

    @classmethod
    def begin(cls) -> None:
        with LLVM_LOCK, llvmlite_lock():  # nobody else is inside a call, but for the long ones above
            if not cls.others_wait:
                binding.ffi.register_lock_callback(cls._wait, _nothing)
                cls.others_wait = True
            if not cls.threads:
                cls.none.clear()
                _disable_strength_reduction("true")
            cls.threads.add(get_ident())

    @classmethod
    def end(cls) -> None:
        with llvmlite_lock():
            cls.threads.remove(get_ident())
            if not cls.threads:
                _disable_strength_reduction("false")
                cls.none.set()

    @classmethod
    def _wait(cls) -> None:
        """Called by llvmlite when a thread has taken its lock: let others than ours wait."""
        if LLVM_LOCK._is_owned() or get_ident() in cls.threads:  # type: ignore[attr-defined]
            return
        lock = llvmlite_lock()._lock
        while cls.threads:
            lock.release()
            cls.none.wait()
            lock.acquire()


@contextlib.contextmanager
def without_strength_reduction() -> Iterator[None]:
    """Write machine code in this block; other threads may do so at the same time."""
    if not skips_strength_reduction():
        yield
        return
    _Writing.begin()
    try:
        yield
    finally:
        _Writing.end()


def _nothing() -> None:
    """Called by llvmlite before its lock is released."""


def _disable_strength_reduction(disabled: str) -> None:
    _short("LLVMPY_SetCommandLine")(b"jitgrad", _LOOP_STRENGTH_REDUCTION.format(disabled).encode())


def skips_strength_reduction() -> bool:
    """Whether machine code is written without LLVM's loop strength reduction."""
    return for_x86() and binding.llvm_version_info[0] >= _LLVM_WITH_REPEATED_OPTIONS


def for_x86() -> bool:
    """Whether the host is an x86 CPU."""
    return bool(binding.get_process_triple().startswith(("x86_64", "i686", "amd64")))
