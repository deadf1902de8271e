"""The functions of `jitgrad.vecmath` for kernel source. This module imports llvmlite."""

from __future__ import annotations

from typing import Any

from jitgrad.backends.llvm.target import for_gpu, fuses
from jitgrad.backends.llvm.types import BOOL, DialectFunction, TypedValue, same_float
from jitgrad.vecmath import FUNCTIONS, MathFunction
from jitgrad.vecmath.llvm_algebra import LlvmAlgebra, LlvmValue


def _emitter(function: MathFunction) -> DialectFunction:
    def emit(builder: Any, *operands: TypedValue) -> TypedValue:
        type_ = same_float(*operands, count=function.arity)
        algebra = LlvmAlgebra(builder, type_.bits, fuses(builder), vectors=not for_gpu(builder))
        result = function.definition(algebra, *(LlvmValue(builder, x.ir) for x in operands)).ir
        return TypedValue(BOOL if function.boolean else type_, result)

    return emit


VECTOR_FUNCTIONS: dict[str, DialectFunction] = {function.name: _emitter(function) for function in FUNCTIONS.values()}
"""``exp(x)`` is f32 for f32 and f64 for f64 (``isnan``, ``isinf`` and ``isfinite``: bool); operands are floats of one dtype."""
