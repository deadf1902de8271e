"""The casts of kernel source: one per dtype, with NumPy's results. This module imports llvmlite."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir

from jitgrad.backends.llvm.target import for_gpu, lacks_wide_casts
from jitgrad.backends.llvm.types import (
    BOOL,
    F32,
    F64,
    I64,
    NUMBERS,
    U16,
    DialectFunction,
    DialectTypeError,
    ScalarType,
    TypedValue,
    constant,
    number,
)

_HALF, _SINGLE, _DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_WORD, _LONG = ir.IntType(32), ir.IntType(64)


def emit_cast(builder: Any, x: TypedValue, type_: ScalarType) -> TypedValue:
    """``x`` converted to ``type_`` as in C, and as on x86 where C leaves the result undefined. A
    bool is ``x != 0``."""
    source = number(x)
    if source == type_:
        return x
    if isinstance(x.ir, ir.Constant) and type_ != BOOL:
        folded = _folded(x.ir.constant, source, type_)
        if folded is not None:
            return folded
    return TypedValue(type_, _converted(builder, x.ir, source, type_))


def _folded(value: Any, source: ScalarType, type_: ScalarType) -> TypedValue | None:
    """A constant converted to ``type_``; None where LLVM folds the cast."""
    if source.category == "f":
        if type_.category != "f":
            return None
        with np.errstate(over="ignore"):  # larger numbers are infinite
            return constant(type_, float(np.float32(value)) if type_ == F32 else float(value))
    if type_.category == "f" or not isinstance(value, int):
        return None
    wrapped = value & ((1 << type_.bits) - 1)
    return constant(type_, wrapped - (1 << type_.bits) if type_.category == "i" and wrapped >> (type_.bits - 1) else wrapped)


def _converted(builder: Any, x: Any, source: ScalarType, type_: ScalarType) -> Any:
    if type_ == BOOL:
        zero = ir.Constant(x.type, 0.0 if source.category == "f" else 0)
        return builder.fcmp_unordered("!=", x, zero) if source.category == "f" else builder.icmp_unsigned("!=", x, zero)
    if source.category == "f":
        if type_.category != "f":
            return _to_integer(builder, x, type_)
        return builder.fpext(x, type_.llvm) if source.bits < type_.bits else builder.fptrunc(x, type_.llvm)
    if type_.category == "f":
        return builder.sitofp(x, type_.llvm) if source.category == "i" else builder.uitofp(x, type_.llvm)
    if source.bits >= type_.bits:
        return x if source.bits == type_.bits else builder.trunc(x, type_.llvm)
    return builder.sext(x, type_.llvm) if source.category == "i" else builder.zext(x, type_.llvm)


def _to_integer(builder: Any, x: Any, type_: ScalarType) -> Any:
    """C's float-to-integer cast, with x86's answer (the smallest integer) where C has none.

    Narrow and unsigned targets go through a wider signed integer, as compilers for x86-64 do, so
    that ``uint8(-1.0)`` is 255. A poison value in the arm that select does not take is harmless.
    """
    signed = type_.category == "i"
    wide = ir.IntType(32 if type_.bits <= 16 or (type_.bits == 32 and signed) else 64)
    bound = float(2 ** (wide.width - 1))
    low, high = ir.Constant(x.type, -bound), ir.Constant(x.type, bound)
    smallest = ir.Constant(wide, -(2 ** (wide.width - 1)))
    inside = builder.and_(builder.fcmp_ordered(">=", x, low), builder.fcmp_ordered("<", x, high))
    in_halves = wide.width == 64 and not for_gpu(builder) and lacks_wide_casts()
    value = builder.select(inside, _in_halves(builder, x) if in_halves else builder.fptosi(x, wide), smallest)
    if type_.bits == 64 and not signed:
        top = builder.xor(builder.fptosi(builder.fsub(x, high), wide), smallest)
        upper = builder.and_(
            builder.fcmp_ordered(">=", x, high), builder.fcmp_ordered("<", x, ir.Constant(x.type, 2 * bound))
        )
        value = builder.select(upper, top, value)
    return builder.trunc(value, type_.llvm) if wide.width > type_.bits else value


def _in_halves(builder: Any, x: Any) -> Any:
    """The float ``x``, of the range of int64, as one, with no instruction that vectors lack before AVX-512.

    Its whole part is ``high * 2**32 + low``. Added to a number whose last bit counts ones, each half is the last bits of the
    sum. Every step is exact.
    """
    x = builder.fpext(x, _DOUBLE) if x.type != _DOUBLE else x
    signature = ir.FunctionType(_DOUBLE, [_DOUBLE])
    trunc, floor = (builder.module.declare_intrinsic(f"llvm.{name}.f64", (), signature) for name in ("trunc", "floor"))
    whole = builder.call(trunc, [x])
    high = builder.call(floor, [builder.fmul(whole, ir.Constant(_DOUBLE, 2.0**-32))])
    low = builder.fsub(whole, builder.fmul(high, ir.Constant(_DOUBLE, 2.0**32)))
    signed, unsigned = ir.Constant(_DOUBLE, 1.5 * 2**52), ir.Constant(_DOUBLE, 2.0**52)
    high_bits = builder.bitcast(builder.fadd(high, signed), _LONG)
    low_bits = builder.xor(builder.bitcast(builder.fadd(low, unsigned), _LONG), builder.bitcast(unsigned, _LONG))
    return builder.or_(builder.shl(high_bits, ir.Constant(_LONG, 32)), low_bits)


def _to_odd(builder: Any, x: Any) -> Any:
    """The double ``x`` as a float, inexact ones rounded to the neighbour whose last bit is set.

    A second rounding, to float16, then gives what a single one would (S. Boldo, G. Melquiond,
    "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE
    Trans. Computers 2008).
    """
    near = builder.fptrunc(x, _SINGLE)
    back = builder.fpext(near, x.type)
    absolute = builder.module.declare_intrinsic("llvm.fabs.f64", (), ir.FunctionType(x.type, [x.type]))
    beyond = builder.fcmp_ordered(">", builder.call(absolute, [back]), builder.call(absolute, [x]))
    bits = builder.sub(builder.bitcast(near, _WORD), builder.zext(beyond, _WORD))
    odd = builder.or_(bits, builder.zext(builder.fcmp_ordered("!=", back, x), _WORD))
    return builder.bitcast(odd, _SINGLE)


def to_half(builder: Any, x: TypedValue) -> TypedValue:
    """``x`` rounded to float16, as an equal float32; integers are cast to float32 first, as in NumPy."""
    if isinstance(x.ir, ir.Constant) and number(x).category == "f":
        with np.errstate(over="ignore"):
            return constant(F32, float(np.float16(x.ir.constant)))
    single = _to_odd(builder, x.ir) if x.type == F64 else emit_cast(builder, x, F32).ir
    return TypedValue(F32, builder.fpext(builder.fptrunc(single, _HALF), _SINGLE))


def half_of_bits(builder: Any, bits: TypedValue) -> TypedValue:
    """The float32 that equals the float16 of these bits."""
    if bits.type != U16:
        raise DialectTypeError(f"takes u16, found {bits.type}")
    return TypedValue(F32, builder.fpext(builder.bitcast(bits.ir, _HALF), _SINGLE))


def bits_of_half(builder: Any, x: TypedValue) -> TypedValue:
    """The bits of ``x``, a float32 that equals a float16, as one."""
    if x.type != F32:
        raise DialectTypeError(f"takes f32, found {x.type}")
    return TypedValue(U16, builder.bitcast(builder.fptrunc(x.ir, _HALF), ir.IntType(16)))


def as_index(builder: Any, x: TypedValue) -> Any:
    """``x``, an integer, as a 64-bit number of elements."""
    if number(x).category not in "iu":
        raise DialectTypeError(f"an index is an integer, found {x.type}")
    return emit_cast(builder, x, I64).ir


CASTS: dict[str, DialectFunction] = {
    **{f"to_{name}": partial(emit_cast, type_=type_) for name, type_ in NUMBERS.items()},
    "to_f16": to_half,
    "as_half": half_of_bits,
    "as_bits": bits_of_half,
}
