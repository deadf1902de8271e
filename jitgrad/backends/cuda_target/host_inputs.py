"""Inputs of a program that are on the host: numbers, small arrays such as the state of a generator, or whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda_target.call_table import BoundTable, CallTable, launch_call
from jitgrad.backends.cuda_target.device_call import CALL_THREADS, CallWriter
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.core.device_array import DeviceArray
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.eager.buffer_pool import address_of

_ALIGNMENT = 16  # bytes, of each input in the memory that they share
_WORD_COUNTS = (4, 16, 64)  # of the kernels that write words; larger inputs are copied


@cache
def _writing_kernel(count: int, capability: Capability) -> DeviceCode:
    """A kernel whose first thread writes ``count`` arguments to memory."""
    words = [f"w{k}" for k in range(count)]
    writer = CallWriter({"out": "i64"}, words)
    with writer as out:
        for k, word in enumerate(words):
            out.line(f"out[{k}] = {word}")
    source: Source = writer.source()
    return DeviceCode(source, "kernel", capability, {})


class HostInputs:
    """The inputs at ``positions``, arrays and numbers like ``examples``, on their way to the device.

    They share one piece of device memory, at an address that stays: so the graph of a program that takes a new number
    in every call is captured once. A few words travel as arguments of a kernel, which the driver takes at once; a copy
    from the host waits until the device has done all earlier work.
    """

    def __init__(self, device: CudaDevice, positions: Sequence[int], examples: Sequence[Any]) -> None:
        self._device = device
        examples = [np.asarray(x) for x in examples]
        starts = list(accumulate([-(-x.nbytes // _ALIGNMENT) * _ALIGNMENT for x in examples], initial=0))
        size = starts.pop()
        count = next((n for n in _WORD_COUNTS if 8 * n >= size), 0)
        self._packed = packed = np.zeros(8 * count or size, np.uint8)
        self._memory = memory = device.empty(packed.shape, packed.dtype)
        self.addresses: list[int] = [memory.address + start for start in starts]
        placed = list(zip(starts, examples, strict=True))
        self._parts = [packed[start : start + x.nbytes].view(x.dtype).reshape(x.shape) for start, x in placed]
        self.arrays: list[DeviceArray] = [
            DeviceArray(memory.address + start, x.shape, x.dtype, memory.owner, device) for start, x in placed
        ]
        self.positions: tuple[int, ...] = tuple(positions)
        self._writing = self._writing_table(count) if count else None

    def _writing_table(self, count: int) -> BoundTable:
        driver = self._device.driver
        code = _writing_kernel(count, Capability(*driver.capability))
        words = (self._memory.address, *[0] * count, 1)
        table = CallTable([launch_call(code.function(driver), 1, CALL_THREADS, words, 0)], driver)
        bound = table.bound(np.zeros(1, np.int64))
        where = table.argument_words(0)
        self._words = bound.memory[where.start + 1 : where.stop - 1]
        self._packed_words = self._packed.view(np.int64)
        return bound

    def send(self, arrays: Sequence[Any]) -> None:
        """Bring the values of ``arrays`` to the device, in the order of its work."""
        for part, x in zip(self._parts, arrays, strict=True):
            part[...] = x
        if self._writing is None:
            self._device.driver.copy_to_device(self._memory.address, address_of(self._packed), self._packed.nbytes)
            return
        self._words[:] = self._packed_words
        self._writing.run()
