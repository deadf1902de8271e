"""The types of kernel source: numbers of a dtype, which only a cast changes, and pointers to
numbers.

Import this module only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

from jitgrad.core.fork import cached_property

_FLOATS = {32: ir.FloatType(), 64: ir.DoubleType()}


class DialectTypeError(Exception):
    """An operation does not take operands of these types; the translator adds the line."""


@dataclass(frozen=True)
class ScalarType:
    """A number of the dtype ``name``: ``"f32"``, ``"i8"``, ..., ``"bool"``."""

    name: str

    @cached_property
    def category(self) -> str:
        """``"f"``, ``"i"``, ``"u"`` or ``"b"``, as in NumPy."""
        return self.name[0]

    @cached_property
    def bits(self) -> int:
        return 1 if self.category == "b" else int(self.name[1:])

    @cached_property
    def llvm(self) -> Any:
        return _FLOATS[self.bits] if self.category == "f" else ir.IntType(self.bits)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PointerType:
    """An address of numbers of the type ``element``."""

    element: ScalarType

    @cached_property
    def llvm(self) -> Any:
        return self.element.llvm.as_pointer()

    def __str__(self) -> str:
        return f"{self.element}*"


IRType: TypeAlias = ScalarType | PointerType

F32, F64, I64, U8, U16, U64, BOOL = (ScalarType(name) for name in ("f32", "f64", "i64", "u8", "u16", "u64", "bool"))

NUMBERS: dict[str, ScalarType] = {
    name: ScalarType("f32" if name == "f16" else name)  # a float16 is held as the float32 that equals it
    for name in ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
}
IN_MEMORY: dict[str, ScalarType] = {**NUMBERS, "bool": U8, "f16": U16}


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value of LLVM with its type in kernel source."""

    type: IRType
    ir: Any

    @property
    def literal(self) -> int | None:
        """The integer, if the value is a constant."""
        return self.ir.constant if isinstance(self.ir, ir.Constant) and isinstance(self.ir.constant, int) else None


DialectFunction: TypeAlias = Callable[..., TypedValue | None]
"""Emits a call in kernel source: ``(builder, *values)`` to its value. Raises DialectTypeError for values it does not take."""


def number(x: TypedValue) -> ScalarType:
    """The type of ``x``, which has to be a number."""
    if not isinstance(x.type, ScalarType):
        raise DialectTypeError(f"takes numbers, found {x.type}")
    return x.type


def same_number(*operands: TypedValue) -> ScalarType:
    """The common type of several numbers."""
    if len({number(x) for x in operands}) != 1:
        raise DialectTypeError(f"takes numbers of one dtype, found {', '.join(str(x.type) for x in operands)}: cast them first")
    return number(operands[0])


def same_float(*operands: TypedValue, count: int) -> ScalarType:
    """The common type of ``count`` floats."""
    if len(operands) != count:
        raise DialectTypeError(f"takes {count} operands, found {len(operands)}")
    type_ = same_number(*operands)
    if type_.category != "f":
        raise DialectTypeError(f"takes floats, found {type_}")
    return type_


def element(pointer: TypedValue) -> ScalarType:
    """The type of the elements at ``pointer``."""
    if not isinstance(pointer.type, PointerType):
        raise DialectTypeError(f"takes a pointer, found {pointer.type}")
    return pointer.type.element


def literal(x: TypedValue) -> int:
    """The integer of ``x``, which has to be a literal in the source."""
    if x.literal is None:
        raise DialectTypeError("takes a literal number")
    return x.literal


def constant(type_: ScalarType, value: float) -> TypedValue:
    """``value`` as a constant of ``type_``, which can represent it."""
    return TypedValue(type_, ir.Constant(type_.llvm, value))
