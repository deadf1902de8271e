"""Machine code outside compiled programs, its items shared among the team's threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitgrad.backends.machine import MachineCode
from jitgrad.runtime import native, team
from jitgrad.runtime.pool import address_of


def run_shared(code: MachineCode, words: Sequence[int], items: int, chunk: int) -> None:
    """``code(words, start, stop)`` for all ``items``, ``chunk`` of them at a time, on as many threads as there are.

    What an item computes must not depend on others: which thread does it, and when, is open.
    """
    if not items:
        return
    table = np.array(words, np.int64)
    instruction = np.zeros((1, native.INSTRUCTION_WORDS), np.int64)
    instruction[0, :5] = native.KERNEL, code.address, address_of(table), items, chunk
    team.run(address_of(instruction), 1)
