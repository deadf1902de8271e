"""The exact remainder of a division of floats in LLVM IR, for targets without a library function.

LLVM expands ``frem`` for GPUs as ``x - trunc(x / y) * y``, which is wrong where the quotient rounds
up to an integer or is large. This subtracts multiples of ``y`` by powers of two, the largest first,
as long division does. Every subtraction is exact (Sterbenz), and so are doubling and halving.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def exact_fmod(module: Any, kind: Any) -> Any:
    """The function ``fmod`` of two scalars of type ``kind`` in ``module``; C's result for every operand."""
    name = f"jitgrad.fmod.{kind}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(kind, [kind, kind]), name)
    function.linkage = "internal"
    _write_body(function, kind)
    return function


def _call(builder: Any, intrinsic: str, kind: Any, *operands: Any) -> Any:
    type_ = ir.FunctionType(kind, [kind] * len(operands))
    return builder.call(builder.module.declare_intrinsic(f"llvm.{intrinsic}", [kind], type_), operands)


def _write_body(function: Any, kind: Any) -> None:
    x, y = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    divide, special = function.append_basic_block("divide"), function.append_basic_block("special")
    size, divisor = _call(b, "fabs", kind, x), _call(b, "fabs", kind, y)
    finite = b.fcmp_ordered("<", size, ir.Constant(kind, float("inf")))
    b.cbranch(b.and_(finite, b.fcmp_ordered(">", divisor, ir.Constant(kind, 0.0))), divide, special)

    b.position_at_end(special)  # NaN, of an infinite x or a zero y as well
    undefined = b.fmul(x, y)
    b.ret(b.fdiv(undefined, undefined))

    b.position_at_end(divide)
    rest = _divide(b, kind, size, divisor)
    b.ret(_call(b, "copysign", kind, rest, x))


def _divide(b: Any, kind: Any, size: Any, divisor: Any) -> Any:
    """The rest of ``size / divisor``, both positive, at the position of ``b``, which moves on."""
    entry = b.block
    double, doubled, subtract, halve, done = (
        b.function.append_basic_block(name) for name in ("double", "doubled", "subtract", "halve", "done")
    )
    b.cbranch(b.fcmp_ordered("<", size, divisor), done, double)

    b.position_at_end(double)  # the largest multiple by a power of two that is not above the rest
    multiple = b.phi(kind)
    twice = b.fadd(multiple, multiple)
    b.cbranch(b.fcmp_ordered("<=", twice, size), doubled, subtract)
    ir.IRBuilder(doubled).branch(double)
    multiple.add_incoming(divisor, entry)
    multiple.add_incoming(twice, doubled)

    b.position_at_end(subtract)
    rest, part = b.phi(kind), b.phi(kind)
    less = b.select(b.fcmp_ordered(">=", rest, part), b.fsub(rest, part), rest)
    b.cbranch(b.fcmp_ordered(">", part, divisor), halve, done)
    b.position_at_end(halve)
    halved = b.fmul(part, ir.Constant(kind, 0.5))
    b.branch(subtract)
    for value, first, next_one in ((rest, size, less), (part, multiple, halved)):
        value.add_incoming(first, double)
        value.add_incoming(next_one, halve)

    b.position_at_end(done)
    result = b.phi(kind)
    result.add_incoming(size, entry)
    result.add_incoming(less, subtract)
    return result
