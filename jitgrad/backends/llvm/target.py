"""LLVM IR to machine code in memory, through llvmlite.

Import this module only when a kernel is compiled or loaded: it imports llvmlite.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from threading import Event, Lock, RLock, Thread
from typing import Any, ClassVar

from llvmlite import binding

from jitgrad.backends.llvm import code_symbols, nontemporal
from jitgrad.core.errors import BackendError
from jitgrad.core.fork import pause_at_fork

LLVM_LOCK = RLock()  # LLVM's global context, which llvmlite uses for every module, is not thread safe
_INLINE_EVERYTHING = 100_000  # a call left in a loop costs its vectorisation
_ABSOLUTE_ADDRESS = re.compile(r"inttoptr \(i64 -?\d")  # of this process, as a number
_PROVIDED: dict[str, tuple[Any, int]] = {}  # engines, which own memory, and addresses of functions
# LLVM's lightest pipeline took three times as long for control code, which runs as fast with these. llvmlite 0.44 lacks some.
_CONTROL_PASSES = tuple(
    f"add_{name}_pass"
    for name in ("always_inliner", "global_dead_code_eliminate", "sroa", "instruction_combine", "simplify_cfg")
)
_EMPTY = "; an engine needs a module to start with\n"
# LLVM's loop strength reduction takes half of the time of writing object code. Kernels address arrays by one index,
# which costs nothing on x86, and are as fast without it.
_LOOP_STRENGTH_REDUCTION = "-disable-lsr={}"
_LLVM_WITH_REPEATED_OPTIONS = 20  # older versions may end the process if an option is set twice


@dataclass(frozen=True, slots=True)
class CompiledModule:
    """Object code of a kernel.

    Attributes:
        raises: whether it can raise a Python exception.
        externals: undefined symbols.
        names_absolute_address: whether it is valid in this process only.
    """

    object_code: bytes
    module: Any
    raises: bool
    externals: tuple[str, ...]
    names_absolute_address: bool


class Compilation:
    """Object code that the thread for LLVM makes."""

    def __init__(self, make: Callable[[], CompiledModule]) -> None:
        self._make = make
        self._made = Event()
        self._outcome: CompiledModule | BaseException | None = None

    def run(self) -> None:
        """Make it; what the compiler raises is raised by `result`."""
        try:
            self._outcome = self._make()
        except BaseException as error:
            self._outcome = error
        self._made.set()

    def result(self) -> CompiledModule:
        """The object code; waits for it, and raises what the compiler raised."""
        if self._outcome is None:  # else without the lock of the event, which another thread may hold in a fork
            self._made.wait()
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


class _CompileThread:
    """One thread for LLVM, without the GIL, while others lower kernels or run eager code.

    It ends when there is nothing to do. Executors of the standard library have a lock that every fork takes before
    `finish`, for which whoever holds one of theirs may wait.
    """

    starting = Lock()  # held by a fork: nobody starts work
    lock = Lock()
    waiting: ClassVar[deque[Compilation]] = deque()
    thread: ClassVar[Thread | None] = None

    @classmethod
    def submit(cls, make: Callable[[], CompiledModule]) -> Compilation:
        compilation = Compilation(make)
        with cls.starting:
            try:
                cls._start(compilation)
            except RuntimeError:  # an interpreter that shuts down starts no threads
                cls.thread = None
                cls._work()
        return compilation

    @classmethod
    def _start(cls, compilation: Compilation) -> None:
        with cls.lock:
            cls.waiting.append(compilation)
            if cls.thread is None:
                cls.thread = Thread(target=cls._work, name="jitgrad.llvm")
                cls.thread.start()

    @classmethod
    def _work(cls) -> None:
        while True:
            with cls.lock:
                if not cls.waiting:
                    cls.thread = None
                    return
                compilation = cls.waiting.popleft()
            compilation.run()

    @classmethod
    def finish(cls) -> None:
        """Finish pending work and end the thread; holds the locks until `resume`."""
        cls.starting.acquire()
        if (thread := cls.thread) is not None:
            thread.join()
        cls.lock.acquire()
        LLVM_LOCK.acquire()
        _llvmlite_lock().__enter__()

    @classmethod
    def resume(cls) -> None:
        _llvmlite_lock().__exit__(None, None, None)
        LLVM_LOCK.release()
        cls.lock.release()
        cls.starting.release()


def _llvmlite_lock() -> Any:
    """The lock of every call into LLVM; finalizers of modules take it at any time."""
    return getattr(binding.ffi.lib, "_lock", contextlib.nullcontext())


# A child has one thread, and must not inherit locks that others hold.
pause_at_fork(_CompileThread.finish, _CompileThread.resume)


@cache
def features() -> str:
    """The host CPU's features in LLVM's notation."""
    return str(binding.get_host_cpu_features().flatten())


@cache
def cpu() -> str:
    """The host CPU's name in LLVM's notation."""
    return str(binding.get_host_cpu_name())


@cache
def has_fma() -> bool:
    """Whether the host has a fused multiply-add."""
    if not for_x86():
        return True  # AArch64, POWER and RISC-V with D have it in the base set
    return "+fma," in f"{features()},"


def for_gpu(builder: Any) -> bool:
    """Whether ``builder`` writes code of a GPU."""
    return str(builder.module.triple).startswith("nvptx")


def fuses(builder: Any) -> bool:
    """Whether code that ``builder`` writes may use fused multiply-adds: every GPU has them."""
    return for_gpu(builder) or has_fma()


@cache
def platform() -> tuple[str, str]:
    """Triple and data layout of modules."""
    with LLVM_LOCK:
        return str(binding.get_process_triple()), str(target_machine().target_data)


@cache
def vector_bits() -> int:
    """The preferred vector width for kernels in bits; 0 leaves it to LLVM.

    LLVM prefers 256 bits on CPUs with AVX-512 because of lower clocks; arithmetic-bound kernels
    measured 1.2 to 1.5 times faster with 512, memory-bound ones the same.
    """
    return 512 if "+avx512f," in f"{features()}," else 0


@cache
def target_machine() -> Any:
    """The target machine all kernels are compiled for: this host, for loading by MCJIT."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    x86 = target.name.startswith("x86")
    return target.create_target_machine(
        cpu=cpu(),
        features=features(),
        opt=3,
        reloc="static" if x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


def optimize(text: str, linked: Sequence[str], keep: str, control: bool = False) -> Any:
    """The optimised module of IR ``text`` with ``linked`` linked in; only ``keep`` stays visible.

    ``control`` code takes few passes: it has no long loops, and its vectors are written as such.

    Raises:
        BackendError: if the IR is malformed.
    """
    with LLVM_LOCK:
        machine = target_machine()
        try:
            module = binding.parse_assembly(text)
            for other in linked:
                module.link_in(binding.parse_assembly(other))
            module.verify()
        except RuntimeError as error:
            raise BackendError(f"malformed LLVM IR for {keep}: {error}") from error
        for symbol in (*module.functions, *module.global_variables):
            own = symbol.name == keep or symbol.name.startswith("llvm.")  # LLVM's metadata lists keep their linkage
            if not symbol.is_declaration and not own:
                symbol.linkage = "internal"
        _run_passes(module, machine, control)
        return binding.parse_assembly(nontemporal.unmark_stores(str(module))) if nontemporal.has_marks(text) else module


def _run_passes(module: Any, machine: Any, control: bool) -> None:
    options = binding.create_pipeline_tuning_options(speed_level=1 if control else 2)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = not control
    options.slp_vectorization = False
    options.inlining_threshold = _INLINE_EVERYTHING
    builder = binding.create_pass_builder(machine, options)
    passes = binding.create_new_module_pass_manager()
    if control and all(hasattr(passes, name) for name in _CONTROL_PASSES):
        for name in _CONTROL_PASSES:
            getattr(passes, name)()
    else:
        passes = builder.getModulePassManager()
    passes.run(module, builder)


def compile_aside(text: str, linked: Sequence[str], keep: str, control: bool = False) -> Compilation:
    """`optimize` and `emit` in the thread for LLVM; the result raises BackendError."""
    for answer in (platform, cpu, features, vector_bits, has_fma):
        answer()  # cached now, because a later call would wait for this kernel
    return _CompileThread.submit(partial(_make, text, linked, keep, control))


def _make(text: str, linked: Sequence[str], keep: str, control: bool = False) -> CompiledModule:
    module = optimize(text, linked, keep, control)
    with LLVM_LOCK:
        optimised = str(module)
        raises, absolute = ".const.picklebuf." in optimised, _ABSOLUTE_ADDRESS.search(optimised) is not None
        return CompiledModule(emit(module), module, raises, externals(module), absolute)


def emit(module: Any) -> bytes:
    """Relocatable object code of an optimised module."""
    with LLVM_LOCK, _without_strength_reduction():
        return bytes(target_machine().emit_object(module))


@contextlib.contextmanager
def _without_strength_reduction() -> Iterator[None]:
    """The option holds for the whole process: no one else, such as numba, can compile until it is back."""
    if not skips_strength_reduction():
        yield
        return
    with _llvmlite_lock():
        binding.set_option("jitgrad", _LOOP_STRENGTH_REDUCTION.format("true"))
        try:
            yield
        finally:
            binding.set_option("jitgrad", _LOOP_STRENGTH_REDUCTION.format("false"))


def skips_strength_reduction() -> bool:
    """Whether machine code is written without LLVM's loop strength reduction."""
    return for_x86() and binding.llvm_version_info[0] >= _LLVM_WITH_REPEATED_OPTIONS


def for_x86() -> bool:
    """Whether the host is an x86 CPU."""
    return bool(binding.get_process_triple().startswith(("x86_64", "i686", "amd64")))


def assembly(module: Any) -> str:
    """Assembly text of an optimised module."""
    with LLVM_LOCK, _without_strength_reduction():
        return str(target_machine().emit_assembly(module))


def externals(module: Any) -> tuple[str, ...]:
    """Undefined symbols of the module: C library functions such as ``fmodf``."""
    symbols = (*module.functions, *module.global_variables)
    names = (s.name for s in symbols if s.is_declaration)
    return tuple(sorted(name for name in names if not name.startswith("llvm.")))


def resolvable(names: Sequence[str]) -> bool:
    """Whether the C libraries of every process, so of the next one too, define all ``names``."""
    process = ctypes.CDLL(None) if os.name == "posix" else ctypes.CDLL("msvcrt")
    return all(hasattr(process, name) for name in names)


def load_code(object_code: bytes, symbol: str) -> tuple[Any, int]:
    """Link object code in memory: the engine, which owns the memory, and the address of ``symbol``.

    Raises:
        BackendError: if the bytes are no object code, do not define ``symbol``, or call a function
            that this process does not have.
    """
    with LLVM_LOCK:
        _provide(code_symbols.undefined_symbols(object_code))
        engine = binding.create_mcjit_compiler(binding.parse_assembly(_EMPTY), _fresh_machine())
        engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
        address = int(engine.get_function_address(symbol))
    if not address:
        raise BackendError(f"object code does not define {symbol}")
    return engine, address


def _provide(names: frozenset[str]) -> None:
    """Make sure that the functions ``names`` have addresses: LLVM calls the address 0 where they do not.

    Raises:
        BackendError: if one is neither in this process nor among ours.
    """
    missing = [name for name in sorted(names) if not binding.address_of_symbol(name) and not resolvable([name])]
    for name in missing:
        if name not in code_symbols.PROVIDED:
            raise BackendError(f"machine code calls {name}, which this process does not have")
        _PROVIDED[name] = load_code(emit(optimize(code_symbols.PROVIDED[name], [], name)), name)
        binding.add_symbol(name, _PROVIDED[name][1])


def _fresh_machine() -> Any:
    """An engine owns its target machine, so each gets a new one (0.1 ms)."""
    target_machine()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu="", features="", opt=0, reloc="static", codemodel="jitdefault", jit=True
    )


def digest(*parts: str) -> str:
    """SHA-256 of the parts, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
    return state.hexdigest()
