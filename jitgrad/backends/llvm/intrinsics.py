"""Scalar functions that kernel source calls, most of them single LLVM instructions.

Every function here is branch-free, so that a loop around it vectorises. Import this module only
when a kernel is compiled: it imports llvmlite. `INTRINSICS` is the namespace every kernel source
sees.

========================  =====================================================================
``at(p, n)``              pointer to element ``n`` of ``p``
``element_at(p, n)``      ``p[n]`` at a computed position, of memory that the kernel does not write
``stream(p, n, x)``       ``p[n] = x``, non-temporal where the CPU can: see `jitgrad.backends.llvm.nontemporal`
``prefetch(p, n)``        start loading the cache line of element ``n`` of ``p``, which need not exist
``prefetch_beside(p, n)`` the same in a loop with non-temporal stores, where the CPU can
``scratch_f32(64)`` ...   pointer to so many elements on the stack (a literal), every dtype
``add_row(p, q, 8)``      ``p[k] = p[k] + q[k]`` for the first 8 elements (a literal number of them), as one vector
``subtract_row(p, f, q, 8)``  ``p[k] = p[k] - f * q[k]`` likewise, rounded once where the CPU can
``freeze(x)``             ``x``, loaded from an address where a result will be stored
``select(c, a, b)``       ``a`` where ``c``, else ``b``; both are evaluated; same type
``reassoc_add(acc, x)``   ``acc + x`` that LLVM may reorder (``reassoc`` only): sums over a loop
``reassoc_mul(acc, x)``   ``acc * x`` likewise
``fmax(a, b) fmin(a, b)`` NaN wins, of zeros either (as in NumPy); signed, unsigned and bool too
``to_f32(x)`` ...         C casts to every dtype; where C leaves the result undefined, x86's
``as_i32(x)`` ...         bit casts f32 <-> i32, f64 <-> i64
``to_f16(x)``             ``x`` rounded to float16, as an f32: kernels hold float16 so
``as_half(b) as_bits(x)`` such an f32 from the 16 bits in memory, and back
``min(a, b) max(a, b)``   the same two, for indices
``abs(x)``                a float with its sign bit cleared
``fma rint sqrt ...``     LLVM's intrinsics of that name on f32 and f64
========================  =====================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.casts import CASTS
from jitgrad.backends.llvm.memory_access import MEMORY
from jitgrad.backends.llvm.target import fuses
from jitgrad.backends.llvm.types import (
    BOOL,
    NUMBERS,
    DialectFunction,
    DialectTypeError,
    ScalarType,
    TypedValue,
    same_float,
    same_number,
)


def _llvm_function(builder: Any, name: str, type_: ScalarType, arity: int) -> Any:
    suffix = f"{'f' if type_.category == 'f' else 'i'}{type_.bits}"
    signature = ir.FunctionType(type_.llvm, [type_.llvm] * arity)
    return builder.module.declare_intrinsic(f"llvm.{name}.{suffix}", (), signature)


def freeze(builder: Any, x: TypedValue) -> TypedValue:
    """``x``, without its link to the address that it was loaded from.

    If LLVM knew that a result is stored there, "store this, or the old value" would become a masked
    store, which takes eight times as long on AMD's CPUs.
    """
    frozen = ir.instructions.Instruction(builder.block, x.type.llvm, "freeze", [x.ir])
    builder._insert(frozen)
    return TypedValue(x.type, frozen)


def emit_select(builder: Any, condition: TypedValue, yes: TypedValue, no: TypedValue) -> TypedValue:
    """``yes`` where ``condition``, else ``no``."""
    if condition.type != BOOL or yes.type != no.type:
        raise DialectTypeError(f"takes a bool and two values of one dtype, found {condition.type}, {yes.type} and {no.type}")
    return TypedValue(yes.type, builder.select(condition.ir, yes.ir, no.ir))


def _reordered(builder: Any, acc: TypedValue, x: TypedValue, *, floats: str, integers: str) -> TypedValue:
    """``acc op x`` in which only ``acc`` and ``x`` of the same loop may be reordered."""
    type_ = same_number(acc, x)
    if type_.category == "f":
        return TypedValue(type_, getattr(builder, floats)(acc.ir, x.ir, flags=("reassoc",)))
    return TypedValue(type_, getattr(builder, integers)(acc.ir, x.ir))


_FORMS = {"max": ("maximum", "smax", "umax"), "min": ("minimum", "smin", "umin")}


def _extremum(builder: Any, a: TypedValue, b: TypedValue, *, which: str) -> TypedValue:
    type_ = same_number(a, b)
    of_floats, signed, unsigned = _FORMS[which]
    name = of_floats if type_.category == "f" else signed if type_.category == "i" else unsigned
    # x86 needs four instructions more to put -0.0 below 0.0
    flags = ("nsz",) if type_.category == "f" else ()
    return TypedValue(type_, builder.call(_llvm_function(builder, name, type_, 2), [a.ir, b.ir], fastmath=flags))


def _of_floats(builder: Any, *operands: TypedValue, name: str, arity: int) -> TypedValue:
    """LLVM's intrinsic ``name`` of ``arity`` floats of one dtype."""
    type_ = same_float(*operands, count=arity)
    return TypedValue(type_, builder.call(_llvm_function(builder, name, type_, arity), [x.ir for x in operands]))


def _fma(builder: Any, a: TypedValue, b: TypedValue, c: TypedValue) -> TypedValue:
    """llvm.fma only where the processor has it: elsewhere it is a slow library call."""
    return _of_floats(builder, a, b, c, name="fma" if fuses(builder) else "fmuladd", arity=3)


def _bits(builder: Any, x: TypedValue, *, source: ScalarType, type_: ScalarType) -> TypedValue:
    if x.type != source:
        raise DialectTypeError(f"takes {source}, found {x.type}")
    return TypedValue(type_, builder.bitcast(x.ir, type_.llvm))


_UNARY = {name: name for name in ("rint", "sqrt", "fabs", "floor", "ceil", "trunc")} | {"abs": "fabs"}
_BIT_CASTS = {"as_i32": ("f32", "i32"), "as_f32": ("i32", "f32"), "as_i64": ("f64", "i64"), "as_f64": ("i64", "f64")}
_EXTREMA = {"fmax": "max", "fmin": "min", "max": "max", "min": "min"}

INTRINSICS: dict[str, DialectFunction] = {
    **MEMORY,
    **CASTS,
    "freeze": freeze,
    "select": emit_select,
    "reassoc_add": partial(_reordered, floats="fadd", integers="add"),
    "reassoc_mul": partial(_reordered, floats="fmul", integers="mul"),
    "fma": _fma,
    "copysign": partial(_of_floats, name="copysign", arity=2),
    **{name: partial(_extremum, which=which) for name, which in _EXTREMA.items()},
    **{name: partial(_of_floats, name=of_llvm, arity=1) for name, of_llvm in _UNARY.items()},
    **{name: partial(_bits, source=NUMBERS[a], type_=NUMBERS[b]) for name, (a, b) in _BIT_CASTS.items()},
}
