"""Python's operators in kernel source. Import this module only when something is compiled.

Integer arithmetic is 64 bits wide and wraps around; it is unsigned if both operands are, where a
literal may be either. Both floats of an operation have the same dtype. Every operation rounds as
IEEE 754 says, and none is reordered or contracted.
"""

from __future__ import annotations

import ast
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.casts import emit_cast
from jitgrad.backends.llvm.types import BOOL, I64, U64, DialectTypeError, ScalarType, TypedValue, number, same_number

_FLOAT_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv",
}  # fmt: skip
_INTEGER_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl",
    ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
_LOGICAL = (ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def _common(a: TypedValue, b: TypedValue) -> ScalarType:
    """The 64-bit integer type that holds both operands."""
    types = number(a), number(b)
    if any(type_.category == "f" for type_ in types):
        raise DialectTypeError(f"{types[0]} and {types[1]} do not meet: cast one of them")
    unsigned = [number(x).category == "u" or (x.literal is not None and x.literal >= 0) for x in (a, b)]
    if all(unsigned) and any(type_.category == "u" for type_ in types):
        return U64
    if U64 in types:
        raise DialectTypeError(f"{types[0]} and {types[1]} have no common integers: cast one of them")
    return I64


def binary(builder: Any, op: ast.operator, a: TypedValue, b: TypedValue) -> TypedValue:
    """``a op b``."""
    if number(a).category == "f" and number(b).category == "f" and type(op) in _FLOAT_OPERATORS:
        return TypedValue(same_number(a, b), getattr(builder, _FLOAT_OPERATORS[type(op)])(a.ir, b.ir))
    if a.type == b.type == BOOL and isinstance(op, _LOGICAL):
        return TypedValue(BOOL, getattr(builder, _INTEGER_OPERATORS[type(op)])(a.ir, b.ir))
    type_ = _common(a, b)
    left, right = emit_cast(builder, a, type_).ir, emit_cast(builder, b, type_).ir
    if isinstance(op, ast.RShift):
        return TypedValue(type_, builder.ashr(left, right) if type_ == I64 else builder.lshr(left, right))
    if isinstance(op, (ast.FloorDiv, ast.Mod)):
        return TypedValue(type_, _division(builder, op, type_, left, right))
    if type(op) not in _INTEGER_OPERATORS:
        raise DialectTypeError(f"is no operation of {a.type} and {b.type}")
    return TypedValue(type_, getattr(builder, _INTEGER_OPERATORS[type(op)])(left, right))


def _division(builder: Any, op: ast.operator, type_: ScalarType, a: Any, b: Any) -> Any:
    """Rounded down, as in Python; the remainder has the sign of ``b``. ``b`` must not be 0."""
    if type_ == U64:
        return builder.udiv(a, b) if isinstance(op, ast.FloorDiv) else builder.urem(a, b)
    zero = ir.Constant(type_.llvm, 0)
    rest = builder.srem(a, b)
    differ = builder.icmp_signed("<", builder.xor(rest, b), zero)
    below = builder.and_(differ, builder.icmp_signed("!=", rest, zero))
    if isinstance(op, ast.FloorDiv):
        return builder.sub(builder.sdiv(a, b), builder.zext(below, type_.llvm))
    return builder.add(rest, builder.select(below, b, zero))


def unary(builder: Any, op: ast.unaryop, x: TypedValue) -> TypedValue:
    """``-x`` or ``~x``."""
    type_ = number(x)
    if type_.category == "f" and isinstance(op, ast.USub):
        if isinstance(x.ir, ir.Constant):
            return TypedValue(type_, ir.Constant(type_.llvm, -x.ir.constant))
        return TypedValue(type_, builder.fneg(x.ir))
    if type_.category == "f":
        raise DialectTypeError(f"is no operation of {type_}")
    wide = emit_cast(builder, x, U64 if type_.category == "u" else I64)
    if isinstance(op, ast.USub):
        return TypedValue(wide.type, ir.Constant(I64.llvm, -wide.literal) if wide.literal is not None else builder.neg(wide.ir))
    return TypedValue(wide.type, builder.not_(wide.ir))


def emit_comparison(builder: Any, op: ast.cmpop, a: TypedValue, b: TypedValue) -> Any:
    """``a op b`` as an i1. With NaN only ``!=`` is true."""
    if type(op) not in _COMPARISONS:
        raise DialectTypeError("is no comparison of numbers")
    symbol = _COMPARISONS[type(op)]
    if number(a).category == "f" and number(b).category == "f":
        same_number(a, b)
        emit = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
        return emit(symbol, a.ir, b.ir)
    if a.type == b.type and (number(a).category != "b" or symbol in ("==", "!=")):
        emit = builder.icmp_signed if number(a).category == "i" else builder.icmp_unsigned
        return emit(symbol, a.ir, b.ir)
    type_ = _common(a, b)
    emit = builder.icmp_signed if type_ == I64 else builder.icmp_unsigned
    return emit(symbol, emit_cast(builder, a, type_).ir, emit_cast(builder, b, type_).ir)


def truth(builder: Any, x: TypedValue) -> Any:
    """``x != 0`` as an i1."""
    return emit_cast(builder, x, BOOL).ir
