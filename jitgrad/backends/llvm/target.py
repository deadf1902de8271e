"""LLVM IR to machine code in memory, through llvmlite.

Import this module only when a kernel is compiled or loaded: it imports llvmlite.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import binding

from jitgrad.backends.llvm import code_symbols, compile_threads, nontemporal
from jitgrad.backends.llvm.compile_threads import Compilation
from jitgrad.backends.llvm.effort import LOOPS, Effort
from jitgrad.backends.llvm.parallel_llvm import (
    LLVM_LOCK,
    emit_object,
    for_x86,
    optimize_module,
    parsed_in,
    printed,
    without_strength_reduction,
)
from jitgrad.core.errors import BackendError

_INLINE_EVERYTHING = 100_000  # a call left in a loop costs its vectorisation
_ABSOLUTE_ADDRESS = re.compile(r"inttoptr \(i64 -?\d")  # of this process, as a number
_DECLARED = re.compile(r'^(?:declare .*?|(?=.* = extern(?:al|_weak) ))@(?:"([^"]+)"|([-\w$.]+))', re.MULTILINE)
_PROVIDED: dict[str, tuple[Any, int]] = {}  # engines, which own memory, and addresses of functions
# LLVM's lightest pipeline took three times as long for control code, which runs as fast with these. llvmlite 0.44 lacks some.
_FEW_PASSES = tuple(
    f"add_{name}_pass"
    for name in ("always_inliner", "global_dead_code_eliminate", "sroa", "instruction_combine", "simplify_cfg")
)
_EMPTY = "; an engine needs a module to start with\n"


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
def gather_features() -> str:
    """The features for code that loads vectors from computed addresses; "" for those of all code.

    LLVM takes AVX2's instruction for that to be slow on some CPUs. It then computes the addresses, and all that leads to them,
    element by element: on one of them (Zen 3) a bilinear interpolation took 3 times as long.
    """
    return f"{features()},+fast-gather" if for_x86() and "+avx2," in f"{features()}," else ""


@cache
def lacks_wide_casts() -> bool:
    """Whether vectors of the host have no casts between floats and int64."""
    return for_x86() and "+avx512dq," not in f"{features()},"


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
    """A target machine of this host, for questions about it."""
    return _new_machine()


def _new_machine(level: int = 3) -> Any:
    """The target machine that a kernel is compiled for: this host, for loading by MCJIT. No two threads may use one.

    ``level`` is that of its code generator.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    x86 = target.name.startswith("x86")
    return target.create_target_machine(
        cpu=cpu(),
        features=features(),
        opt=level,
        reloc="static" if x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


# Machines that no thread uses, by level, CPU and features: making one takes as long as the lightest passes over a kernel.
_idle_machines: defaultdict[tuple[int, str, str], list[Any]] = defaultdict(list)


def _idle_machine(key: tuple[int, str, str]) -> Any:
    try:
        return _idle_machines[key].pop()
    except IndexError:
        return _new_machine(key[0])


def optimize(text: str, linked: Sequence[str], keep: str, effort: Effort = LOOPS) -> Any:
    """The optimised module of IR ``text`` with ``linked`` linked in; only ``keep`` stays visible.

    Raises:
        BackendError: if the IR is malformed.
    """
    with LLVM_LOCK:
        return _Job(text, linked, keep, effort).optimized()


class _Job:
    """A module in a context of its own, and what compiles it.

    Threads for LLVM get it ready made: each of the many short calls that make it releases the GIL, which they would wait
    for.
    """

    def __init__(self, text: str, linked: Sequence[str], keep: str, effort: Effort = LOOPS) -> None:
        self.has_marks: bool = nontemporal.has_marks(text)
        with LLVM_LOCK:
            self.kind, self.context = (effort.level, cpu(), features()), binding.create_context()
            self.machine = _idle_machine(self.kind)
            self.module = _parsed(text, linked, keep, self.context)
            self.passes, self.builder = _passes(self.machine, effort)

    def optimized(self) -> Any:
        optimize_module(self.passes, self.module, self.builder)
        if self.has_marks:
            with LLVM_LOCK:
                self.module = parsed_in(self.context, nontemporal.unmark_stores(printed(self.module)))
        return self.module

    def run(self) -> CompiledModule:
        module = self.optimized()
        text = printed(module)
        raises, absolute = ".const.picklebuf." in text, _ABSOLUTE_ADDRESS.search(text) is not None
        object_code = emit_object(self.machine, module)
        _idle_machines[self.kind].append(self.machine)
        return CompiledModule(object_code, module, raises, externals(text), absolute)


def _parsed(text: str, linked: Sequence[str], keep: str, context: Any) -> Any:
    try:
        module = parsed_in(context, text)
        for other in linked:
            module.link_in(parsed_in(context, other))
        module.verify()
    except RuntimeError as error:
        raise BackendError(f"malformed LLVM IR for {keep}: {error}") from error
    for symbol in (*module.functions, *module.global_variables):
        own = symbol.name == keep or symbol.name.startswith("llvm.")  # LLVM's metadata lists keep their linkage
        if not symbol.is_declaration and not own:
            symbol.linkage = "internal"
    return module


def _passes(machine: Any, effort: Effort) -> tuple[Any, Any]:
    """The pass manager, and what it runs with."""
    options = binding.create_pipeline_tuning_options(speed_level=1 if effort.few_passes else 2)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = not effort.few_passes
    options.slp_vectorization = False
    options.inlining_threshold = _INLINE_EVERYTHING
    builder = binding.create_pass_builder(machine, options)
    passes = binding.create_new_module_pass_manager()
    if effort.few_passes and all(hasattr(passes, name) for name in _FEW_PASSES):
        for name in _FEW_PASSES:
            getattr(passes, name)()
    else:
        passes = builder.getModulePassManager()
    return passes, builder


def compile_aside(text: str, linked: Sequence[str], keep: str, effort: Effort = LOOPS) -> Compilation[CompiledModule]:
    """`optimize` and `emit` in a thread for LLVM; the result raises BackendError."""
    for answer in (platform, cpu, features, vector_bits, has_fma, gather_features, lacks_wide_casts):
        answer()  # cached now, because a later call would wait for this kernel
    return compile_threads.start_compiling(_Job(text, linked, keep, effort).run)


def emit(module: Any) -> bytes:
    """Relocatable object code of an optimised module."""
    with LLVM_LOCK:
        return emit_object(_new_machine(), module)


def assembly(module: Any) -> str:
    """Assembly text of an optimised module."""
    with LLVM_LOCK, without_strength_reduction():
        return str(target_machine().emit_assembly(module))


def externals(text: str) -> tuple[str, ...]:
    """Undefined symbols of a module's text: C library functions such as ``fmodf``."""
    names = (quoted or plain for quoted, plain in _DECLARED.findall(text))
    return tuple(sorted({name for name in names if not name.startswith("llvm.")}))


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
