"""Instructions that are written as text are those that llvmlite writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from llvmlite import binding, ir

from jitgrad.backends.llvm.text_builder import TextBuilder

I32, I64, F32, F64 = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
PARAMETERS = {"i": I64, "j": I64, "k": I32, "x": F64, "y": F64, "z": F32, "p": F64.as_pointer(), "b": ir.IntType(1)}
INTEGERS = "add sub mul sdiv udiv srem urem and_ or_ xor shl lshr ashr".split()
CASES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    **{name: lambda b, v, name=name: getattr(b, name)(v["i"], v["j"]) for name in INTEGERS},
    **{name: lambda b, v, name=name: getattr(b, name)(v["x"], v["y"]) for name in ("fadd", "fsub", "fmul", "fdiv")},
    **{f"signed {s}": lambda b, v, s=s: b.icmp_signed(s, v["i"], v["j"]) for s in ("==", "!=", "<", "<=", ">", ">=")},
    **{f"unsigned {s}": lambda b, v, s=s: b.icmp_unsigned(s, v["i"], v["j"]) for s in ("==", "<", ">=")},
    **{f"ordered {s}": lambda b, v, s=s: b.fcmp_ordered(s, v["x"], v["y"]) for s in ("==", "!=", "<", ">=", "ord")},
    **{f"unordered {s}": lambda b, v, s=s: b.fcmp_unordered(s, v["x"], v["y"]) for s in ("==", "!=", "<", "uno")},
    "nsw": lambda b, v: b.add(v["i"], v["j"], flags=("nsw",)),
    "reassoc": lambda b, v: b.fadd(v["x"], v["y"], flags=("reassoc",)),
    "not": lambda b, v: b.not_(v["i"]),
    "neg": lambda b, v: b.neg(v["i"]),
    "fneg": lambda b, v: b.fneg(v["x"]),
    "select": lambda b, v: b.select(v["b"], v["x"], v["y"]),
    "constant": lambda b, v: b.fmul(v["x"], ir.Constant(F64, 0.1)),
    "trunc": lambda b, v: b.trunc(v["i"], I32),
    "zext": lambda b, v: b.zext(v["k"], I64),
    "sext": lambda b, v: b.sext(v["k"], I64),
    "fpext": lambda b, v: b.fpext(v["z"], F64),
    "fptrunc": lambda b, v: b.fptrunc(v["x"], F32),
    "fptosi": lambda b, v: b.fptosi(v["x"], I64),
    "fptoui": lambda b, v: b.fptoui(v["x"], I64),
    "sitofp": lambda b, v: b.sitofp(v["i"], F64),
    "uitofp": lambda b, v: b.uitofp(v["i"], F64),
    "bitcast": lambda b, v: b.bitcast(v["x"], I64),
    "no cast": lambda b, v: b.bitcast(v["x"], F64),
    "inttoptr": lambda b, v: b.inttoptr(v["i"], F64.as_pointer()),
    "ptrtoint": lambda b, v: b.ptrtoint(v["p"], I64),
    "load": lambda b, v: b.load(v["p"]),
    "aligned load": lambda b, v: b.load(v["p"], align=4),
    "store": lambda b, v: b.store(v["x"], v["p"]),
    "aligned store": lambda b, v: b.store(v["x"], v["p"], align=16),
    "gep": lambda b, v: b.gep(v["p"], [v["i"]]),
    "local": lambda b, v: b.load(b.alloca(F64)),
    "vector": lambda b, v: b.fcmp_ordered("<", *[ir.Constant(ir.VectorType(F32, 4), [0.0] * 4)] * 2),
    "call": lambda b, v: b.call(b.module.declare_intrinsic("llvm.fabs.f64", (), ir.FunctionType(F64, [F64])), [v["x"]]),
    "call by address": lambda b, v: b.call(
        b.inttoptr(v["i"], ir.FunctionType(ir.VoidType(), [I64]).as_pointer()), [v["j"]]
    ),
}  # fmt: skip


def _text(builder_type: Any, emit: Callable[[Any, dict[str, Any]], Any]) -> str:
    """The function as LLVM prints it, with its values numbered in order."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*PARAMETERS.values()]), "f")
    builder = builder_type(function.append_basic_block("entry"))
    emit(builder, dict(zip(PARAMETERS, function.args, strict=True)))
    builder.ret_void()
    parsed = str(binding.parse_assembly(str(module)))
    names: dict[str, str] = {}
    return re.sub(r'%(?:"[^"]*"|[-\w$.]+)', lambda found: names.setdefault(found[0], f"%v{len(names)}"), parsed)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_llvmlites(name: str) -> None:
    assert _text(TextBuilder, CASES[name]) == _text(ir.IRBuilder, CASES[name])


def _control_flow(b: Any, v: dict[str, Any]) -> None:
    with b.if_then(v["b"], likely=False):
        b.store(v["x"], v["p"])
    with b.if_else(b.icmp_signed("<", v["i"], v["j"])) as (yes, no):
        with yes:
            b.store(v["y"], v["p"]).set_metadata("nontemporal", b.module.add_metadata([ir.Constant(I32, 1)]))
        with no, b.goto_entry_block():
            b.alloca(F64)


def test_blocks_and_metadata_are_llvmlites() -> None:
    text = _text(TextBuilder, _control_flow)

    assert text == _text(ir.IRBuilder, _control_flow)
    assert "!prof" in text
    assert "!nontemporal" in text


def test_operands_of_two_types_are_refused() -> None:
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [*PARAMETERS.values()]), "f")
    builder = TextBuilder(function.append_basic_block())
    v = dict(zip(PARAMETERS, function.args, strict=True))

    with pytest.raises(ValueError, match="add takes operands of one type, found i64 and i32"):
        builder.add(v["i"], v["k"])
    with pytest.raises(ValueError, match="select takes values of one type"):
        builder.select(v["b"], v["x"], v["z"])
    with pytest.raises(TypeError, match="cannot store float"):
        builder.store(v["z"], v["p"])
