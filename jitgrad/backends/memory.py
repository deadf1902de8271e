"""Scalar functions of kernel source that deal with addresses: `jitgrad.backends.intrinsics` lists them.

Import this module only when a kernel is compiled: it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.errors import TypingError

from jitgrad.backends.llvm import vector_bits
from jitgrad.backends.streams import LINE_BITS

DTYPES: dict[str, Any] = {
    "f16": types.float32,  # the float32 that equals it
    "f32": types.float32,
    "f64": types.float64,
    "i8": types.int8,
    "i16": types.int16,
    "i32": types.int32,
    "i64": types.int64,
    "u8": types.uint8,
    "u16": types.uint16,
    "u32": types.uint32,
    "u64": types.uint64,
    "bool": types.boolean,
}

# numba 0.68 cannot store through a pointer to booleans, and has no float16 on CPUs
IN_MEMORY: dict[str, Any] = {**DTYPES, "bool": types.uint8, "f16": types.uint16}


def intrinsic(typed: Callable[..., Any]) -> Any:
    """``numba.extending.intrinsic``, with a type that mypy can see."""
    return extending.intrinsic(typed)


def plain(kind: Any) -> Any:
    """The type without numba's literal wrapping (``Literal[int](3)`` is an int64)."""
    return types.unliteral(kind)


@intrinsic
def at(typing: Any, pointer: Any, index: Any) -> Any:
    """``pointer + index`` in elements."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), build


@intrinsic
def stream(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
    """``pointer[index] = value``, which nobody reads soon; ``pointer[0]`` lies at the start of a cache line."""
    kind = plain(value)
    if pointer.dtype != (types.uint8 if kind == types.boolean else kind):
        raise TypingError(f"stream({pointer}, {index}, {value}): cast the value first")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store = builder.store(context.cast(builder, args[2], kind, pointer.dtype), builder.gep(args[0], [args[1]]))
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, kind), build


def _prefetch(builder: Any, pointer: Any, index: Any) -> None:
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
    place = builder.bitcast(builder.gep(pointer, [index]), byte)
    read, locality, data = (ir.Constant(word, k) for k in (0, 2, 1))
    builder.call(function, [place, read, locality, data])


@intrinsic
def prefetch(typing: Any, pointer: Any, index: Any) -> Any:
    """Start loading the cache line of ``pointer[index]`` into the second-level cache."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _prefetch(builder, *args)
        return context.get_dummy_value()

    return types.void(pointer, types.int64), build


@intrinsic
def prefetch_beside(typing: Any, pointer: Any, index: Any) -> Any:
    """`prefetch` for a loop with streaming stores: nothing where they are ordinary ones.

    With AVX-512 (Sapphire Rapids) SwiGLU takes 0.7 of the time, other loops the same; with AVX2 (Zen 3) up to 1.2.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if vector_bits() >= LINE_BITS:
            _prefetch(builder, *args)
        return context.get_dummy_value()

    return types.void(pointer, types.int64), build


def _scratch(name: str, element: Any) -> Any:
    """Memory of the running chunk, on the stack; ``count`` is a literal number of elements."""
    def typed(typing: Any, count: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral):
            raise TypingError(f"{name}({count}): takes a literal number of elements")
        size = count.literal_value

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return cgutils.alloca_once(builder, context.get_value_type(element), size)

        return types.CPointer(element)(count), build

    typed.__name__ = name
    return extending.intrinsic(prefer_literal=True)(typed)


def _add_row(typing: Any, to: Any, row: Any, count: Any) -> Any:
    """LLVM takes short loops apart before it looks for vectors in them, and adds their elements one by one."""
    if to != row or not isinstance(to, types.CPointer) or not isinstance(count, types.IntegerLiteral):
        raise TypingError(f"add_row({to}, {row}, {count}): takes two pointers to one dtype and a literal number")
    element, size = to.dtype, count.literal_value

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(context.get_value_type(element), size).as_pointer()
        target, source = (builder.bitcast(p, kind) for p in args[:2])
        align = element.bitwidth // 8
        a, b = builder.load(target, align=align), builder.load(source, align=align)
        total = builder.fadd(a, b) if isinstance(element, types.Float) else builder.add(a, b)
        builder.store(total, target, align=align)
        return context.get_dummy_value()

    return types.void(to, row, count), build


_add_row.__name__ = "add_row"
add_row = extending.intrinsic(prefer_literal=True)(_add_row)

SCRATCH: dict[str, Any] = {f"scratch_{name}": _scratch(f"scratch_{name}", kind) for name, kind in IN_MEMORY.items()}

MEMORY = (at, stream, prefetch, prefetch_beside, add_row)
