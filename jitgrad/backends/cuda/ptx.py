"""LLVM's NVPTX back end, through llvmlite: import this module only when a kernel is compiled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import binding

from jitgrad.backends.cuda.capability import PtxVersion
from jitgrad.backends.cuda.translate import TRIPLE, Translated
from jitgrad.core.errors import BackendError

_INLINE_EVERYTHING = 100_000
# LLVM's intrinsics that NVPTX has no instructions for: it ends the process when it meets one.
_HOST_ONLY = re.compile(r"llvm\.(?:a?(?:sin|cos|tan)h?|exp(?:2|10)?|log(?:2|10)?|powi?|ldexp|frexp)\.")


@cache
def _initialize() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


def llvm_version() -> int:
    """The major version of LLVM."""
    return int(binding.llvm_version_info[0])


@cache
def machine(version: PtxVersion) -> Any:
    """LLVM's target machine for ``version``.

    Raises:
        BackendError: if this LLVM was built without NVPTX.
    """
    _initialize()
    try:
        target = binding.Target.from_triple(TRIPLE)
    except RuntimeError as error:
        raise BackendError(f"this llvmlite cannot write PTX: {error}") from error
    return target.create_target_machine(cpu=version.processor, features=version.features, opt=3)


def optimize_for_gpu(target_machine: Any, translated: Translated, linked: Sequence[str], entry: str) -> Any:
    """The optimised module of a kernel, in which everything is inlined, also what is ``linked``.

    Raises:
        BackendError: if the IR is malformed.
    """
    try:
        module = binding.parse_assembly(translated.text)
        for other in linked:
            module.link_in(binding.parse_assembly(other))
        module.verify()
    except RuntimeError as error:
        raise BackendError(f"malformed LLVM IR for {entry}: {error}") from error
    for symbol in (*module.functions, *module.global_variables):
        own = symbol.name == entry or symbol.name.startswith("llvm.")
        if not symbol.is_declaration and not own:
            symbol.linkage = "internal"
    _unroll_whole(target_machine, module)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = True
    options.inlining_threshold = _INLINE_EVERYTHING
    builder = binding.create_pass_builder(target_machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _unroll_whole(target_machine: Any, module: Any) -> None:
    """Unroll what is marked for it, so that scratch is in registers before loads of it and of memory look alike: of "load
    an element if there is one, and use it later if there is one" LLVM makes a load from one of two addresses."""
    builder = binding.create_pass_builder(target_machine, binding.create_pipeline_tuning_options(speed_level=1))
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_loop_rotate_pass()
    passes.add_loop_unroll_pass()
    passes.add_sroa_pass()
    passes.run(module, builder)


def undefined(module: Any) -> tuple[str, ...]:
    """Functions that the module calls, does not define, and that GPUs have no instructions for."""
    names = (s.name for s in (*module.functions, *module.global_variables) if s.is_declaration)
    return tuple(sorted(name for name in names if not name.startswith("llvm.") or _HOST_ONLY.match(name)))
