"""What the worker team's compiled source needs beyond arithmetic: atomic words and calls by address.

Import this module only when something is compiled: it imports numba. Words are int64; a place is a pointer
and an index. Every atomic operation is sequentially consistent: the team's hand-over is a Dekker pattern
(store mine, load yours), which weaker orders break.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import types

from jitgrad.backends.memory import intrinsic

_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_WORDS = types.CPointer(types.int64)
_ORDER = "seq_cst"


@intrinsic
def words(typing: Any, address: Any) -> Any:
    """The int64 words at ``address``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], _WORD.as_pointer())

    return _WORDS(types.int64), build


@intrinsic
def address(typing: Any, pointer: Any, index: Any) -> Any:
    """The address of ``pointer[index]`` as an integer."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(builder.gep(args[0], [args[1]]), _WORD)

    return types.int64(_WORDS, types.int64), build


@intrinsic
def atomic_load(typing: Any, pointer: Any, index: Any) -> Any:
    """``pointer[index]``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.gep(args[0], [args[1]]), _ORDER, 8)

    return types.int64(_WORDS, types.int64), build


@intrinsic
def atomic_store(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
    """``pointer[index] = value``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], builder.gep(args[0], [args[1]]), _ORDER, 8)
        return context.get_dummy_value()

    return types.void(_WORDS, types.int64, types.int64), build


@intrinsic
def atomic_add(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
    """``pointer[index] += value``; the value before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.gep(args[0], [args[1]]), args[2], _ORDER)

    return types.int64(_WORDS, types.int64, types.int64), build


@intrinsic
def atomic_replace(typing: Any, pointer: Any, index: Any, old: Any, new: Any) -> Any:
    """If ``pointer[index] == old``, make it ``new``; whether it was."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], _ORDER, _ORDER), 1)

    return types.boolean(_WORDS, types.int64, types.int64, types.int64), build


@intrinsic
def pause(typing: Any) -> Any:
    """Tell the CPU that this is a spin loop."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        machine = binding.get_process_triple().split("-")[0]
        if machine == "x86_64":
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        elif machine in ("aarch64", "arm64"):
            kind = ir.FunctionType(ir.VoidType(), [_INT])
            hint = builder.module.declare_intrinsic("llvm.aarch64.hint", (), kind)
            builder.call(hint, [ir.Constant(_INT, 1)])  # YIELD
        return context.get_dummy_value()

    return types.void(), build


def _call(builder: Any, function: Any, result: Any, arguments: list[Any]) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)


@intrinsic
def call_kernel(typing: Any, function: Any, words: Any, start: Any, stop: Any) -> Any:
    """``void function(int64_t *words, int64_t start, int64_t stop)``; both addresses as integers."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = builder.inttoptr(args[1], _WORD.as_pointer())
        _call(builder, args[0], ir.VoidType(), [table, args[2], args[3]])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), build


@intrinsic
def call_c(typing: Any, function: Any, first: Any, second: Any, third: Any) -> Any:
    """``int function(first, second, third)`` of words: also right for C functions that take fewer arguments."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sext(_call(builder, args[0], _INT, args[1:]), _WORD)

    return types.int64(*[types.int64] * 4), build


def _gemm(name: str, real: Any, bits: int) -> Any:
    """``cblas_?gemm`` with 64-bit integers, row-major, of (a part of) the product that a table describes."""

    def typed(typing: Any, function: Any, table: Any, m: Any, n: Any, a: Any, b: Any, c: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            function, table, m, n, a, b, c = args

            def word(k: int) -> Any:
                return builder.load(builder.gep(table, [ir.Constant(_WORD, k)]))

            def scalar(k: int) -> Any:
                return builder.bitcast(builder.trunc(word(k), ir.IntType(bits)), real)

            def transposed(k: int) -> Any:
                yes = builder.icmp_unsigned("!=", word(k), ir.Constant(_WORD, 0))
                return builder.select(yes, ir.Constant(_INT, 112), ir.Constant(_INT, 111))

            row_major = ir.Constant(_INT, 101)
            sizes = [row_major, transposed(3), transposed(4), m, n, word(2)]
            operands = [scalar(5), a, word(7), b, word(9), scalar(10), c, word(12)]
            _call(builder, function, ir.VoidType(), sizes + operands)
            return context.get_dummy_value()

        return types.void(types.int64, _WORDS, *[types.int64] * 5), build

    typed.__name__ = name
    return intrinsic(typed)


call_sgemm = _gemm("call_sgemm", ir.FloatType(), 32)
call_dgemm = _gemm("call_dgemm", ir.DoubleType(), 64)

_ATOMICS = (words, address, atomic_load, atomic_store, atomic_add, atomic_replace)
_CALLS = (pause, call_kernel, call_c, call_sgemm, call_dgemm)

NAMES: dict[str, Any] = {f._name: f for f in (*_ATOMICS, *_CALLS)}
