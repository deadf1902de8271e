"""Functions for kernel source that multiplies matrices in memory of its own.

=============================================  =====================================================================
``memory_f32(n)``, ``memory_f64(n)``           a pointer to ``n`` elements from malloc, at the start of a cache line
``release(p)``                                 give back such memory
``call_code(function, stop, word, ...)``       machine code ``function(words, 0, stop)``; words are integers or pointers
``call_blas(f, at, bt, m, n, k, a, lda, b, ldb, more, c, ldc)``  ``cblas_sgemm`` or ``cblas_dgemm`` with 64-bit
                                               integers at ``f``, row-major; ``c`` becomes the product, or if ``more``,
                                               ``c`` plus the product
=============================================  =====================================================================

Import this module only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.casts import emit_cast
from jitgrad.backends.llvm.ir_builder import WORD, local, word
from jitgrad.backends.llvm.types import F32, F64, I64, DialectFunction, PointerType, ScalarType, TypedValue, element

_LINE = 64
_BYTE = ir.IntType(8)
_INT = ir.IntType(32)
_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112  # of cblas.h


def _c_function(builder: Any, name: str, type_: Any) -> Any:
    return builder.module.globals.get(name) or ir.Function(builder.module, type_, name)


def _as_word(builder: Any, value: TypedValue) -> Any:
    """A pointer, an integer or a condition as a word."""
    return builder.ptrtoint(value.ir, WORD) if isinstance(value.type, PointerType) else emit_cast(builder, value, I64).ir


def _memory(builder: Any, count: TypedValue, *, type_: ScalarType) -> TypedValue:
    """The address that malloc gave stands in the word before the memory."""
    nbytes = builder.mul(_as_word(builder, count), word(type_.bits // 8))
    malloc = _c_function(builder, "malloc", ir.FunctionType(_BYTE.as_pointer(), [WORD]))
    given = builder.call(malloc, [builder.add(nbytes, word(_LINE))])
    address = builder.ptrtoint(given, WORD)
    with builder.if_then(builder.icmp_unsigned("==", address, word(0))):
        builder.call(_c_function(builder, "abort", ir.FunctionType(ir.VoidType(), [])), [])
    shift = builder.sub(word(_LINE), builder.and_(address, word(_LINE - 1)))  # at least 8: malloc aligns to words
    start = builder.gep(given, [shift])
    builder.store(address, builder.bitcast(builder.gep(start, [word(-8)]), WORD.as_pointer()))
    return TypedValue(PointerType(type_), builder.bitcast(start, type_.llvm.as_pointer()))


def _release(builder: Any, pointer: TypedValue) -> None:
    start = builder.bitcast(pointer.ir, _BYTE.as_pointer())
    given = builder.load(builder.bitcast(builder.gep(start, [word(-8)]), WORD.as_pointer()))
    free = _c_function(builder, "free", ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer()]))
    builder.call(free, [builder.inttoptr(given, _BYTE.as_pointer())])


def _call_code(builder: Any, function: TypedValue, stop: TypedValue, *words: TypedValue) -> None:
    table = local(builder, WORD, size=len(words))
    for k, value in enumerate(words):
        builder.store(_as_word(builder, value), builder.gep(table, [word(k)]))
    type_ = ir.FunctionType(ir.VoidType(), [WORD.as_pointer(), WORD, WORD])
    builder.call(builder.inttoptr(function.ir, type_.as_pointer()), [table, word(0), _as_word(builder, stop)])


def _call_blas(
    builder: Any, function: TypedValue, left: TypedValue, right: TypedValue, m: TypedValue, n: TypedValue, k: TypedValue,
    a: TypedValue, lda: TypedValue, b: TypedValue, ldb: TypedValue, more: TypedValue, c: TypedValue, ldc: TypedValue,
) -> None:  # fmt: skip
    real = element(c).llvm

    def chosen(condition: TypedValue, yes: Any, no: Any) -> Any:
        return builder.select(builder.icmp_unsigned("!=", _as_word(builder, condition), word(0)), yes, no)

    transposed = [chosen(x, ir.Constant(_INT, _TRANSPOSED), ir.Constant(_INT, _AS_IT_IS)) for x in (left, right)]
    beta = chosen(more, ir.Constant(real, 1.0), ir.Constant(real, 0.0))
    arguments = [ir.Constant(_INT, _ROW_MAJOR), *transposed, *(_as_word(builder, x) for x in (m, n, k))]
    arguments += [ir.Constant(real, 1.0), a.ir, _as_word(builder, lda), b.ir, _as_word(builder, ldb)]
    arguments += [beta, c.ir, _as_word(builder, ldc)]
    type_ = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(builder.inttoptr(function.ir, type_.as_pointer()), arguments)


BLOCK_PRODUCTS: dict[str, DialectFunction] = {
    "memory_f32": partial(_memory, type_=F32),
    "memory_f64": partial(_memory, type_=F64),
    "release": _release,
    "call_code": _call_code,
    "call_blas": _call_blas,
}
