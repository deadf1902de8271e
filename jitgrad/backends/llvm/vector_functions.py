"""The vector mathematics as functions of kernel source. Import it only when a kernel is compiled: it imports llvmlite."""

from __future__ import annotations

from typing import Any

from jitgrad.backends.llvm.target import has_fma
from jitgrad.backends.llvm.types import BOOL, Function, Value, same_float
from jitgrad.vecmath import FUNCTIONS, MathFunction
from jitgrad.vecmath.llvm_algebra import LlvmAlgebra, LlvmValue


def _emitter(function: MathFunction) -> Function:
    def emit(builder: Any, *operands: Value) -> Value:
        kind = same_float(*operands, count=function.arity)
        algebra = LlvmAlgebra(builder, kind.bits, has_fma())
        found = function.definition(algebra, *(LlvmValue(builder, x.ir) for x in operands)).ir
        return Value(BOOL if function.boolean else kind, found)

    return emit


NAMES: dict[str, Function] = {function.name: _emitter(function) for function in FUNCTIONS.values()}
"""``exp(x)`` is f32 for f32 and f64 for f64 (``isnan`` and its kind: bool); operands are floats of one dtype."""
