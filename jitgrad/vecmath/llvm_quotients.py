"""The exact remainder of a division of floats for loops that LLVM vectorises; the C library takes 15 ns for each.

With ``q = trunc(x / y)``, whose quotient is rounded, ``x - q * y`` is exact by one fma: it is a multiple of the last place of
``y``, and smaller than ``y``. A quotient that was rounded up to an integer gives a remainder of the other sign, to which
``y`` is added, exactly as well. That holds while integers around ``q`` are floats; other quotients, infinities and NaN take
the C library's way.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from jitgrad.vecmath.llvm_vector_forms import VECTOR_LENGTHS, keep_pure, lane_by_lane

_LARGEST = {"float": 2.0**22, "double": 2.0**51}  # quotients


def fmod_by_quotient(builder: Any, x: Any, y: Any) -> Any:
    """C's ``fmod`` of two scalars of one type."""
    kind = x.type
    quotient = _call(builder, "trunc", builder.fdiv(x, y))
    rest = _call(builder, "fma", builder.fneg(quotient), y, x)
    bits = ir.IntType(_bits(kind))
    signs = builder.xor(builder.bitcast(rest, bits), builder.bitcast(x, bits))
    crossed = builder.and_(builder.fcmp_unordered("!=", rest, kind(0.0)), builder.icmp_signed("<", signs, bits(0)))
    corrected = builder.select(crossed, builder.fadd(rest, _call(builder, "copysign", y, x)), rest)
    usual = _call(builder, "copysign", corrected, x)
    return builder.call(_checked(builder.module, kind), [x, y, quotient, usual])


def _call(builder: Any, intrinsic: str, *operands: Any) -> Any:
    kind = operands[0].type
    vector = isinstance(kind, ir.VectorType)
    suffix = f"v{kind.count}f{_bits(kind.element)}" if vector else f"f{_bits(kind)}"
    function_type = ir.FunctionType(kind, [kind] * len(operands))
    return builder.call(builder.module.declare_intrinsic(f"llvm.{intrinsic}.{suffix}", (), function_type), operands)


def _bits(kind: Any) -> int:
    return 32 if str(kind) == "float" else 64


def _checked(module: Any, kind: Any) -> Any:
    """The function of x, y, the quotient and the usual result that returns the right result."""
    name = f"jitgrad_fmod_{kind}"
    function = module.globals.get(name)
    if function is not None:
        return function
    function = ir.Function(module, ir.FunctionType(kind, [kind] * 4), name)
    lengths = VECTOR_LENGTHS[_bits(kind)]
    variants = [f"_ZGV_LLVM_N{n}vvvv_{name}({name}_v{n})" for n in lengths]
    set.add(function.attributes, f'"vector-function-abi-variant"="{",".join(variants)}"')
    _define(function, None)
    for n in lengths:
        vector = ir.VectorType(kind, n)
        _define(ir.Function(module, ir.FunctionType(vector, [vector] * 4), f"{name}_v{n}"), function)
    return function


def _define(function: Any, scalar: Any) -> None:
    """The scalar form, or that of a vector, which calls the ``scalar`` one for each lane."""
    function.linkage = "internal"
    keep_pure(function)
    builder = ir.IRBuilder(function.append_basic_block())
    x, y, quotient, usual = function.args
    wrong = _is_wrong(builder, y, quotient, usual)
    if scalar is not None:
        mask = builder.bitcast(wrong, ir.IntType(usual.type.count))
        wrong = builder.icmp_unsigned("!=", mask, mask.type(0))
    with builder.if_then(wrong, likely=False):
        if scalar is None:
            builder.ret(builder.frem(x, y))
        else:
            builder.ret(lane_by_lane(builder, scalar, [x, y, quotient, usual]))
    builder.ret(usual)


def _is_wrong(builder: Any, y: Any, quotient: Any, usual: Any) -> Any:
    """Whether the quotient is too large, or anything is NaN, as the remainder by an infinite ``y`` is."""
    kind = y.type
    largest = _LARGEST[str(kind.element if isinstance(kind, ir.VectorType) else kind)]
    limit = ir.Constant(kind, [largest] * kind.count if isinstance(kind, ir.VectorType) else largest)
    large = builder.fcmp_unordered(">=", _call(builder, "fabs", quotient), limit)
    outside = builder.fcmp_unordered(">=", _call(builder, "fabs", usual), _call(builder, "fabs", y))
    return builder.or_(large, outside)
