"""The functions of `jitgrad.vecmath` for kernel source. This module imports llvmlite."""

from __future__ import annotations

from typing import Any

from jitgrad.backends.llvm.target import for_gpu, fuses
from jitgrad.backends.llvm.types import BOOL, DialectFunction, TypedValue, same_float
from jitgrad.vecmath import FUNCTIONS, MathFunction
from jitgrad.vecmath.llvm_algebra import LlvmAlgebra, LlvmValue


def _emitter(function: MathFunction, *, as_numpy: bool = False) -> DialectFunction:
    def emit(builder: Any, *operands: TypedValue) -> TypedValue:
        type_ = same_float(*operands, count=function.arity)
        has_fma = fuses(builder)
        how = {"separate": as_numpy, "vectors": not for_gpu(builder), "multiplies_exactly": has_fma}
        algebra = LlvmAlgebra(builder, type_.bits, has_fma and not as_numpy, **how)
        result = function.definition(algebra, *(LlvmValue(builder, x.ir) for x in operands)).ir
        return TypedValue(BOOL if function.boolean else type_, result)

    return emit


VECTOR_FUNCTIONS: dict[str, DialectFunction] = {function.name: _emitter(function) for function in FUNCTIONS.values()}
"""``exp(x)`` is f32 for f32 and f64 for f64 (``isnan``, ``isinf`` and ``isfinite``: bool); operands are floats of one dtype."""

AS_NUMPY: dict[str, DialectFunction] = {f.name: _emitter(f, as_numpy=True) for f in FUNCTIONS.values()}
"""The same, each operation rounded as NumPy rounds it: the bits of `jitgrad.vecmath.numpy_namespace`."""
