"""Runs machine code outside compiled programs on the threads of the pool, and unrolls its inner loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject
from jitgrad.core.aval import Array
from jitgrad.eager.buffer_pool import address_of
from jitgrad.runtime.executor import instruction_loop, thread_pool

_MAX_BLOCKS = 16  # an even load on as many threads as share memory well


def run_parallel(
    code: CodeObject, args: Sequence[int | Array], iterations: int, *, min_block: int = 1, multiple_of: int = 1
) -> None:
    """Call ``code(args, start, stop)`` for blocks of all ``iterations``, on any number of threads.

    Iterations must not depend on each other, since their order is not defined. A block has at least ``min_block``
    iterations and, but for the last, a multiple of ``multiple_of``. Arrays are passed as the addresses of their data.
    """
    if not iterations:
        return
    table = np.array([a if isinstance(a, int) else address_of(a) for a in args], np.int64)
    block = max(min_block, -(-iterations // _MAX_BLOCKS))
    instruction = np.zeros((1, instruction_loop.INSTRUCTION_WORDS), np.int64)
    block = -(-block // multiple_of) * multiple_of
    instruction[0, :5] = instruction_loop.KERNEL, code.address, address_of(table), iterations, block
    thread_pool.run(address_of(instruction), 1)


def unrolled(source: str, count: int) -> str:
    """``source`` with each line that contains ``{k}`` repeated for ``k`` from 0 to ``count - 1``."""
    lines = [line.replace("{k}", str(k)) for line in source.splitlines() for k in range(count if "{k}" in line else 1)]
    return "\n".join(lines)
