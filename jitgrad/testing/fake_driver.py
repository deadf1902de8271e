"""A CUDA driver whose device is emulated: memory of its own, counted work, and kernels by a function."""

from __future__ import annotations

import ctypes
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitgrad.core.errors import CudaError, OutOfMemoryError
from jitgrad.device.driver import LoadableCode, Matrix, MemoryInfo, Product

FIRST_ADDRESS = 1 << 56  # no host pointer is so large, so one that reaches the device is found
_ALIGNMENT = 256
_GAP = 4096  # unmapped bytes between allocations: an access beyond the end of one is found


@dataclass(slots=True)
class Counts:
    """How often each kind of work was asked for."""

    allocations: int = 0
    frees: int = 0
    copies_to_device: int = 0
    copies_to_host: int = 0
    copies_on_device: int = 0
    fills: int = 0
    loads: int = 0
    launches: int = 0
    products: int = 0
    synchronizations: int = 0


@dataclass(slots=True)
class FakeMemory:
    """Device memory as host arrays, by device address."""

    starts: list[int] = field(default_factory=list)
    arrays: list[np.ndarray[Any, Any]] = field(default_factory=list)

    def allocation(self, address: int) -> tuple[np.ndarray[Any, Any], int]:
        """The bytes of the allocation that ``address`` lies in, and its offset. Raises CudaError if
        there is none."""
        k = bisect_right(self.starts, address) - 1
        if k < 0 or address - self.starts[k] > len(self.arrays[k]):
            where = "a host address" if address < FIRST_ADDRESS else "not allocated"
            raise CudaError(f"CUDA_ERROR_ILLEGAL_ADDRESS: {address:#x} is {where}")
        return self.arrays[k], address - self.starts[k]

    def span(self, address: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Exactly ``nbytes`` bytes from ``address`` on."""
        memory, start = self.allocation(address)
        if start + nbytes > len(memory):
            raise CudaError(f"CUDA_ERROR_ILLEGAL_ADDRESS: {nbytes} bytes at {address:#x}, {len(memory) - start} exist")
        return memory[start : start + nbytes]


Emulate = Callable[[Any, int, int, Sequence[int], FakeMemory], None]
"""Runs a kernel: (code, blocks, threads, args, memory)."""


class FakeDriver:
    """Emulates one device with ``total`` bytes of memory; ``counts`` says what it was asked to do.

    Kernels run at once, by ``emulate``. New memory holds a pattern, so that results which depend on
    memory that was never written differ from run to run of a test.
    """

    name = "emulated device"

    version = 12, 8

    def __init__(self, emulate: Emulate, total: int = 1 << 32, capability: tuple[int, int] = (8, 0)) -> None:
        self.capability = capability
        self.counts = Counts()
        self.memory = FakeMemory()
        self._emulate = emulate
        self._total = total
        self._used = 0
        self._next = FIRST_ADDRESS
        self._functions: list[LoadableCode] = []
        self._events: dict[int, float] = {}
        self.waits: list[tuple[int, int]] = []  # (stream, event)

    # --- memory -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        if self._used + nbytes > self._total:
            raise OutOfMemoryError("cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory")
        self.counts.allocations += 1
        address = self._next
        self._next += -(-(nbytes + _GAP) // _ALIGNMENT) * _ALIGNMENT
        self._used += nbytes
        self.memory.starts.append(address)
        self.memory.arrays.append(np.full(nbytes, 0xA5, np.uint8))
        return address

    def free(self, address: int) -> None:
        k = bisect_right(self.memory.starts, address) - 1
        if k < 0 or self.memory.starts[k] != address:
            raise CudaError(f"cuMemFree_v2 failed: CUDA_ERROR_INVALID_VALUE (1): {address:#x} was not allocated")
        self.counts.frees += 1
        self._used -= len(self.memory.arrays[k])
        del self.memory.starts[k], self.memory.arrays[k]

    def copy_to_device(self, address: int, host: int, nbytes: int) -> None:
        self.counts.copies_to_device += 1
        ctypes.memmove(self.memory.span(address, nbytes).ctypes.data, host, nbytes)

    def copy_to_host(self, host: int, address: int, nbytes: int) -> None:
        self.counts.copies_to_host += 1
        ctypes.memmove(host, self.memory.span(address, nbytes).ctypes.data, nbytes)

    def copy_on_device(self, address: int, source: int, nbytes: int) -> None:
        self.counts.copies_on_device += 1
        self.memory.span(address, nbytes)[:] = self.memory.span(source, nbytes)

    def fill(self, address: int, pattern: int, width: int, count: int) -> None:
        self.counts.fills += 1
        dtype = np.dtype(f"u{width}")
        self.memory.span(address, width * count).view(dtype)[:] = np.array(pattern & ((1 << 8 * width) - 1), dtype)

    def memory_info(self) -> MemoryInfo:
        return MemoryInfo(self._total - self._used, self._total)

    # --- kernels ----------------------------------------------------------------------------------

    def attribute(self, number: int) -> int:
        """The attributes that are asked for: multiprocessors, registers and shared memory of an A100."""
        return {16: 108, 8: 49152, 97: 166912, 82: 65536}[number]

    def load(self, code: LoadableCode) -> int:
        self.counts.loads += 1
        self._functions.append(code)
        return len(self._functions)

    def launch(self, function: int, blocks: int, threads: int, args: Sequence[int]) -> None:
        if not (0 < blocks < 1 << 31 and 0 < threads <= 1024):
            raise CudaError(f"cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE (1): {blocks} blocks of {threads} threads")
        self.counts.launches += 1
        self._emulate(self._functions[function - 1], blocks, threads, args, self.memory)

    def multiply(self, product: Product) -> None:
        self.counts.products += 1
        m, k, n = product.sizes
        left, right = self._matrices(product, product.left, m, k), self._matrices(product, product.right, k, n)
        with np.errstate(all="ignore"):
            np.matmul(left, right, out=self._matrices(product, product.out, m, n))

    def _matrices(self, product: Product, matrix: Matrix, rows: int, columns: int) -> np.ndarray[Any, Any]:
        """The matrices of one operand of ``product`` as an array over device memory."""
        size = product.dtype.itemsize
        strides = (1, matrix.leading) if matrix.transposed else (matrix.leading, 1)
        shape, steps = (product.batch, rows, columns), (matrix.step, *strides)
        last = sum((length - 1) * step for length, step in zip(shape, steps, strict=True))
        memory = self.memory.span(matrix.address, (last + 1) * size)
        return np.ndarray(shape, product.dtype, memory.data, 0, [size * s for s in steps])

    def synchronize(self) -> None:
        self.counts.synchronizations += 1

    # --- events -----------------------------------------------------------------------------------

    def record_event(self) -> int:
        event = len(self._events) + 1
        self._events[event] = time.perf_counter()
        return event

    def wait_in_stream(self, stream: int, event: int) -> None:
        self.waits.append((stream, event))

    def milliseconds_between(self, start: int, end: int) -> float:
        return 1e3 * (self._events[end] - self._events[start])

    def destroy_event(self, event: int) -> None:
        del self._events[event]
