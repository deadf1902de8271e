"""Writes LLVM instructions as text at once.

llvmlite's builder makes an object of each instruction, whose text it formats later: that took two thirds of the time in which
kernels are written. This one takes llvmlite's types, constants, functions and blocks, and stands wherever its builder stands;
what is not here, rare instructions, llvmlite writes. Import it only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

_BIT, _VOID = ir.IntType(1), ir.VoidType()
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class TextInstruction(ir.Value):  # type: ignore[misc]
    """An instruction, and the value that it computes."""

    __slots__ = ("opname", "operands", "reference", "text", "type")

    def __init__(self, type_: Any, opname: str, operands: Sequence[Any], reference: str, text: str) -> None:
        self.type: Any = type_
        self.opname: str = opname
        self.operands: Sequence[Any] = operands
        self.reference: str = reference
        self.text: str = text

    def get_reference(self) -> str:
        return self.reference

    def set_metadata(self, name: str, node: Any) -> None:
        self.text = f"{self.text}, !{name} {node.get_reference()}"

    def __str__(self) -> str:
        return self.text


class Jump(TextInstruction):
    """A branch at the end of the block ``parent``."""

    __slots__ = ("parent",)

    def __init__(self, parent: Any, operands: Sequence[Any], where: str) -> None:
        super().__init__(_VOID, "br", operands, "", f"br {where}")
        self.parent: Any = parent

    def set_weights(self, weights: Sequence[int]) -> None:
        """How often each of two blocks is the next."""
        numbers = [ir.Constant(ir.IntType(32), weight) for weight in weights]
        self.set_metadata("prof", self.parent.module.add_metadata(["branch_weights", *numbers]))


def _binary(opname: str) -> Any:
    def emit(self: Any, a: Any, b: Any, name: str = "", flags: Sequence[str] = ()) -> Any:  # llvmlite passes empty names
        type_ = a.type
        if type_ is not b.type and type_ != b.type:
            raise ValueError(f"{opname} takes operands of one type, found {type_} and {b.type}")
        how = f"{opname} {' '.join(flags)}" if flags else opname
        return self._value(type_, opname, (a, b), f"{how} {type_} {a.get_reference()}, {b.get_reference()}")

    return emit


def _cast(opname: str) -> Any:
    def emit(self: Any, x: Any, type_: Any) -> Any:
        if x.type is type_ or x.type == type_:
            return x
        return self._value(type_, opname, (x,), f"{opname} {x.type} {x.get_reference()} to {type_}")

    return emit


def _compare(opname: str, prefix: str) -> Any:
    def emit(self: Any, symbol: str, a: Any, b: Any) -> Any:
        condition = symbol  # such as "uno"
        if symbol in _COMPARISONS:
            condition = _COMPARISONS[symbol] if opname == "icmp" and symbol in ("==", "!=") else prefix + _COMPARISONS[symbol]
        type_ = ir.VectorType(_BIT, a.type.count) if isinstance(a.type, ir.VectorType) else _BIT
        return self._value(type_, opname, (a, b), f"{opname} {condition} {a.type} {a.get_reference()}, {b.get_reference()}")

    return emit


class TextBuilder(ir.IRBuilder):  # type: ignore[misc]
    """A builder whose frequent instructions are text from the start.

    Their values are called ``%$1``, ``%$2`` and so on in each function: llvmlite gives no such names.
    """

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    sdiv, udiv, srem, urem = _binary("sdiv"), _binary("udiv"), _binary("srem"), _binary("urem")
    fadd, fsub, fmul, fdiv = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    fptrunc, fpext, bitcast = _cast("fptrunc"), _cast("fpext"), _cast("bitcast")
    fptosi, fptoui, sitofp, uitofp = _cast("fptosi"), _cast("fptoui"), _cast("sitofp"), _cast("uitofp")
    inttoptr, ptrtoint = _cast("inttoptr"), _cast("ptrtoint")
    icmp_signed, icmp_unsigned = _compare("icmp", "s"), _compare("icmp", "u")
    fcmp_ordered, fcmp_unordered = _compare("fcmp", "o"), _compare("fcmp", "u")

    def _value(self, type_: Any, opname: str, operands: Sequence[Any], text: str) -> TextInstruction:
        """Insert an instruction with a value."""
        scope = self._block.scope
        count = scope.__dict__["values"] = scope.__dict__.get("values", 0) + 1
        line = TextInstruction(type_, opname, operands, reference := f"%${count}", f"{reference} = {text}")
        self._block.instructions.insert(self._anchor, line)
        self._anchor += 1
        return line

    def fneg(self, x: Any) -> TextInstruction:
        return self._value(x.type, "fneg", (x,), f"fneg {x.type} {x.get_reference()}")

    def select(self, condition: Any, a: Any, b: Any) -> TextInstruction:
        if a.type is not b.type and a.type != b.type:
            raise ValueError(f"select takes values of one type, found {a.type} and {b.type}")
        text = f"select {condition.type} {condition.get_reference()}, {a.type} {a.get_reference()}, {b.type} {b.get_reference()}"
        return self._value(a.type, "select", (condition, a, b), text)

    def load(self, address: Any, align: int | None = None) -> TextInstruction:
        pointer = address.type
        type_, aligned = pointer.pointee, "" if align is None else f", align {align}"
        return self._value(type_, "load", (address,), f"load {type_}, {pointer} {address.get_reference()}{aligned}")

    def store(self, value: Any, address: Any, align: int | None = None) -> TextInstruction:
        pointer, aligned = address.type, "" if align is None else f", align {align}"
        if pointer.pointee is not value.type and pointer.pointee != value.type:
            raise TypeError(f"cannot store {value.type} at {pointer}")
        text = f"store {value.type} {value.get_reference()}, {pointer} {address.get_reference()}{aligned}"
        line = TextInstruction(_VOID, "store", (value, address), "", text)
        self._insert(line)
        return line

    def gep(self, address: Any, indices: Sequence[Any]) -> Any:
        pointer = address.type
        if len(indices) != 1 or isinstance(pointer.pointee, ir.PointerType):
            return super().gep(address, indices)
        (index,) = indices
        text = f"getelementptr {pointer.pointee}, {pointer} {address.get_reference()}, {index.type} {index.get_reference()}"
        return self._value(pointer, "getelementptr", (address, index), text)

    def call(self, function: Any, arguments: Sequence[Any], name: Any = "", **options: Any) -> Any:
        if options or type(function) not in (ir.Function, TextInstruction) or function.type.pointee.var_arg:
            return super().call(function, arguments, name, **options)
        called = function.type.pointee
        types, result = called.args, called.return_type
        if any([a.type is not t and a.type != t for a, t in zip(arguments, types, strict=True)]):
            return super().call(function, arguments)  # which says what is wrong
        given = ", ".join([f"{t} {a.get_reference()}" for a, t in zip(arguments, types, strict=True)])
        text = f"call {result} {function.get_reference()}({given})"  # functions that code calls have C's convention
        if result != _VOID:
            return self._value(result, "call", (function, *arguments), text)
        line = TextInstruction(_VOID, "call", (function, *arguments), "", text)
        self._insert(line)
        return line

    def branch(self, block: Any) -> Any:
        return self._set_terminator(Jump(self._block, (block,), f"label {block.get_reference()}"))

    def cbranch(self, condition: Any, yes: Any, no: Any) -> Any:
        where = f"i1 {condition.get_reference()}, label {yes.get_reference()}, label {no.get_reference()}"
        return self._set_terminator(Jump(self._block, (condition, yes, no), where))
