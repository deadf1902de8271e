"""The instructions of consecutive native steps, as the native loop reads them (`jitgrad.runtime.executor.instruction_loop`).

What is here is the same for all frames of a program, and found once; a frame adds the addresses of its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitgrad.backends.base import CompiledKernel
from jitgrad.backends.llvm.code_object import CodeObject
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import ArgSlot
from jitgrad.compiler.lowering.lower import Lowered
from jitgrad.runtime.executor import instruction_loop
from jitgrad.runtime.executor.gemm import Call, blas_instruction
from jitgrad.runtime.executor.row_blocking import MOST_CHUNKS, Native, rows_of_chunk, strips
from jitgrad.runtime.executor.tiled_products import tiled_instruction, tiles_pay

Base = Callable[[tuple[Buffer, int]], tuple[int, int]]
Code = int | CodeObject
_REGION = 1 << 48  # apart: memory that is not the same arena, result or input


class InstructionTable:
    """Instructions, each with its words of argument tables that hold all of them one after the other.

    ``base`` says in which region of memory a word lies, and where in it.
    """

    def __init__(self, base: Base) -> None:
        self.words: list[ArgSlot] = []
        self._base = base
        self._instructions: list[tuple[int, Code, int, int, int]] = []  # kind, function, first word, n, grain
        self._natives: list[Native] = []

    def kernel(
        self, lowered: Lowered, kernel: CompiledKernel, words: Sequence[ArgSlot], epilogue_words: Sequence[ArgSlot]
    ) -> None:
        """Launch a kernel, then its epilogue."""
        small = lowered.units <= MOST_CHUNKS * lowered.grain
        entry = Native(lowered.units, lowered.spans if small else None)
        self._add(instruction_loop.KERNEL, kernel.main_code, words, lowered.units, lowered.grain, entry)
        if kernel.epilogue is not None:
            self._add(instruction_loop.CALL, kernel.epilogue_code, epilogue_words, 1, 1, Native(1, None))

    def product(self, call: Call) -> None:
        """Multiply matrices: by tiles where that is faster than BLAS."""
        if tiles_pay(call):
            code, words, units, grain = tiled_instruction(call)
            self._add(instruction_loop.KERNEL, code, words, units, grain, Native(units, call.strip_spans, product=True))
        else:
            kind, address, words = blas_instruction(call)
            self._add(kind, address, words, 1, 1, Native(call.sizes[0], call.strip_spans, product=True))

    def small_products(self, code: CodeObject, words: Sequence[ArgSlot], matrices: int, grain: int) -> None:
        """Multiply many small matrices, ``grain`` of them at a time."""
        self._add(instruction_loop.KERNEL, code, words, matrices, grain, Native(matrices, None))

    def _add(self, kind: int, function: Code, words: Sequence[ArgSlot], n: int, grain: int, entry: Native) -> None:
        self._instructions.append((kind, function, len(self.words), n, grain))
        self._natives.append(entry)
        self.words += words

    @cached_property
    def relocations(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Of the words that are places: which words, in which region, and where in it."""
        moved = [(k, *self._base(w)) for k, w in enumerate(self.words) if not isinstance(w, int)]
        return tuple(np.array([m[k] for m in moved], np.int64) for k in range(3))

    @cached_property
    def _lines(self) -> np.ndarray[Any, Any]:
        """The table, with the number of its first word where the address of the words will stand."""
        # LLVM may still be at work on the code, so its addresses come last
        runs = {first: (last, rows) for first, last, rows in strips(self._natives, self._addresses())}
        lines: list[tuple[int, ...]] = []
        last = rows = 0
        for k, (kind, function, first, n, grain) in enumerate(self._instructions):
            if k in runs:
                last, rows = runs[k]
                lines.append((instruction_loop.STRIP, last - k, 0, rows, rows_of_chunk(rows), 0))
            units = n // rows if k < last and kind == instruction_loop.KERNEL else 0
            lines.append((kind, function if isinstance(function, int) else function.address, first, n, grain, units))
        table = np.zeros((len(lines), instruction_loop.INSTRUCTION_WORDS), np.int64)
        table[:, :6] = lines
        return table

    def rows(self, address: int) -> np.ndarray[Any, Any]:
        """The table for words at ``address``."""
        table = self._lines.copy()
        table[:, 2] = address + 8 * table[:, 2]  # a strip's is not read
        return table

    def _addresses(self) -> Mapping[int, int]:
        """By the id of each buffer that is spoken of, an address that is right relative to the others."""
        found: dict[int, int] = {}
        for entry in self._natives:
            for span in entry.spans or ():
                buffer = span.place[0]
                if id(buffer) not in found:
                    region, offset = self._base((buffer, 0))
                    found[id(buffer)] = region * _REGION + offset
        return found
