"""The vector mathematics as functions of kernel source. Import it only when a kernel is compiled: it imports llvmlite."""

from __future__ import annotations

from typing import Any

from jitgrad.backends.llvm.target import has_fma
from jitgrad.backends.llvm.types import BOOL, DialectFunction, TypedValue, same_float
from jitgrad.vecmath import FUNCTIONS, MathFunction
from jitgrad.vecmath.llvm_algebra import LlvmAlgebra, LlvmValue


def _emitter(function: MathFunction) -> DialectFunction:
    def emit(builder: Any, *operands: TypedValue) -> TypedValue:
        kind = same_float(*operands, count=function.arity)
        algebra = LlvmAlgebra(builder, kind.bits, has_fma())
        found = function.definition(algebra, *(LlvmValue(builder, x.ir) for x in operands)).ir
        return TypedValue(BOOL if function.boolean else kind, found)

    return emit


VECTOR_FUNCTIONS: dict[str, DialectFunction] = {function.name: _emitter(function) for function in FUNCTIONS.values()}
"""``exp(x)`` is f32 for f32 and f64 for f64 (``isnan`` and its kind: bool); operands are floats of one dtype."""
