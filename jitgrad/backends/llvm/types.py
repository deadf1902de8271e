"""What values of kernel source are: numbers of a dtype, which never change it unasked, and pointers to numbers.

Import this module only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from llvmlite import ir

_FLOATS = {32: ir.FloatType(), 64: ir.DoubleType()}


class DialectTypeError(Exception):
    """An operation was asked for on kinds that it does not take; whoever translates the source says where."""


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
    """Where numbers of the kind ``element`` lie."""

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
    """A value of LLVM and what it is."""

    kind: IRType
    ir: Any

    @property
    def literal(self) -> int | None:
        """The integer, if the source writes it out."""
        return self.ir.constant if isinstance(self.ir, ir.Constant) and isinstance(self.ir.constant, int) else None


DialectFunction: TypeAlias = Callable[..., TypedValue | None]
"""Emits a call in kernel source: ``(builder, *values)`` to its value. Raises DialectTypeError for values it does not take."""


def number(found: TypedValue) -> ScalarType:
    """The kind of ``found``, which has to be a number."""
    if not isinstance(found.kind, ScalarType):
        raise DialectTypeError(f"takes numbers, found {found.kind}")
    return found.kind


def same_number(*found: TypedValue) -> ScalarType:
    """The one kind of several numbers."""
    if len({number(x) for x in found}) != 1:
        raise DialectTypeError(f"takes numbers of one dtype, found {', '.join(str(x.kind) for x in found)}: cast them first")
    return number(found[0])


def same_float(*found: TypedValue, count: int) -> ScalarType:
    """The one kind of ``count`` floats."""
    if len(found) != count:
        raise DialectTypeError(f"takes {count} operands, found {len(found)}")
    kind = same_number(*found)
    if kind.category != "f":
        raise DialectTypeError(f"takes floats, found {kind}")
    return kind


def element(pointer: TypedValue) -> ScalarType:
    """The kind of what ``pointer`` points to."""
    if not isinstance(pointer.kind, PointerType):
        raise DialectTypeError(f"takes a pointer, found {pointer.kind}")
    return pointer.kind.element


def literal(found: TypedValue) -> int:
    """The integer that the source writes out."""
    if found.literal is None:
        raise DialectTypeError("takes a literal number")
    return found.literal


def constant(kind: ScalarType, value: float) -> TypedValue:
    """``value``, which the kind can represent, as a constant."""
    return TypedValue(kind, ir.Constant(kind.llvm, value))
