"""Loads, stores and addresses in kernel source: `jitgrad.backends.llvm.intrinsics` lists the
functions.

Import this module only when a kernel is compiled: it imports llvmlite.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm import ir_builder
from jitgrad.backends.llvm.casts import as_index, emit_cast
from jitgrad.backends.llvm.nontemporal import LINE_BITS
from jitgrad.backends.llvm.target import fuses, vector_bits
from jitgrad.backends.llvm.types import (
    BOOL,
    IN_MEMORY,
    U8,
    DialectFunction,
    DialectTypeError,
    PointerType,
    ScalarType,
    TypedValue,
    element,
    literal,
)


def element_address(builder: Any, pointer: TypedValue, index: TypedValue) -> Any:
    """The address of element ``index``."""
    element(pointer)
    return builder.gep(pointer.ir, [as_index(builder, index)])


def emit_load(builder: Any, pointer: TypedValue, index: TypedValue) -> TypedValue:
    """``pointer[index]``; a bool comes as a u8, a float16 as its bits."""
    return TypedValue(element(pointer), builder.load(element_address(builder, pointer, index)))


def element_at(builder: Any, table: TypedValue, position: TypedValue) -> TypedValue:
    """``table[position]`` at a computed position, of memory that the kernel does not write."""
    return emit_load(builder, table, position)


def load_between(
    builder: Any, pointer: TypedValue, index: TypedValue, position: TypedValue, low: TypedValue, high: TypedValue
) -> TypedValue:
    """``pointer[index]`` if ``low <= position < high``, else 0; memory elsewhere is not read.

    It is a branch, of which LLVM makes loads under a mask: a select of addresses would be a gather.
    """
    type_, start = element(pointer), builder.block
    inside, end = builder.append_basic_block("inside"), builder.append_basic_block("end")
    at = as_index(builder, position)
    condition = builder.icmp_signed("<", at, as_index(builder, high))
    if low.literal != 0:
        condition = builder.and_(builder.icmp_signed(">=", at, as_index(builder, low)), condition)
    builder.cbranch(condition, inside, end)
    builder.position_at_end(inside)
    loaded = emit_load(builder, pointer, index).ir
    builder.branch(end)
    builder.position_at_end(end)
    result = builder.phi(type_.llvm)
    result.add_incoming(ir.Constant(type_.llvm, 0), start)
    result.add_incoming(loaded, inside)
    return TypedValue(type_, result)


def as_element(builder: Any, value: TypedValue, type_: ScalarType) -> Any:
    """``value`` as it is stored: an integer is truncated to the element's size, a float has to be
    of its dtype."""
    if value.type == type_:
        return value.ir
    whole = isinstance(value.type, ScalarType) and value.type.category != "f" and type_.category != "f"
    if not whole or (value.type == BOOL and type_ != U8):
        raise DialectTypeError(f"{value.type} is stored in memory of {type_}: cast it first")
    return emit_cast(builder, value, type_).ir


def emit_store(builder: Any, pointer: TypedValue, index: TypedValue, value: TypedValue) -> Any:
    """``pointer[index] = value``; the instruction."""
    return builder.store(as_element(builder, value, element(pointer)), element_address(builder, pointer, index))


def at(builder: Any, pointer: TypedValue, index: TypedValue) -> TypedValue:
    """``pointer + index`` in elements."""
    return TypedValue(pointer.type, element_address(builder, pointer, index))


def stream(builder: Any, pointer: TypedValue, index: TypedValue, value: TypedValue) -> None:
    """``pointer[index] = value`` past the caches; ``pointer[0]`` is at the start of a cache line."""
    done = emit_store(builder, pointer, index, value)
    done.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


def prefetch(builder: Any, pointer: TypedValue, index: TypedValue) -> None:
    """Start loading the cache line of ``pointer[index]`` into the second-level cache."""
    ir_builder.prefetch_line(builder, element_address(builder, pointer, index), ir_builder.SECOND)


def prefetch_beside(builder: Any, pointer: TypedValue, index: TypedValue) -> None:
    """`prefetch` in a loop with non-temporal stores; does nothing where those are ordinary ones.

    With AVX-512 (Sapphire Rapids) SwiGLU takes 0.7 of the time, other loops the same; with AVX2
    (Zen 3) up to 1.2.
    """
    if vector_bits() >= LINE_BITS:
        prefetch(builder, pointer, index)


def _scratch(builder: Any, count: TypedValue, *, type_: ScalarType) -> TypedValue:
    """Memory of the running block, on the stack; ``count`` is a literal number of elements."""
    return TypedValue(PointerType(type_), ir_builder.local(builder, type_.llvm, size=literal(count)))


def add_row(builder: Any, to: TypedValue, row: TypedValue, count: TypedValue) -> None:
    """``to[j] += row[j]`` for ``j < count``, a literal, in one vector.

    LLVM unrolls short loops before it vectorises, and would add the elements one by one.
    """
    type_, size = element(to), literal(count)
    if element(row) != type_:
        raise DialectTypeError(f"takes two pointers to one dtype, found {to.type} and {row.type}")
    vector = ir.VectorType(type_.llvm, size).as_pointer()
    target, source = (builder.bitcast(p.ir, vector) for p in (to, row))
    align = type_.bits // 8
    a, b = builder.load(target, align=align), builder.load(source, align=align)
    total = builder.fadd(a, b) if type_.category == "f" else builder.add(a, b)
    builder.store(total, target, align=align)


def subtract_row(builder: Any, to: TypedValue, factor: TypedValue, row: TypedValue, count: TypedValue) -> None:
    """``to[j] -= factor * row[j]`` for ``j < count``, a literal, in one vector and with one rounding."""
    type_, size = element(to), literal(count)
    if element(row) != type_ or factor.type != type_ or type_.category != "f":
        raise DialectTypeError(f"takes pointers to one float dtype and a factor, found {to.type}, {factor.type} and {row.type}")
    vector = ir.VectorType(type_.llvm, size)
    target, source = (builder.bitcast(p.ir, vector.as_pointer()) for p in (to, row))
    align = type_.bits // 8
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.fneg(factor.ir), ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), size), [0] * size)
    factors = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)
    signature = ir.FunctionType(vector, [vector] * 3)
    fma = builder.module.declare_intrinsic(f"llvm.{'fma' if fuses(builder) else 'fmuladd'}.v{size}f{type_.bits}", (), signature)
    total = builder.call(fma, [factors, builder.load(source, align=align), builder.load(target, align=align)])
    builder.store(total, target, align=align)


MEMORY: dict[str, DialectFunction] = {
    **{f.__name__: f for f in (at, element_at, load_between, stream, prefetch, prefetch_beside, add_row, subtract_row)},
    **{f"scratch_{name}": partial(_scratch, type_=type_) for name, type_ in IN_MEMORY.items()},
}
