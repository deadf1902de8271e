"""Scalar functions that kernel source calls and numba lowers to single LLVM instructions.

Every function here is branch-free, so that a loop around it vectorises. Import this module only when a
kernel is compiled: it imports numba. ``NAMES`` is the namespace every kernel source sees.

========================  =====================================================================
``at(p, n)``              pointer to element ``n`` of ``p``
``stream(p, n, x)``       ``p[n] = x``, past the caches where the CPU can: see `jitgrad.backends.streams`
``prefetch(p, n)``        start loading the cache line of element ``n`` of ``p``, which need not exist
``prefetch_beside(p, n)`` the same in a loop that streams, where the CPU can
``scratch_f32(64)`` ...   pointer to so many elements on the stack (a literal), every dtype
``add_row(p, q, 8)``      ``p[k] = p[k] + q[k]`` for the first 8 elements (a literal number of them), as one vector
``old(x)``                ``x``, read where a result will be stored
``select(c, a, b)``       ``a`` where ``c``, else ``b``; both are evaluated; same type
``fsum(acc, x)``          ``acc + x`` that LLVM may reorder (``reassoc`` only): sums over a loop
``fprod(acc, x)``         ``acc * x`` likewise
``fmax(a, b) fmin(a, b)`` NaN wins, of zeros either (as in NumPy); signed, unsigned and bool too
``to_f32(x)`` ...         C casts to every dtype; what C leaves undefined gives what x86 gives
``as_i32(x)`` ...         bit casts f32 <-> i32, f64 <-> i64
``to_f16(x)``             ``x`` rounded to float16, as an f32: kernels hold float16 so
``as_half(b) as_bits(x)`` such an f32 from the 16 bits in memory, and back
``min(a, b) max(a, b)``   the same two, for indices
``fma rint sqrt ...``     LLVM's intrinsics of that name on f32 and f64
========================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from jitgrad.backends.memory import DTYPES, MEMORY, SCRATCH, intrinsic, plain


def _llvm_function(builder: Any, name: str, kind: Any, arity: int) -> Any:
    suffix = {"float": "f32", "double": "f64"}.get(str(kind), str(kind))
    signature = ir.FunctionType(kind, [kind] * arity)
    return builder.module.declare_intrinsic(f"llvm.{name}.{suffix}", (), signature)


@intrinsic
def old(typing: Any, x: Any) -> Any:
    """``x``, of which LLVM does not know that it was loaded from where a result will be stored.

    Otherwise "store this, or what is there" becomes a masked store, eight times slower than a store on AMD's CPUs.
    """
    kind = plain(x)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        frozen = ir.instructions.Instruction(builder.block, args[0].type, "freeze", [args[0]])
        builder._insert(frozen)
        return frozen

    return kind(kind), build


@intrinsic
def select(typing: Any, condition: Any, yes: Any, no: Any) -> Any:
    """``yes`` where ``condition``, else ``no``."""
    kind = plain(yes)
    if kind != plain(no):
        raise TypingError(f"select({condition}, {yes}, {no}): cast both arms to one dtype first")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return kind(types.boolean, kind, kind), build


def _reassociated(name: str, float_op: str, int_op: str) -> Any:
    """``acc op x`` in which only ``acc`` and ``x`` of the same loop may be reordered."""

    def typed(typing: Any, acc: Any, x: Any) -> Any:
        kind = plain(acc)
        if kind != plain(x):
            raise TypingError(f"{name}({acc}, {x}): cast x to the accumulator's dtype first")

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if isinstance(kind, types.Float):
                return getattr(builder, float_op)(*args, flags=("reassoc",))
            return getattr(builder, int_op)(*args)

        return kind(kind, kind), build

    typed.__name__ = name
    return intrinsic(typed)


fsum = _reassociated("fsum", "fadd", "add")
fprod = _reassociated("fprod", "fmul", "mul")


def _extremum(name: str, float_name: str, signed: str, unsigned: str) -> Any:
    def typed(typing: Any, a: Any, b: Any) -> Any:
        kind = plain(a)
        if kind != plain(b):
            raise TypingError(f"{name}({a}, {b}): cast both to one dtype first")

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            is_signed = isinstance(kind, types.Integer) and kind.signed
            chosen = float_name if isinstance(kind, types.Float) else signed if is_signed else unsigned
            # x86 needs four instructions more to put -0.0 below 0.0
            flags = ("nsz",) if isinstance(kind, types.Float) else ()
            return builder.call(_llvm_function(builder, chosen, args[0].type, 2), args, fastmath=flags)

        return kind(kind, kind), build

    typed.__name__ = name
    return intrinsic(typed)


fmax = _extremum("fmax", "maximum", "smax", "umax")
fmin = _extremum("fmin", "minimum", "smin", "umin")


def _float_function(name: str, arity: int, lowered: Callable[[], str]) -> Any:
    """A function of ``arity`` floats of one dtype that is the LLVM intrinsic ``lowered()``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(_llvm_function(builder, lowered(), args[0].type, arity), args)

    def sign(*kinds: Any) -> Any:
        kind = plain(kinds[0])
        if not isinstance(kind, types.Float) or any(plain(other) != kind for other in kinds):
            raise TypingError(f"{name}{kinds}: takes floats of one dtype")
        return kind(*[kind] * arity), build

    # numba reads the number of arguments off the Python signature, so it cannot be *args
    by_arity: dict[int, Callable[..., Any]] = {
        1: lambda typing, x: sign(x),
        2: lambda typing, x, y: sign(x, y),
        3: lambda typing, x, y, z: sign(x, y, z),
    }
    typed = by_arity[arity]
    typed.__name__ = name
    return intrinsic(typed)


def _fused_multiply_add() -> str:
    """llvm.fma only where the CPU has it: elsewhere it is a slow library call."""
    return "fma" if llvm.get_host_cpu_features().get("fma", True) else "fmuladd"


fma = _float_function("fma", 3, _fused_multiply_add)
copysign = _float_function("copysign", 2, lambda: "copysign")
rint, sqrt, fabs, floor, ceil, trunc = (
    _float_function(name, 1, lambda name=name: name)  # type: ignore[misc]
    for name in ("rint", "sqrt", "fabs", "floor", "ceil", "trunc")
)


def _bit_cast(name: str, source: Any, target: Any) -> Any:
    def typed(typing: Any, x: Any) -> Any:
        if plain(x) != source:
            raise TypingError(f"{name}({x}): takes {source}")

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), build

    typed.__name__ = name
    return intrinsic(typed)


as_i32 = _bit_cast("as_i32", types.float32, types.int32)
as_f32 = _bit_cast("as_f32", types.int32, types.float32)
as_i64 = _bit_cast("as_i64", types.float64, types.int64)
as_f64 = _bit_cast("as_f64", types.int64, types.float64)


def _float_to_int(builder: Any, x: Any, target: Any, width: int) -> Any:
    """C's float-to-integer cast, with x86's answer (the smallest integer) where C has none.

    Narrow and unsigned targets go through a wider signed integer, as compilers for x86-64 do, so that
    ``uint8(-1.0)`` is 255. A poison value in the arm that select does not take is harmless.
    """
    wide = ir.IntType(32 if width <= 16 or (width == 32 and target.signed) else 64)
    bound = float(2 ** (wide.width - 1))
    low, high = ir.Constant(x.type, -bound), ir.Constant(x.type, bound)
    smallest = ir.Constant(wide, -(2 ** (wide.width - 1)))
    inside = builder.and_(builder.fcmp_ordered(">=", x, low), builder.fcmp_ordered("<", x, high))
    value = builder.select(inside, builder.fptosi(x, wide), smallest)
    if width == 64 and not target.signed:
        top = builder.xor(builder.fptosi(builder.fsub(x, high), wide), smallest)
        upper = builder.and_(
            builder.fcmp_ordered(">=", x, high), builder.fcmp_ordered("<", x, ir.Constant(x.type, 2 * bound))
        )
        value = builder.select(upper, top, value)
    return builder.trunc(value, ir.IntType(width)) if wide.width > width else value


def _convert(builder: Any, x: Any, source: Any, target: Any, kind: Any) -> Any:
    """``x`` of numba type ``source`` as ``target``; ``kind`` is the LLVM type of ``target``."""
    from_float, to_float = isinstance(source, types.Float), isinstance(target, types.Float)
    signed = isinstance(source, types.Integer) and source.signed
    if isinstance(target, types.Boolean):
        zero = ir.Constant(x.type, 0.0 if from_float else 0)
        return builder.fcmp_unordered("!=", x, zero) if from_float else builder.icmp_unsigned("!=", x, zero)
    if from_float and to_float:
        if source.bitwidth == target.bitwidth:
            return x
        return builder.fpext(x, kind) if source.bitwidth < target.bitwidth else builder.fptrunc(x, kind)
    if from_float:
        return _float_to_int(builder, x, target, kind.width)
    if to_float:
        return builder.sitofp(x, kind) if signed else builder.uitofp(x, kind)
    if x.type.width >= kind.width:
        return x if x.type.width == kind.width else builder.trunc(x, kind)
    return builder.sext(x, kind) if signed else builder.zext(x, kind)


def _cast(name: str, target: Any) -> Any:
    def typed(typing: Any, x: Any) -> Any:
        source = plain(x)
        if not isinstance(source, (types.Float, types.Integer, types.Boolean)):
            raise TypingError(f"{name}({x}): takes a number")

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _convert(builder, args[0], source, target, context.get_value_type(target))

        return target(source), build

    typed.__name__ = name
    return intrinsic(typed)


CASTS: dict[str, Any] = {f"to_{name}": _cast(f"to_{name}", kind) for name, kind in DTYPES.items()}

_HALF, _SINGLE = ir.HalfType(), ir.FloatType()


def _to_odd(builder: Any, x: Any) -> Any:
    """The double ``x`` as a float, inexact ones rounded to the neighbour whose last bit is set.

    A second rounding, to float16, then gives what a single one would (S. Boldo, G. Melquiond, "Emulation of FMA and
    correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 2008).
    """
    word = ir.IntType(32)
    near = builder.fptrunc(x, _SINGLE)
    back = builder.fpext(near, x.type)
    size = ir.FunctionType(x.type, [x.type])
    absolute = builder.module.declare_intrinsic("llvm.fabs.f64", (), size)
    beyond = builder.fcmp_ordered(">", builder.call(absolute, [back]), builder.call(absolute, [x]))
    bits = builder.sub(builder.bitcast(near, word), builder.zext(beyond, word))
    odd = builder.or_(bits, builder.zext(builder.fcmp_ordered("!=", back, x), word))
    return builder.bitcast(odd, _SINGLE)


@intrinsic
def to_f16(typing: Any, x: Any) -> Any:
    """``x`` rounded to float16, as the float32 that equals it; integers go through float32, as in NumPy."""
    source = plain(x)
    if not isinstance(source, (types.Float, types.Integer, types.Boolean)):
        raise TypingError(f"to_f16({x}): takes a number")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = source == types.float64
        single = _to_odd(builder, args[0]) if wide else _convert(builder, args[0], source, types.float32, _SINGLE)
        return builder.fpext(builder.fptrunc(single, _HALF), _SINGLE)

    return types.float32(source), build


@intrinsic
def as_half(typing: Any, bits: Any) -> Any:
    """The float32 that equals the float16 of these bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], _HALF), _SINGLE)

    return types.float32(types.uint16), build


@intrinsic
def as_bits(typing: Any, x: Any) -> Any:
    """The bits of ``x``, a float32 that equals a float16, as one."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], _HALF), ir.IntType(16))

    return types.uint16(types.float32), build


CASTS["to_f16"] = to_f16


_FUNCTIONS = (old, select, fsum, fprod, fmax, fmin, fma, copysign, rint, sqrt, fabs, floor, ceil, trunc)
_BIT_CASTS = (as_i32, as_f32, as_i64, as_f64, as_half, as_bits)

_BUILT_IN = {"min": fmin, "max": fmax}  # numba's are general, and compiled on their own

NAMES: dict[str, Any] = {**CASTS, **SCRATCH, **{f._name: f for f in (*MEMORY, *_FUNCTIONS, *_BIT_CASTS)}, **_BUILT_IN}
