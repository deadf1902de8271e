"""The algebra of LLVM values: emits instructions at the call in a kernel.

No instruction has a fast-math flag. The code is branch-free, so that LLVM can vectorise the loop
around it. This module imports llvmlite; the package does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir

from jitgrad.vecmath.algebra import Algebra, MathValue, exact_multiply_add
from jitgrad.vecmath.llvm_fmod import exact_fmod
from jitgrad.vecmath.llvm_quotients import fmod_by_quotient
from jitgrad.vecmath.llvm_vector_forms import VECTOR_LENGTHS, keep_pure, lane_by_lane

_FLOATS = {32: ir.FloatType(), 64: ir.DoubleType()}
_INTS = {32: ir.IntType(32), 64: ir.IntType(64)}


def _float_constant(kind: Any, number: float) -> Any:
    return ir.Constant(kind, float(np.float32(number)) if kind == _FLOATS[32] else float(number))


@dataclass(frozen=True, slots=True, eq=False)
class LlvmValue:
    """An LLVM value with operators. Not hashable: ``==`` emits a comparison."""

    __hash__: ClassVar[None]  # type: ignore[assignment]

    builder: Any
    ir: Any

    def coerce(self, other: Any) -> Any:
        """The LLVM value of ``other``; a Python number becomes a constant of this value's type."""
        if isinstance(other, LlvmValue):
            return other.ir
        kind = self.ir.type
        return ir.Constant(kind, int(other)) if isinstance(kind, ir.IntType) else _float_constant(kind, other)

    def _arithmetic(self, left: Any, right: Any, integer: str, floating: str) -> LlvmValue:
        emit = getattr(self.builder, integer if isinstance(self.ir.type, ir.IntType) else floating)
        return LlvmValue(self.builder, emit(left, right))

    def _compare(self, operator: str, other: Any) -> LlvmValue:
        right = self.coerce(other)
        if isinstance(self.ir.type, ir.IntType):
            return LlvmValue(self.builder, self.builder.icmp_signed(operator, self.ir, right))
        emit = self.builder.fcmp_unordered if operator == "!=" else self.builder.fcmp_ordered
        return LlvmValue(self.builder, emit(operator, self.ir, right))

    def __add__(self, other: Any) -> LlvmValue:
        return self._arithmetic(self.ir, self.coerce(other), "add", "fadd")

    def __radd__(self, other: Any) -> LlvmValue:
        return self._arithmetic(self.coerce(other), self.ir, "add", "fadd")

    def __sub__(self, other: Any) -> LlvmValue:
        return self._arithmetic(self.ir, self.coerce(other), "sub", "fsub")

    def __rsub__(self, other: Any) -> LlvmValue:
        return self._arithmetic(self.coerce(other), self.ir, "sub", "fsub")

    def __mul__(self, other: Any) -> LlvmValue:
        return self._arithmetic(self.ir, self.coerce(other), "mul", "fmul")

    def __rmul__(self, other: Any) -> LlvmValue:
        return self._arithmetic(self.coerce(other), self.ir, "mul", "fmul")

    def __truediv__(self, other: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.fdiv(self.ir, self.coerce(other)))

    def __rtruediv__(self, other: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.fdiv(self.coerce(other), self.ir))

    def __neg__(self) -> LlvmValue:
        if isinstance(self.ir.type, ir.IntType):
            return LlvmValue(self.builder, self.builder.neg(self.ir))
        return LlvmValue(self.builder, self.builder.fneg(self.ir))

    def __and__(self, other: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.and_(self.ir, self.coerce(other)))

    def __or__(self, other: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.or_(self.ir, self.coerce(other)))

    def __xor__(self, other: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.xor(self.ir, self.coerce(other)))

    def __lshift__(self, count: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.shl(self.ir, self.coerce(count)))

    def __rshift__(self, count: Any) -> LlvmValue:
        return LlvmValue(self.builder, self.builder.ashr(self.ir, self.coerce(count)))

    def __lt__(self, other: Any) -> LlvmValue:
        return self._compare("<", other)

    def __le__(self, other: Any) -> LlvmValue:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> LlvmValue:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> LlvmValue:
        return self._compare(">=", other)

    def __eq__(self, other: object) -> LlvmValue:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> LlvmValue:  # type: ignore[override]
        return self._compare("!=", other)


@dataclass(frozen=True, slots=True)
class LlvmAlgebra:
    """Operations emitted at the position of ``builder``; ``fused``: the target has fma.

    ``separate``: `mad` rounds the product and the sum, with or without fma.
    ``vectors``: functions that are called get vector forms, for loops that LLVM vectorises; not on a GPU.
    ``multiplies_exactly``: the target has fma, whether or not `fma` and `mad` use it.
    """

    builder: Any
    width: int
    fused: bool
    separate: bool = False
    vectors: bool = True
    multiplies_exactly: bool = False

    def wide(self) -> Algebra:
        return replace(self, width=64)

    def unfused(self) -> Algebra:
        return replace(self, separate=True)

    def _wrap(self, instruction: Any) -> LlvmValue:
        return LlvmValue(self.builder, instruction)

    def _float(self, x: MathValue) -> Any:
        return x.ir if isinstance(x, LlvmValue) else _float_constant(_FLOATS[self.width], x)

    def _call(self, name: str, *operands: MathValue) -> LlvmValue:
        kind = _FLOATS[self.width]
        suffix = f"f{self.width}"
        function_type = ir.FunctionType(kind, [kind] * len(operands))
        function = self.builder.module.declare_intrinsic(f"{name}.{suffix}", (), function_type)
        return self._wrap(self.builder.call(function, [self._float(x) for x in operands]))

    def const(self, number: float) -> MathValue:
        return self._wrap(_float_constant(_FLOATS[self.width], number))

    def widen(self, x: MathValue) -> MathValue:
        return self._wrap(self.builder.fpext(x.ir, _FLOATS[64]))

    def narrow(self, x: MathValue) -> MathValue:
        return self._wrap(self.builder.fptrunc(x.ir, _FLOATS[32]))

    def fma(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        if self.fused:
            return self._call("llvm.fma", a, b, c)
        if self.width == 32:
            a, b, c = (self.widen(self._wrap(self._float(x))) for x in (a, b, c))
            return self.narrow(a * b + c)
        a, b, c = (self._wrap(self._float(x)) for x in (a, b, c))
        return self._fma64(a, b, c)

    def _fma64(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        """For machines with no fma instruction."""
        exact, total = exact_multiply_add(a, b, c)
        return self.select(exact - exact == 0.0, exact, total)

    def mad(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        if self.separate:
            a, b, c = (self._wrap(self._float(x)) for x in (a, b, c))
            return a * b + c
        return self._call("llvm.fma" if self.fused else "llvm.fmuladd", a, b, c)

    def rint(self, x: MathValue) -> MathValue:
        return self._call("llvm.rint", x)

    def floor(self, x: MathValue) -> MathValue:
        return self._call("llvm.floor", x)

    def ceil(self, x: MathValue) -> MathValue:
        return self._call("llvm.ceil", x)

    def trunc(self, x: MathValue) -> MathValue:
        return self._call("llvm.trunc", x)

    def abs(self, x: MathValue) -> MathValue:
        return self._call("llvm.fabs", x)

    def copysign(self, x: MathValue, sign: MathValue) -> MathValue:
        return self._call("llvm.copysign", x, sign)

    def sqrt(self, x: MathValue) -> MathValue:
        return self._call("llvm.sqrt", x)

    def minimum(self, x: MathValue, y: MathValue) -> MathValue:
        return self._call("llvm.minimum", x, y)

    def maximum(self, x: MathValue, y: MathValue) -> MathValue:
        return self._call("llvm.maximum", x, y)

    def fmod(self, x: MathValue, y: MathValue) -> MathValue:
        operands = self._float(x), self._float(y)
        if self.vectors and self.multiplies_exactly:
            return self._wrap(fmod_by_quotient(self.builder, *operands))
        if self.vectors:
            return self._wrap(self.builder.frem(*operands))
        return self._wrap(self.builder.call(exact_fmod(self.builder.module, _FLOATS[self.width]), operands))

    def select(self, condition: MathValue, yes: MathValue, no: MathValue) -> MathValue:
        typed = yes if isinstance(yes, LlvmValue) else no
        if not isinstance(typed, LlvmValue):
            typed = self.const(0.0)
        return self._wrap(self.builder.select(condition.ir, typed.coerce(yes), typed.coerce(no)))

    def beyond(self, bound: float, slow: Callable[[Algebra, MathValue], MathValue], x: MathValue, usual: MathValue) -> MathValue:
        """A call of a function with vector forms, which the loop vectoriser can use."""
        kind = _FLOATS[self.width]
        module = self.builder.module
        name = f"jitgrad{slow.__name__}_f{self.width}{'_separate' if self.separate else ''}"
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [kind, kind]), name)
            lengths = VECTOR_LENGTHS[self.width] if self.vectors else ()
            if lengths:
                variants = [f"_ZGV_LLVM_N{n}vv_{name}({name}_v{n})" for n in lengths]
                set.add(function.attributes, f'"vector-function-abi-variant"="{",".join(variants)}"')
            _define_scalar_form(function, self, bound, slow)
            for n in lengths:
                _define_vector_form(function, n, bound)
        return self._wrap(self.builder.call(function, [x.ir, usual.ir]))

    def bits(self, x: MathValue) -> MathValue:
        return self._wrap(self.builder.bitcast(x.ir, _INTS[self.width]))

    def from_bits(self, i: MathValue) -> MathValue:
        return self._wrap(self.builder.bitcast(i.ir, _FLOATS[self.width]))

    def lookup(self, table: tuple[float, ...], index: MathValue) -> MathValue:
        kind = ir.ArrayType(_FLOATS[self.width], len(table))
        name = f"jitgrad.table.{self.width}.{hash(table) & 0xFFFFFFFFFFFF:x}"
        module = self.builder.module
        constant = module.globals.get(name)
        if constant is None:
            constant = ir.GlobalVariable(module, kind, name)
            constant.initializer = ir.Constant(kind, [_float_constant(_FLOATS[self.width], v) for v in table])
            constant.global_constant, constant.linkage, constant.unnamed_addr = True, "private", True
        zero = ir.Constant(index.ir.type, 0)
        load = self.builder.load(self.builder.gep(constant, [zero, index.ir], inbounds=True))
        load.set_metadata("invariant.load", module.add_metadata([]))
        return self._wrap(load)


def _define_scalar_form(function: Any, algebra: LlvmAlgebra, bound: float, slow: Callable[..., MathValue]) -> None:
    """``f(x, usual) = slow(x) if |x| > bound else usual``, with a branch."""
    function.linkage = "internal"
    if algebra.vectors:
        keep_pure(function)
    builder = ir.IRBuilder(function.append_basic_block())
    inside = replace(algebra, builder=builder)
    x = LlvmValue(builder, function.args[0])
    with builder.if_then((inside.abs(x) > bound).ir, likely=False):
        builder.ret(slow(inside, x).ir)
    builder.ret(function.args[1])


def _define_vector_form(scalar: Any, length: int, bound: float) -> None:
    """The same for ``length`` lanes: one test for all lanes, then the scalar form for each lane."""
    kind = scalar.ftype.return_type
    vector = ir.VectorType(kind, length)
    function = ir.Function(scalar.module, ir.FunctionType(vector, [vector, vector]), f"{scalar.name}_v{length}")
    function.linkage = "internal"
    keep_pure(function)
    builder = ir.IRBuilder(function.append_basic_block())
    x, usual = function.args
    limit = ir.Constant(vector, [_float_constant(kind, bound)] * length)
    above = builder.fcmp_ordered(">", x, limit)
    below = builder.fcmp_ordered("<", x, ir.Constant(vector, [_float_constant(kind, -bound)] * length))
    mask = builder.bitcast(builder.or_(above, below), ir.IntType(length))
    with builder.if_then(builder.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0)), likely=False):
        builder.ret(lane_by_lane(builder, scalar, [x, usual]))
    builder.ret(usual)
