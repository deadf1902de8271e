"""A CUDA driver whose device is emulated: memory of its own, counted work, and kernels by a function."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.errors import CudaError, OutOfMemoryError
from jitgrad.device.cufft import TransformShape
from jitgrad.device.driver import (
    ARGUMENTS,
    ARGUMENTS_SIZE,
    COPY_MEMORY,
    DIRECTIONS,
    END,
    LAUNCH_GRAPH,
    LAUNCH_KERNEL,
    PRODUCTS,
    TRANSFORM_BY_DTYPE,
    TRANSFORM_MEMORY,
    TRANSFORM_STREAM,
    LoadableCode,
    MemoryInfo,
    StartWork,
)

CAPTURE_STREAM = 77
PRODUCTS_HANDLE, CAPTURE_HANDLE = 78, 79
_LAUNCH_FAILED = 719  # CUDA_ERROR_LAUNCH_FAILED
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
    captures: int = 0
    graph_launches: int = 0
    launches: int = 0
    products: int = 0
    transforms: int = 0
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


def _arguments(extra: int) -> list[int]:
    """The words that the list ``extra`` of a launch points to."""
    keys = (ctypes.c_int64 * 5).from_address(extra)
    assert (keys[0], keys[2], keys[4]) == (ARGUMENTS, ARGUMENTS_SIZE, END)
    return list((ctypes.c_int64 * (ctypes.c_int64.from_address(keys[3]).value // 8)).from_address(keys[1]))


def _number_at(address: int, dtype: Dtype) -> Any:
    return np.frombuffer(ctypes.string_at(address, dtype.itemsize), dtype)[0]


class _CFunctions:
    """C functions that call methods of a driver, by the names of CUDA's."""

    def __init__(self, driver: FakeDriver) -> None:
        alive = weakref.proxy(driver)
        self._callbacks = {
            LAUNCH_KERNEL: _c_function(11, lambda *words: alive._launch(*words)),
            COPY_MEMORY: _c_function(4, lambda *words: alive._copy(*words)),
            LAUNCH_GRAPH: _c_function(2, lambda *words: alive._launch_graph(*words)),
            TRANSFORM_STREAM: _c_function(2, lambda plan, stream: alive._plan(plan).use(stream=stream)),
            TRANSFORM_MEMORY: _c_function(2, lambda plan, memory: alive._plan(plan).use(memory=memory)),
        }
        for dtype, name in PRODUCTS.items():
            self._callbacks[name] = _c_function(18, lambda *words, dtype=dtype: alive._multiply(dtype, *words))
        for dtype, name in TRANSFORM_BY_DTYPE.items():
            self._callbacks[name] = _c_function(4, lambda *words, dtype=dtype: alive._transform(dtype, *words))

    def address(self, name: str) -> int:
        return ctypes.cast(self._callbacks[name], ctypes.c_void_p).value or 0


@dataclass(slots=True)
class _Plan:
    """How transforms of ``shape`` run: with the stream and the memory that were set last, as cuFFT does it."""

    shape: TransformShape
    handle: int
    stream: int = -1
    memory: int = 0

    @property
    def work_bytes(self) -> int:
        """As much as a transform takes, and some more."""
        return self.shape.itemsize * prod(self.shape.lengths) * self.shape.batch + 64

    def use(self, stream: int | None = None, memory: int | None = None) -> int:
        self.stream = self.stream if stream is None else stream
        self.memory = self.memory if memory is None else memory
        return 0


def _c_function(arguments: int, function: Callable[..., int]) -> Any:
    """A C function of so many words."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * arguments)(function)


class FakeDriver:
    """Emulates one device with ``total`` bytes of memory; ``counts`` says what it was asked to do.

    Kernels run at once, by ``emulate``. New memory holds a pattern, so that results which depend on
    memory that was never written differ from run to run of a test.
    """

    name = "emulated device"

    version: tuple[int, int] = 12, 8

    def __init__(self, emulate: Emulate, total: int = 1 << 32, capability: tuple[int, int] = (8, 0)) -> None:
        self.capability = capability
        self.counts: Counts = Counts()
        self.memory: FakeMemory = FakeMemory()
        self._emulate = emulate
        self._total = total
        self._used = 0
        self._next = FIRST_ADDRESS
        self._codes: list[LoadableCode] = []
        self._functions = _CFunctions(self)
        self._thread = threading.local()  # its ``error`` is what the last C function of the thread raised
        self._capture_lock = threading.Lock()
        self._captured: list[Callable[[], Any]] | None = None
        self._graphs: dict[int, list[Callable[[], Any]]] = {}
        self.libraries_lock: threading.RLock = threading.RLock()
        self._plans: list[_Plan] = []
        self._events: dict[int, float] = {}
        self.waits: list[tuple[int, int]] = []  # (stream, event)

    # --- memory -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        if self._used + nbytes > self._total:
            raise OutOfMemoryError("cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory")
        self.counts.allocations += 1
        memory = np.full(nbytes, 0xA5, np.uint8)
        address = self._next
        self._next += -(-(nbytes + _GAP) // _ALIGNMENT) * _ALIGNMENT
        self._used += nbytes
        self.memory.starts.append(address)
        self.memory.arrays.append(memory)
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
        self._codes.append(code)
        return len(self._codes)

    def local_bytes(self, function: int) -> int:
        return 0

    # --- calls by address -------------------------------------------------------------------------

    def bind(self) -> None:
        """The emulated device has no context."""

    def function(self, name: str) -> int:
        return self._functions.address(name)

    def products(self) -> int:
        return PRODUCTS_HANDLE

    def check(self, function: str, status: int) -> None:
        error: BaseException | None = getattr(self._thread, "error", None)
        self._thread.error = None
        if error is not None:
            raise error
        assert not status, f"{function} returned {status}"

    def _guarded(self, work: Callable[[], Any], stream: int) -> int:
        """What a C function returns that starts ``work`` in ``stream``: errors wait for `check`."""
        try:
            if stream == CAPTURE_STREAM:
                assert self._captured is not None, "work for a stream that captures nothing"
                self._captured.append(work)
            else:
                assert stream == 0, f"no stream {stream}"
                work()
        except BaseException as error:
            self._thread.error = error
            return _LAUNCH_FAILED
        return 0

    def _launch(self, function: int, *words: int) -> int:
        blocks, threads, stream, extra = words[0], words[3], words[7], words[9]
        args = _arguments(extra)
        return self._guarded(partial(self._run_kernel, function, blocks, threads, args), stream)

    def _run_kernel(self, function: int, blocks: int, threads: int, args: Sequence[int]) -> None:
        if not (0 < blocks < 1 << 31 and 0 < threads <= 1024):
            raise CudaError(f"cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE (1): {blocks} blocks of {threads} threads")
        self.counts.launches += 1
        self._emulate(self._codes[function - 1], blocks, threads, args, self.memory)

    def _copy(self, address: int, source: int, nbytes: int, stream: int) -> int:
        return self._guarded(partial(self.copy_on_device, address, source, nbytes), stream)

    def _multiply(self, dtype: Dtype, handle: int, *words: int) -> int:
        stream = {PRODUCTS_HANDLE: 0, CAPTURE_HANDLE: CAPTURE_STREAM}[handle]
        return self._guarded(partial(self._run_product, dtype, words), stream)

    def _run_product(self, dtype: Dtype, words: Sequence[int]) -> None:
        """A product of matrices whose columns lie one after the other, as cuBLAS takes them."""
        self.counts.products += 1
        right_turned, left_turned, n, m, k = words[:5]
        assert [_number_at(words[i], dtype) for i in (5, 12)] == [1, 0]
        right, left, out = [words[i : i + 3] for i in (6, 9, 13)]
        a = self._matrices(dtype, left, (words[16], m, k), left_turned)
        b = self._matrices(dtype, right, (words[16], k, n), right_turned)
        with np.errstate(all="ignore"):
            np.matmul(a, b, out=self._matrices(dtype, out, (words[16], m, n), 0))

    def _matrices(self, dtype: Dtype, words: Sequence[int], shape: Shape, turned: int) -> np.ndarray[Any, Any]:
        """The matrices of one operand as an array over device memory, with rows where cuBLAS has columns.

        ``words``: address, elements from one column to the next, and from one matrix to the next.
        """
        size, (address, leading, step) = dtype.itemsize, words
        strides = (1, leading) if turned else (leading, 1)
        steps = (step, *strides)
        last = sum((length - 1) * step for length, step in zip(shape, steps, strict=True))
        memory = self.memory.span(address, (last + 1) * size)
        return np.ndarray(shape, dtype, memory.data, 0, [size * s for s in steps])

    # --- transforms -------------------------------------------------------------------------------

    has_transforms = True

    def transform_plan(self, shape: TransformShape) -> _Plan:
        self._plans.append(plan := _Plan(shape, len(self._plans) + 1))
        return plan

    def _plan(self, handle: int) -> _Plan:
        return self._plans[handle - 1]

    def _transform(self, dtype: Dtype, handle: int, source: int, target: int, direction: int) -> int:
        plan = self._plan(handle)
        assert plan.shape.itemsize == dtype.itemsize
        work = partial(self._run_transform, dtype, plan.shape, source, target, direction, plan.memory, plan.work_bytes)
        return self._guarded(work, plan.stream)

    def _run_transform(
        self, dtype: Dtype, shape: TransformShape, source: int, target: int, direction: int, memory: int, nbytes: int
    ) -> None:
        """Transforms of elements at the plan's distances; like cuFFT it leaves anything in its memory."""
        self.counts.transforms += 1
        self.memory.span(memory, nbytes)[:] = 0x5A
        steps = [shape.stride * prod(shape.lengths[k + 1 :]) for k in range(len(shape.lengths))]
        strides = [shape.itemsize * step for step in (shape.distance, *steps)]
        places = (shape.batch, *shape.lengths)
        size = shape.itemsize * prod(places)
        arrays = [np.ndarray(places, dtype, self.memory.span(at, size).data, 0, strides) for at in (source, target)]
        axes = range(1, len(places))
        inverse = direction == DIRECTIONS[True]
        arrays[1][...] = np.fft.ifftn(arrays[0], axes=axes, norm="forward") if inverse else np.fft.fftn(arrays[0], axes=axes)

    # --- graphs -----------------------------------------------------------------------------------

    def capture(self, record: StartWork, products: bool) -> int:
        with self._capture_lock:
            self.counts.captures += 1
            self._captured = []
            try:
                record(CAPTURE_STREAM, CAPTURE_HANDLE if products else 0)
                self._graphs[graph := self.counts.captures] = self._captured
            finally:
                self._captured = None
        return graph

    def _launch_graph(self, graph: int, stream: int) -> int:
        self.counts.graph_launches += 1
        return self._guarded(lambda: [work() for work in self._graphs[graph]], stream)

    def destroy_graph(self, graph: int) -> None:
        del self._graphs[graph]

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
