"""Calls of C functions of the CUDA driver, cuBLAS and cuFFT in a table, which a native loop makes one after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from jitgrad.backends.llvm.code_object import compile_control_code
from jitgrad.core.aval import Dtype
from jitgrad.device.driver import (
    ARGUMENTS,
    ARGUMENTS_SIZE,
    COPY_MEMORY,
    DIRECTIONS,
    END,
    LAUNCH_GRAPH,
    LAUNCH_KERNEL,
    PRODUCT_FUNCTIONS,
    PRODUCTS,
    TRANSFORM_BY_DTYPE,
    TRANSFORM_FUNCTIONS,
    TRANSFORM_MEMORY,
    TRANSFORM_STREAM,
    Driver,
)
from jitgrad.eager.buffer_pool import address_of
from jitgrad.runtime.executor import fastcall
from jitgrad.runtime.executor.gemm import Gemm

_ROW_WORDS = 19  # a function, and the words of `jitgrad.backends.llvm.atomics`' call_words
_HEADER_WORDS = 8
_EXTRA_WORDS = 6  # before the arguments of a launch: the list ``extra`` of cuLaunchKernel, and the size that it refers to
_NO_TRANSPOSE, _TRANSPOSE = 0, 1
# factors of the product, and of what the result was
_FACTORS: dict[Dtype, np.ndarray[Any, Any]] = {dtype: np.array([1, 0], dtype) for dtype in PRODUCTS}

# A table: the addresses of its own memory and of the bases, those of the relocation's arrays where, region and offset, and
# their length; the status of the last call, and how many were made. Then a row per call.
_SOURCE = """
def run_calls(unused, table, count):
    memory = table[0]
    bases = table[1]
    where = table[2]
    region = table[3]
    offset = table[4]
    for k in range(table[5]):
        memory[where[k]] = bases[region[k]] + offset[k]
    status = 0
    k = 0
    row = table + 64
    while k < count and status == 0:
        status = call_words(row[0], row + 8)
        row += 152
        k += 1
    table[6] = status
    table[7] = k
"""


class Address(NamedTuple):
    """An address that each call of a program has anew: ``offset`` bytes after the base of a region of memory."""

    region: int
    offset: int


Word = int | Address


@dataclass(frozen=True, slots=True)
class DriverCall:
    """A call of the C function ``function`` with ``words``; the loop stops if it does not return 0.

    Attributes:
        args: of a launch, the words of the kernel; their place in memory follows ``words``.
    """

    function: str
    words: tuple[Word, ...]
    args: tuple[Word, ...] | None = None


def launch_call(function: int, blocks: int, threads: int, args: Sequence[Word], stream: Word) -> DriverCall:
    """Start a kernel on a grid of one axis."""
    return DriverCall(LAUNCH_KERNEL, (function, blocks, 1, 1, threads, 1, 1, 0, stream, 0), tuple(args))


def copy_call(target: Word, source: Word, nbytes: int, stream: Word) -> DriverCall:
    """Copy in the memory of the device."""
    return DriverCall(COPY_MEMORY, (target, source, nbytes, stream))


def graph_call(graph: Word, stream: Word) -> DriverCall:
    """Start the work that was captured."""
    return DriverCall(LAUNCH_GRAPH, (graph, stream))


def product_call(gemm: Gemm, operands: Sequence[Word], handle: Word) -> DriverCall:
    """Start a product. cuBLAS takes columns for rows, so it gets the operands in exchanged order."""
    (m, k, n), (left, right, out) = gemm.sizes, operands
    one, zero = (address_of(_FACTORS[gemm.dtype][i:]) for i in (0, 1))
    forms = [_TRANSPOSE if matrix.transposed else _NO_TRANSPOSE for matrix in (gemm.right, gemm.left)]
    a, b, c = gemm.batch.strides
    factors = (right, gemm.right.leading, b, left, gemm.left.leading, a)
    words = (handle, *forms, n, m, k, one, *factors, zero, out, gemm.out.leading, c, gemm.batch.length)
    return DriverCall(PRODUCTS[gemm.dtype], words)


def transform_calls(
    plan: int, dtype: Dtype, operands: Sequence[Word], inverse: bool, memory: Word, stream: Word
) -> list[DriverCall]:
    """Start a transform of the first operand to the second, which needs ``memory`` meanwhile."""
    return [
        DriverCall(TRANSFORM_STREAM, (plan, stream)),
        DriverCall(TRANSFORM_MEMORY, (plan, memory)),
        DriverCall(TRANSFORM_BY_DTYPE[dtype], (plan, *operands, DIRECTIONS[inverse])),
    ]


@cache
def _loop() -> Callable[[int, int], None]:
    """``run(table, count)``: makes the first ``count`` calls of a table, without the GIL."""
    code = compile_control_code(_SOURCE, "run_calls", "thread_pool")
    args, binding = (ctypes.c_int64 * 1)(), (ctypes.c_int64 * 2)()
    binding[1] = ctypes.addressof(args)
    return fastcall.bind(code.address, binding, code, args)

_Words = np.ndarray[Any, np.dtype[np.int64]]


class CallTable:
    """Calls, ready for any bases of their regions.

    Attributes:
        products, transforms: whether there are matrix products, or Fourier transforms, among them.
    """

    def __init__(self, calls: Sequence[DriverCall], driver: Driver) -> None:
        self.calls: tuple[DriverCall, ...] = tuple(calls)
        self.driver = driver
        self.products: bool = any(call.function in PRODUCT_FUNCTIONS for call in calls)
        self.transforms: bool = any(call.function in TRANSFORM_FUNCTIONS for call in calls)
        sizes = [0 if call.args is None else _EXTRA_WORDS + len(call.args) for call in calls]
        # where the list ``extra`` of each launch begins
        self._extras = list(accumulate(sizes, initial=_HEADER_WORDS + _ROW_WORDS * len(calls)))
        self._own: list[tuple[int, int]] = []  # words that are addresses in the table: their numbers, and those of the words
        words = list(self._layout())
        relocated = [(k, *word) for k, word in enumerate(words) if isinstance(word, Address)]
        self.relocations: tuple[_Words, ...] = tuple(np.array([row[i] for row in relocated], np.int64) for i in range(3))
        self.words: _Words = np.array([0 if isinstance(word, Address) else word for word in words], np.int64)

    def _layout(self) -> Iterator[Word]:
        """All words: the header, the rows, then the arguments of each launch."""
        yield from [0] * _HEADER_WORDS
        for k, call in enumerate(self.calls):
            words = list(call.words)
            if call.args is not None:
                self._own.append((_HEADER_WORDS + _ROW_WORDS * k + 1 + len(words), self._extras[k]))
                words.append(0)
            yield self.driver.function(call.function)
            yield from words
            yield from [0] * (_ROW_WORDS - 1 - len(words))
        for k, call in enumerate(self.calls):
            if call.args is not None:
                start = self._extras[k]
                self._own += [(start + 1, start + _EXTRA_WORDS), (start + 3, start + _EXTRA_WORDS - 1)]
                yield from (ARGUMENTS, 0, ARGUMENTS_SIZE, 0, END, 8 * len(call.args), *call.args)

    def argument_words(self, call: int) -> slice:
        """Where the arguments of the launch with that number are among the words."""
        args = self.calls[call].args
        assert args is not None
        start = self._extras[call] + _EXTRA_WORDS
        return slice(start, start + len(args))

    def bound(self, bases: np.ndarray[Any, Any]) -> BoundTable:
        """The table for one frame, whose ``bases`` it reads at each run."""
        memory = self.words.copy()
        start = address_of(memory)
        for k, target in self._own:
            memory[k] = start + 8 * target
        addresses = [start, address_of(bases), *(address_of(a) if a.size else 0 for a in self.relocations)]
        memory[: len(addresses) + 1] = [*addresses, len(self.relocations[0])]
        return BoundTable(self, memory, bases)


class BoundTable:
    """A table in the memory of one frame."""

    def __init__(self, table: CallTable, memory: np.ndarray[Any, Any], bases: np.ndarray[Any, Any]) -> None:
        self.table = table
        self.memory = memory
        self._bases = bases
        self._run = partial(_loop(), address_of(memory), len(table.calls))
        self._words = memory.data
        self._lock = table.driver.libraries_lock if table.products or table.transforms else None

    def run(self) -> None:
        """Make all calls; the thread is bound to the driver."""
        if self._lock is None:
            self._run()
        else:
            with self._lock:
                self._run()
        if status := self._words[6]:
            self.table.driver.check(self.table.calls[self._words[7] - 1].function, status)
