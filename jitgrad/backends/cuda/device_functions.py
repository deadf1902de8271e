"""Users' scalar functions in CUDA kernels: numba's IR for the CPU, with this package's mathematics in
place of the C library's. This module imports llvmlite, and numba when a function is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from llvmlite import ir

from jitgrad.backends.cuda.translate import new_module
from jitgrad.backends.llvm.types import F32, F64, TypedValue
from jitgrad.backends.llvm.vector_functions import VECTOR_FUNCTIONS
from jitgrad.vecmath import FUNCTIONS

_HOST_LINES = re.compile(r"^target (?:triple|datalayout) .*$", re.MULTILINE)  # of IR that numba wrote for the CPU
_DECLARED = re.compile(r"^declare (float|double) @([\w.]+)\(", re.MULTILINE)
_OPERAND = r'((?:[%@]"[^"]*")|[^,\s]+)'
# LLVM writes a remainder for GPUs as a quotient and a product, which is not exact (`jitgrad.vecmath.llvm_fmod`)
_REMAINDER = re.compile(rf"\bfrem (?:[a-z]+ )*?(float|double) {_OPERAND}, {_OPERAND}")
_FMOD = {"float": "fmodf", "double": "fmod"}  # of the C library
# LLVM's intrinsics that GPUs have instructions for
_NATIVE = frozenset("fabs floor ceil trunc rint nearbyint copysign fma fmuladd sqrt maximum minimum maxnum minnum".split())
_TYPES = {"float": F32, "double": F64}


def for_gpu_linking(linked: Sequence[str], layout: str) -> list[str]:
    """IR that was written for the CPU as IR for a GPU, and the mathematics that it calls."""
    if not linked:
        return []
    texts, needed = [], dict[tuple[str, str], None]()
    for text in map(_with_fmod, linked):
        for kind, name, function in _calls_of_mathematics(text):
            text = re.sub(rf"@{re.escape(name)}(?=\()", f'@"{_name(function, kind)}"', text)
            needed[function, kind] = None
        texts.append(_HOST_LINES.sub("", text))
    return [*texts, _mathematics(list(needed), layout)] if needed else texts


def _with_fmod(text: str) -> str:
    """``text`` with calls of C's fmod for LLVM's remainders of floats."""
    kinds = sorted({kind for kind, _, _ in _REMAINDER.findall(text)})
    text = _REMAINDER.sub(lambda found: "call {0} @{3}({0} {1}, {0} {2})".format(*found.groups(), _FMOD[found[1]]), text)
    declared = {name for _, name in _DECLARED.findall(text)}
    added = [f"declare {kind} @{_FMOD[kind]}({kind}, {kind})\n" for kind in kinds if _FMOD[kind] not in declared]
    return "\n".join([text, *added])


def _calls_of_mathematics(text: str) -> Iterator[tuple[str, str, str]]:
    """The kind and name of each declared function, and what this package calls it."""
    for kind, name in _DECLARED.findall(text):
        function = name.removeprefix("llvm.").removesuffix(".f32" if kind == "float" else ".f64")
        if function == name and kind == "float":
            function = name.removesuffix("f")  # logf
        if function in FUNCTIONS and not (name.startswith("llvm.") and function in _NATIVE):
            yield kind, name, function


def _name(function: str, kind: str) -> str:
    return f"jitgrad.{function}.{_TYPES[kind]}"


def _mathematics(needed: Sequence[tuple[str, str]], layout: str) -> str:
    """IR of functions of this package's mathematics."""
    module = new_module("mathematics", layout)
    for name, kind in needed:
        type_, arity = _TYPES[kind], FUNCTIONS[name].arity
        function = ir.Function(module, ir.FunctionType(type_.llvm, [type_.llvm] * arity), _name(name, kind))
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        result = VECTOR_FUNCTIONS[name](builder, *(TypedValue(type_, x) for x in function.args))
        assert result is not None
        builder.ret(result.ir)
    return str(module)
