"""Python's operators as kernel source has them. Import it only when something is compiled.

Integer arithmetic is 64 bits wide and wraps around; it is unsigned if both operands are (a literal may be). Floats meet floats
of their own dtype alone. Nothing is rounded, reordered or contracted beyond what IEEE 754 says of each operation.
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
    """The 64-bit integers that hold both operands."""
    kinds = number(a), number(b)
    if any(kind.category == "f" for kind in kinds):
        raise DialectTypeError(f"{kinds[0]} and {kinds[1]} do not meet: cast one of them")
    unsigned = [kind.category == "u" or (x.literal is not None and x.literal >= 0) for kind, x in zip(kinds, (a, b), strict=True)]
    if all(unsigned) and any(kind.category == "u" for kind in kinds):
        return U64
    if U64 in kinds:
        raise DialectTypeError(f"{kinds[0]} and {kinds[1]} have no common integers: cast one of them")
    return I64


def binary(builder: Any, op: ast.operator, a: TypedValue, b: TypedValue) -> TypedValue:
    """``a op b``."""
    if number(a).category == "f" and number(b).category == "f" and type(op) in _FLOAT_OPERATORS:
        return TypedValue(same_number(a, b), getattr(builder, _FLOAT_OPERATORS[type(op)])(a.ir, b.ir))
    if a.kind == b.kind == BOOL and isinstance(op, _LOGICAL):
        return TypedValue(BOOL, getattr(builder, _INTEGER_OPERATORS[type(op)])(a.ir, b.ir))
    kind = _common(a, b)
    left, right = emit_cast(builder, a, kind).ir, emit_cast(builder, b, kind).ir
    if isinstance(op, ast.RShift):
        return TypedValue(kind, builder.ashr(left, right) if kind == I64 else builder.lshr(left, right))
    if isinstance(op, (ast.FloorDiv, ast.Mod)):
        return TypedValue(kind, _division(builder, op, kind, left, right))
    if type(op) not in _INTEGER_OPERATORS:
        raise DialectTypeError(f"is no operation of {a.kind} and {b.kind}")
    return TypedValue(kind, getattr(builder, _INTEGER_OPERATORS[type(op)])(left, right))


def _division(builder: Any, op: ast.operator, kind: ScalarType, a: Any, b: Any) -> Any:
    """Rounded down, as in Python; the remainder has the sign of ``b``. ``b`` must not be 0."""
    if kind == U64:
        return builder.udiv(a, b) if isinstance(op, ast.FloorDiv) else builder.urem(a, b)
    zero = ir.Constant(kind.llvm, 0)
    rest = builder.srem(a, b)
    differ = builder.icmp_signed("<", builder.xor(rest, b), zero)
    below = builder.and_(differ, builder.icmp_signed("!=", rest, zero))
    if isinstance(op, ast.FloorDiv):
        return builder.sub(builder.sdiv(a, b), builder.zext(below, kind.llvm))
    return builder.add(rest, builder.select(below, b, zero))


def unary(builder: Any, op: ast.unaryop, x: TypedValue) -> TypedValue:
    """``-x`` or ``~x``."""
    kind = number(x)
    if kind.category == "f" and isinstance(op, ast.USub):
        if isinstance(x.ir, ir.Constant):
            return TypedValue(kind, ir.Constant(kind.llvm, -x.ir.constant))
        return TypedValue(kind, builder.fneg(x.ir))
    if kind.category == "f":
        raise DialectTypeError(f"is no operation of {kind}")
    wide = emit_cast(builder, x, U64 if kind.category == "u" else I64)
    if isinstance(op, ast.USub):
        return TypedValue(wide.kind, ir.Constant(I64.llvm, -wide.literal) if wide.literal is not None else builder.neg(wide.ir))
    return TypedValue(wide.kind, builder.not_(wide.ir))


def emit_comparison(builder: Any, op: ast.cmpop, a: TypedValue, b: TypedValue) -> Any:
    """``a op b`` as a bit. With NaN all are false but ``!=``."""
    if type(op) not in _COMPARISONS:
        raise DialectTypeError("is no comparison of numbers")
    symbol = _COMPARISONS[type(op)]
    if number(a).category == "f" and number(b).category == "f":
        same_number(a, b)
        emit = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
        return emit(symbol, a.ir, b.ir)
    if a.kind == b.kind and (number(a).category != "b" or symbol in ("==", "!=")):
        emit = builder.icmp_signed if number(a).category == "i" else builder.icmp_unsigned
        return emit(symbol, a.ir, b.ir)
    kind = _common(a, b)
    emit = builder.icmp_signed if kind == I64 else builder.icmp_unsigned
    return emit(symbol, emit_cast(builder, a, kind).ir, emit_cast(builder, b, kind).ir)


def truth(builder: Any, x: TypedValue) -> Any:
    """Whether ``x`` is not zero, as a bit."""
    return emit_cast(builder, x, BOOL).ir
