"""The functions of kernel source that only CUDA has, as instructions for NVPTX. This module imports
llvmlite.

==========================  ===================================================================
``threads(256)``            first statement: the kernel runs in blocks of so many threads
``thread()``, ``block()``   the number of the thread in its block, and of the block in the grid
``barrier()``               all threads of the block wait for each other, and see what they wrote
``shuffle_xor(x, k)``       ``x`` of the thread of the same warp whose number differs in the bits ``k``
``shared_f32(8)`` ...       pointer to so many elements (a literal) that the block shares
``scratch_f32(4)`` ...      pointer to so many elements (a literal) of the thread, in registers
``is_aligned(p, 16)``       whether the address is a multiple of so many bytes (a literal)
``copy_vector(p, q, 4)``    ``p[k] = q[k]`` for so many elements (a literal), in one access; both
                            addresses are multiples of its size
==========================  ===================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from llvmlite import ir

from jitgrad.backends.cuda.schedule import WARP
from jitgrad.backends.llvm.casts import emit_cast
from jitgrad.backends.llvm.ir_builder import local
from jitgrad.backends.llvm.types import (
    BOOL,
    I64,
    IN_MEMORY,
    DialectFunction,
    DialectTypeError,
    PointerType,
    ScalarType,
    TypedValue,
    element,
    literal,
    number,
)

_WORD, _LONG, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()
_WHOLE_WARP = -1
_VECTOR_BYTES = 16
_SHARED = 3  # LLVM's address space


def _declared(module: Any, name: str, result: Any, parameters: list[Any], *, convergent: bool = False) -> Any:
    """The intrinsic of that name; a convergent one may not be moved into a branch."""
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(result, parameters), name)
    for attribute in ("nounwind", *(["convergent"] if convergent else [])):
        function.attributes.add(attribute)
    return function


def _register(builder: Any, *, name: str, limit: int) -> TypedValue:
    """A register of the thread. ``limit`` tells LLVM that the number is below it, so not negative."""
    call = builder.call(_declared(builder.module, f"llvm.nvvm.read.ptx.sreg.{name}.x", _WORD, []), [])
    call.set_metadata("range", builder.module.add_metadata([ir.Constant(_WORD, 0), ir.Constant(_WORD, limit)]))
    return TypedValue(I64, builder.zext(call, I64.llvm))


def _threads(builder: Any, count: TypedValue) -> None:
    builder.module.block_threads = literal(count)


def _barrier(builder: Any) -> None:
    builder.call(_declared(builder.module, "llvm.nvvm.barrier0", _VOID, [], convergent=True), [])


def _shuffle_word(builder: Any, x: Any, bits: Any) -> Any:
    name = "llvm.nvvm.shfl.sync.bfly.i32"
    function = _declared(builder.module, name, _WORD, [_WORD] * 4, convergent=True)
    return builder.call(function, [ir.Constant(_WORD, _WHOLE_WARP), x, bits, ir.Constant(_WORD, WARP - 1)])


def _shuffle_xor(builder: Any, x: TypedValue, lanes: TypedValue) -> TypedValue:
    type_, bits = number(x), ir.Constant(_WORD, literal(lanes))
    if type_.category != "f" and type_.bits < 64:
        wide = emit_cast(builder, x, I64).ir
        word = _shuffle_word(builder, builder.trunc(wide, _WORD), bits)
        if type_ == BOOL:
            return TypedValue(BOOL, builder.icmp_unsigned("!=", word, ir.Constant(_WORD, 0)))
        return TypedValue(type_, word if type_.bits == 32 else builder.trunc(word, type_.llvm))
    if type_.bits == 32:
        return TypedValue(type_, builder.bitcast(_shuffle_word(builder, builder.bitcast(x.ir, _WORD), bits), type_.llvm))
    whole = builder.bitcast(x.ir, _LONG)
    half = ir.Constant(_LONG, 32)
    low = _shuffle_word(builder, builder.trunc(whole, _WORD), bits)
    high = _shuffle_word(builder, builder.trunc(builder.lshr(whole, half), _WORD), bits)
    joined = builder.or_(builder.zext(low, _LONG), builder.shl(builder.zext(high, _LONG), half))
    return TypedValue(type_, builder.bitcast(joined, type_.llvm))


def _shared(builder: Any, count: TypedValue, *, type_: ScalarType) -> TypedValue:
    memory = ir.ArrayType(type_.llvm, literal(count))
    name = f"shared{len(builder.module.shared)}"
    variable = ir.GlobalVariable(builder.module, memory, name, addrspace=_SHARED)
    variable.linkage, variable.align = "internal", _VECTOR_BYTES
    variable.initializer = ir.Constant(memory, ir.Undefined)
    builder.module.shared.append(literal(count) * type_.bits // 8)
    first = builder.bitcast(variable, type_.llvm.as_pointer(_SHARED))
    return TypedValue(PointerType(type_), builder.addrspacecast(first, type_.llvm.as_pointer()))


def _scratch(builder: Any, count: TypedValue, *, type_: ScalarType) -> TypedValue:
    memory = local(builder, type_.llvm, size=literal(count))
    memory.align = _VECTOR_BYTES
    return TypedValue(PointerType(type_), memory)


def _is_aligned(builder: Any, pointer: TypedValue, count: TypedValue) -> TypedValue:
    element(pointer)
    rest = builder.and_(builder.ptrtoint(pointer.ir, _LONG), ir.Constant(_LONG, literal(count) - 1))
    return TypedValue(BOOL, builder.icmp_unsigned("==", rest, ir.Constant(_LONG, 0)))


def _copy_vector(builder: Any, to: TypedValue, source: TypedValue, count: TypedValue) -> None:
    type_, size = element(to), literal(count)
    if element(source) != type_:
        raise DialectTypeError(f"takes two pointers to one dtype, found {to.type} and {source.type}")
    vector, align = ir.VectorType(type_.llvm, size), size * type_.bits // 8
    if align > _VECTOR_BYTES or align & (align - 1):
        raise DialectTypeError(f"copies up to {_VECTOR_BYTES} bytes, a power of two, found {align}")
    target, place = (builder.bitcast(p.ir, vector.as_pointer()) for p in (to, source))
    builder.store(builder.load(place, align=align), target, align=align)


SIMT: Mapping[str, DialectFunction] = {
    "threads": _threads,
    "thread": partial(_register, name="tid", limit=1024),
    "block": partial(_register, name="ctaid", limit=2**31 - 1),
    "barrier": _barrier,
    "shuffle_xor": _shuffle_xor,
    "is_aligned": _is_aligned,
    "copy_vector": _copy_vector,
    **{f"shared_{name}": partial(_shared, type_=type_) for name, type_ in IN_MEMORY.items()},
    **{f"scratch_{name}": partial(_scratch, type_=type_) for name, type_ in IN_MEMORY.items()},
}

