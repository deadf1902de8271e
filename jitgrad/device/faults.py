"""What kernels find wrong with values: indices out of bounds, singular matrices. The host learns of it when it reads values."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import ArgumentError, IndexingError, JitgradError, MatrixError
from jitgrad.device.driver import Driver
from jitgrad.eager.buffer_pool import address_of


class WordMemory(Protocol):
    """Of `jitgrad.device.cuda_device.CudaDevice` what faults need."""

    driver: Driver

    def full(self, shape: Shape, value: Any, dtype: Dtype) -> DeviceArray:
        """A new array of copies of ``value``."""

    def copy_into(self, target: DeviceArray, source: Any) -> None:
        """Copy an array, of the device or of the host."""


class Fault(NamedTuple):
    """What may be wrong with the values that a kernel reads."""

    error: type[JitgradError]
    text: str


OUT_OF_BOUNDS = Fault(IndexingError, "an index is out of bounds")
SINGULAR = Fault(MatrixError, "Singular matrix")
NOT_POSITIVE = Fault(MatrixError, "Matrix is not positive definite")
NEGATIVE_POWER = Fault(
    ArgumentError, "integers to negative integer powers are no integers; convert one of the two to float"
)


class Faults:
    """Kernels that found values wrong. They note it in memory of the device, which is looked at when values are read.

    Waiting for each kernel would cost more than all of them.
    """

    WORDS = 256  # one for each thread of a block, so that no two threads of one write the same

    def __init__(self, device: WordMemory) -> None:
        self._device = device
        self._memory: DeviceArray | None = None
        self._numbers: dict[tuple[str, Fault], int] = {}  # by what such a kernel does
        self._pending = False

    def expect(self) -> None:
        """Such a kernel starts."""
        self._pending = True

    def register(self, what: str, fault: Fault) -> tuple[int, int]:
        """Of a kernel that does ``what``: the address of the words, and the number that it writes to one of them."""
        if self._memory is None:
            self._memory = self._device.full((self.WORDS,), 0, np.dtype(np.int64))
        return self._memory.address, self._numbers.setdefault((what, fault), len(self._numbers) + 1)

    def check(self) -> None:
        """Raise the error of the first kind of kernel that found values wrong since the last check.

        Raises:
            IndexingError: for an index out of bounds.
            MatrixError: for a matrix without an inverse or a Cholesky factor.
        """
        if not self._pending or self._memory is None:
            return
        self._pending = False
        words = np.empty(self.WORDS, np.int64)
        self._device.driver.copy_to_host(address_of(words), self._memory.address, words.nbytes)
        if not words.any():
            return
        self._device.copy_into(self._memory, np.zeros_like(words))
        wrong = [key for key, number in self._numbers.items() if number in words]
        first = wrong[0][1]
        found = "; ".join(f"{what}: {fault.text}" for what, fault in wrong)
        raise first.error(
            f"{found}. A device computes on while the host goes on: what it has computed since then is not defined, "
            "tensors that were changed in place included"
        )
