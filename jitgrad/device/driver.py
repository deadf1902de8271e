"""What the rest of jitgrad needs of a CUDA driver: memory, kernels, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np

from jitgrad.core.aval import Dtype
from jitgrad.device.cufft import TransformShape

DEFAULT_STREAM = 1  # as __cuda_array_interface__ and DLPack number the stream that orders all work

# C functions that programs call by address (`Driver.function`)
LAUNCH_KERNEL, COPY_MEMORY, LAUNCH_GRAPH = "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuGraphLaunch"
# of cuBLAS, the products of matrices by their dtypes
PRODUCTS: Mapping[Dtype, str] = {
    np.dtype(np.float32): "cublasSgemmStridedBatched",
    np.dtype(np.float64): "cublasDgemmStridedBatched",
    np.dtype(np.complex64): "cublasCgemmStridedBatched",
    np.dtype(np.complex128): "cublasZgemmStridedBatched",
}
PRODUCT_FUNCTIONS = frozenset(PRODUCTS.values())
# of cuFFT, the transforms of complex numbers by their dtypes, and what comes before each
TRANSFORM_BY_DTYPE: Mapping[Dtype, str] = {
    np.dtype(np.complex64): "cufftExecC2C",
    np.dtype(np.complex128): "cufftExecZ2Z",
}
TRANSFORM_STREAM, TRANSFORM_MEMORY = "cufftSetStream", "cufftSetWorkArea"
TRANSFORM_FUNCTIONS = frozenset({*TRANSFORM_BY_DTYPE.values(), TRANSFORM_STREAM, TRANSFORM_MEMORY})
DIRECTIONS = {False: -1, True: 1}  # by whether a transform is the inverse one
# of the list ``extra`` of cuLaunchKernel: the address of the arguments follows, that of their size, and the end
ARGUMENTS, ARGUMENTS_SIZE, END = 1, 2, 0

StartWork = Callable[[int, int], None]
"""Starts work: (the stream that it must use, the handle of cuBLAS on that stream)."""


class LoadableCode(Protocol):
    """A kernel to load: PTX for a device; drivers that emulate one look at its source instead."""

    @property
    def ptx(self) -> str: ...

    @property
    def entry(self) -> str: ...


class TransformHandle(Protocol):
    """How cuFFT computes a transform: its number there, and the bytes of memory that each execution needs."""

    @property
    def handle(self) -> int: ...

    @property
    def work_bytes(self) -> int: ...


class MemoryInfo(NamedTuple):
    """Bytes of a device's memory."""

    free: int
    total: int


class Driver(Protocol):
    """One device and the functions on it.

    All work is ordered by one stream, the legacy default stream: so memory may be used again as
    soon as the last tensor over it is gone, whichever threads used it, and other libraries on that
    stream see finished results. Methods may be called from any thread. Every failure is a
    CudaError; `allocate` raises OutOfMemoryError if there is no memory.
    """

    name: str
    capability: tuple[int, int]

    @property
    def version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports."""

    def allocate(self, nbytes: int) -> int:
        """The address of new device memory, aligned to 256 bytes."""

    def free(self, address: int) -> None:
        """Give back what `allocate` returned, once the device has done all earlier work."""

    def copy_to_device(self, address: int, host: int, nbytes: int) -> None:
        """Copy from the host address ``host``, which may be overwritten after the return."""

    def copy_to_host(self, host: int, address: int, nbytes: int) -> None:
        """Copy to the host address ``host``, after all earlier work; it is there at the return."""

    def copy_on_device(self, address: int, source: int, nbytes: int) -> None:
        """Copy between two ranges of device memory that do not overlap."""

    def fill(self, address: int, pattern: int, width: int, count: int) -> None:
        """Write ``count`` times the low ``width`` bytes (1, 2 or 4) of ``pattern``."""

    def memory_info(self) -> MemoryInfo:
        """The device's free and total memory."""

    def attribute(self, number: int) -> int:
        """A device attribute by its CUdevice_attribute number."""

    def load(self, code: LoadableCode) -> int:
        """A handle of the function ``code.entry``."""

    def local_bytes(self, function: int) -> int:
        """Bytes of memory of its own that each thread of the function has because registers did not do."""

    def bind(self) -> None:
        """Prepare this thread for calls of C functions."""

    def function(self, name: str) -> int:
        """The address of a C function of the driver, of cuBLAS or of cuFFT, by its name in the library."""

    def products(self) -> int:
        """The handle of cuBLAS on the default stream. `libraries_lock` is held while it is in use."""

    @property
    def has_transforms(self) -> bool:
        """Whether there is cuFFT."""

    def transform_plan(self, shape: TransformShape) -> TransformHandle:
        """How cuFFT computes such transforms. `libraries_lock` is held while it is in use."""

    @property
    def libraries_lock(self) -> AbstractContextManager[object]:
        """The lock of `products` and of plans, each of which serves one thread at a time."""

    def check(self, function: str, status: int) -> None:
        """Raise the error for what the C function named ``function`` returned, unless that is 0."""

    def capture(self, record: StartWork, products: bool) -> int:
        """A handle of a graph of the work that ``record`` starts, which does not run now. ``products``: whether it
        uses cuBLAS."""

    def destroy_graph(self, graph: int) -> None:
        """Give ``graph`` back."""

    def synchronize(self) -> None:
        """Wait until all work is done; errors of kernels come to light here."""

    def record_event(self) -> int:
        """A new event, which happens when all work so far is done."""

    def wait_in_stream(self, stream: int, event: int) -> None:
        """Work that ``stream`` gets from now on starts after ``event``."""

    def milliseconds_between(self, start: int, end: int) -> float:
        """The time between two events; waits for the second."""

    def destroy_event(self, event: int) -> None:
        """Give ``event`` back."""
