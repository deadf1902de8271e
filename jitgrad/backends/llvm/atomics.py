"""Atomic words and calls by address, for the control code of the thread pool and of CUDA programs.

===============================================  ======================================================================
``atomic_load(p, k)``                            ``p[k]``
``atomic_store(p, k, x)``                        ``p[k] = x``
``atomic_add(p, k, x)``                          ``p[k] += x``; the value before
``atomic_replace(p, k, old, new)``               if ``p[k] == old``, make it ``new``; whether it was
``pause()``                                      tell the CPU that this is a spin loop
``call_kernel(function, args, start, stop)``     ``void function(int64_t *args, int64_t start, int64_t stop)``
``call_c(function, first, second, third)``       ``int function(first, second, third)`` of words: also right for C functions
                                                 that take fewer arguments
``call_words(function, words)``                   ``int function(words[0], ..., words[17])``: also right for C functions of
                                                 fewer integers and pointers, of any width
``call_sgemm(function, t, m, n, a, b, c)``       ``cblas_sgemm`` with 64-bit integers, row-major, of (a part of) the product
                                                 that the table ``t`` describes; ``call_dgemm`` is ``cblas_dgemm``
===============================================  ======================================================================

Every atomic operation is sequentially consistent: the thread pool's hand-over is a Dekker pattern
(store mine, load yours), which weaker orders break. Import this module only when something is
compiled: it imports llvmlite.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import binding, ir

from jitgrad.backends.llvm.int_dialect import IntFunction, word_at
from jitgrad.backends.llvm.ir_builder import WORD, word

CALL_WORDS = 18  # arguments of `call_words`: those of cublasSgemmStridedBatched, the longest list that is needed
_INT = ir.IntType(32)
_ORDER = "seq_cst"


def _load(builder: Any, pointer: Any, index: Any) -> Any:
    return builder.load_atomic(word_at(builder, pointer, index), _ORDER, 8)


def _store(builder: Any, pointer: Any, index: Any, value: Any) -> None:
    builder.store_atomic(value, word_at(builder, pointer, index), _ORDER, 8)


def _add(builder: Any, pointer: Any, index: Any, value: Any) -> Any:
    return builder.atomic_rmw("add", word_at(builder, pointer, index), value, _ORDER)


def _replace(builder: Any, pointer: Any, index: Any, old: Any, new: Any) -> Any:
    exchanged = builder.cmpxchg(word_at(builder, pointer, index), old, new, _ORDER, _ORDER)
    return builder.zext(builder.extract_value(exchanged, 1), WORD)


def _pause(builder: Any) -> None:
    machine = binding.get_process_triple().split("-")[0]
    if machine == "x86_64":
        type_ = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), type_), [])
    elif machine in ("aarch64", "arm64"):
        type_ = ir.FunctionType(ir.VoidType(), [_INT])
        builder.call(builder.module.declare_intrinsic("llvm.aarch64.hint", (), type_), [ir.Constant(_INT, 1)])  # YIELD


def _call(builder: Any, function: Any, result: Any, arguments: list[Any]) -> Any:
    type_ = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(function, type_.as_pointer()), arguments)


def _call_kernel(builder: Any, function: Any, args: Any, start: Any, stop: Any) -> None:
    _call(builder, function, ir.VoidType(), [builder.inttoptr(args, WORD.as_pointer()), start, stop])


def _call_c(builder: Any, function: Any, first: Any, second: Any, third: Any) -> Any:
    return builder.sext(_call(builder, function, _INT, [first, second, third]), WORD)


def _call_words(builder: Any, function: Any, words: Any) -> Any:
    """The calling conventions of 64-bit systems pass every integer and pointer as a word, and the caller removes what
    it passed, so that a function ignores the words after its last argument."""
    arguments = [builder.load(word_at(builder, words, k)) for k in range(CALL_WORDS)]
    return builder.sext(_call(builder, function, _INT, arguments), WORD)


def _call_gemm(
    real: Any, bits: int, builder: Any, function: Any, table: Any, m: Any, n: Any, a: Any, b: Any, c: Any
) -> None:
    def entry(k: int) -> Any:
        return builder.load(word_at(builder, table, k))

    def scalar(k: int) -> Any:
        return builder.bitcast(builder.trunc(entry(k), ir.IntType(bits)), real)

    def transposed(k: int) -> Any:
        yes = builder.icmp_unsigned("!=", entry(k), word(0))
        return builder.select(yes, ir.Constant(_INT, 112), ir.Constant(_INT, 111))

    sizes = [ir.Constant(_INT, 101), transposed(3), transposed(4), m, n, entry(2)]  # 101: row-major
    operands = [scalar(5), a, entry(7), b, entry(9), scalar(10), c, entry(12)]
    _call(builder, function, ir.VoidType(), sizes + operands)


ATOMICS: dict[str, IntFunction] = {
    "atomic_load": _load,
    "atomic_store": _store,
    "atomic_add": _add,
    "atomic_replace": _replace,
    "pause": _pause,
    "call_kernel": _call_kernel,
    "call_c": _call_c,
    "call_words": _call_words,
    "call_sgemm": partial(_call_gemm, ir.FloatType(), 32),
    "call_dgemm": partial(_call_gemm, ir.DoubleType(), 64),
}
