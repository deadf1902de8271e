"""Loops, local memory and prefetches for every code generator. Import it only when something is
compiled: it imports llvmlite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

WORD: Any = ir.IntType(64)


def word(value: Any) -> Any:
    """A Python integer as a 64-bit constant; an LLVM value unchanged."""
    return ir.Constant(WORD, value) if isinstance(value, int) else value


def local(builder: Any, type_: Any, name: str = "", size: int | None = None) -> Any:
    """Memory of the running function for one value of an LLVM type, or for ``size`` of them.

    It stands before all calls: inlining one of them ends the entry block, and LLVM keeps in registers only what that
    block allocates.
    """
    with builder.goto_entry_block():
        builder.position_at_start(builder.block)
        return builder.alloca(type_, size, name)


@contextmanager
def counted(builder: Any, start: Any, stop: Any, step: Any = 1, hint: Any = None) -> Iterator[Any]:
    """``for i in range(start, stop, step)`` for ``step > 0``; gives i. ``hint``: metadata for
    LLVM's loop passes."""
    counter = local(builder, WORD)
    builder.store(word(start), counter)
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.load(counter)
    builder.cbranch(builder.icmp_signed("<", index, word(stop)), body, end)
    builder.position_at_end(body)
    yield index
    if not builder.block.is_terminated:
        builder.store(builder.add(index, word(step), flags=("nsw",)), counter)
        back = builder.branch(head)
        if hint is not None:
            back.set_metadata("llvm.loop", hint)
    builder.position_at_end(end)


FIRST, SECOND = 3, 2  # levels of the cache, as LLVM numbers them


def prefetch_line(builder: Any, address: Any, level: int, *, write: bool = False) -> None:
    """Start loading the cache line at ``address`` into ``level`` of the cache."""
    byte, half = ir.IntType(8).as_pointer(), ir.IntType(32)
    type_ = ir.FunctionType(ir.VoidType(), [byte, half, half, half])
    function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), type_)
    data = 1
    builder.call(function, [builder.bitcast(address, byte), *(ir.Constant(half, k) for k in (int(write), level, data))])
