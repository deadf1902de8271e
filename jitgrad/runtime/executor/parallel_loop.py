"""Machine code outside compiled programs: items side by side in a loop, and shared among the team's threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject
from jitgrad.eager.buffer_pool import address_of
from jitgrad.runtime.executor import instruction_loop, thread_pool


def run_shared(code: CodeObject, words: Sequence[int], items: int, chunk: int) -> None:
    """``code(words, start, stop)`` for all ``items``, ``chunk`` of them at a time, on as many threads as there are.

    What an item computes must not depend on others: which thread does it, and when, is open.
    """
    if not items:
        return
    table = np.array(words, np.int64)
    instruction = np.zeros((1, instruction_loop.INSTRUCTION_WORDS), np.int64)
    instruction[0, :5] = instruction_loop.KERNEL, code.address, address_of(table), items, chunk
    thread_pool.run(address_of(instruction), 1)


def side_by_side(source: str, count: int) -> str:
    """``source`` with every line that speaks of item ``{k}`` written for items 0 to ``count - 1``, one after the other."""
    lines = [line.replace("{k}", str(k)) for line in source.splitlines() for k in range(count if "{k}" in line else 1)]
    return "\n".join(lines)
