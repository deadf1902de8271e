"""The CUDA device as a place for arrays: allocation from the pool, and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.device_array import DeviceArray
from jitgrad.device.driver import Driver
from jitgrad.device.pool import DevicePool
from jitgrad.eager.buffer_pool import address_of

CopyStrided = Callable[[DeviceArray, DeviceArray], None]
"""Copies the elements of its second argument to its first, in device memory, by a kernel."""


class CudaDevice:
    """Memory of the device that ``driver`` runs.

    Attributes:
        copy_strided: copies between arrays of which one is not contiguous; the cuda target sets it.
    """

    name = "cuda"

    def __init__(self, driver: Driver, copy_strided: CopyStrided | None = None) -> None:
        self.driver = driver
        self.pool = DevicePool(driver)
        self.copy_strided: CopyStrided = copy_strided or self._copy_by_host

    def empty(self, shape: Shape, dtype: Dtype) -> DeviceArray:
        block = self.pool.take(shape, dtype)
        return DeviceArray(block.address, shape, dtype, block, self)

    def full(self, shape: Shape, value: Any, dtype: Dtype) -> DeviceArray:
        array = self.empty(shape, dtype)
        element = np.asarray(value).astype(dtype).tobytes()
        # the driver repeats 1, 2 or 4 bytes
        width = min(dtype.itemsize, 4)
        if element[:width] * (dtype.itemsize // width) == element:
            if array.size:
                count = array.nbytes // width
                self.driver.fill(array.address, int.from_bytes(element[:width], "little"), width, count)
            return array
        one = self.from_host(np.frombuffer(element, dtype).reshape(()))
        self.copy_into(array, one.broadcast_to(shape))
        return array

    def from_host(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        source = np.ascontiguousarray(array)
        target = self.empty(array.shape, array.dtype)
        if source.nbytes:
            self.driver.copy_to_device(target.address, address_of(source), source.nbytes)
        return target

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        if not array.is_contiguous:
            # only the elements travel, not the gaps between them
            array = self.copy(array)
        result = np.empty(array.shape, array.dtype)
        if result.nbytes:
            self.driver.copy_to_host(address_of(result), array.address, result.nbytes)
        return result

    def copy(self, array: DeviceArray) -> DeviceArray:
        target = self.empty(array.shape, array.dtype)
        self.copy_into(target, array)
        return target

    def copy_into(self, target: DeviceArray, source: DeviceArray | np.ndarray[Any, Any]) -> None:
        if isinstance(source, np.ndarray):
            if target.is_contiguous:
                data = np.ascontiguousarray(source)
                if data.nbytes:
                    self.driver.copy_to_device(target.address, address_of(data), data.nbytes)
                return
            source = self.from_host(source)
        if not target.size:
            return
        if source.may_share_memory(target):
            if (source.address, source.strides) == (target.address, target.strides):
                return
            source = self.copy(source)
        if target.is_contiguous and source.is_contiguous:
            self.driver.copy_on_device(target.address, source.address, target.nbytes)
        else:
            self.copy_strided(target, source)

    def synchronize(self) -> None:
        self.driver.synchronize()

    def _copy_by_host(self, target: DeviceArray, source: DeviceArray) -> None:
        """A strided copy without kernels: the memory around both arrays travels."""
        host = self._span_to_host(source)[1].copy()
        memory, view = self._span_to_host(target)
        view[...] = host
        self.driver.copy_to_device(target.bounds()[0], address_of(memory), len(memory))

    def _span_to_host(self, array: DeviceArray) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The bytes from the first to the last element, and the array in them."""
        low, high = array.bounds()
        memory = np.empty(high - low, np.uint8)
        self.driver.copy_to_host(address_of(memory), low, len(memory))
        return memory, np.ndarray(array.shape, array.dtype, memory, array.address - low, array.strides)
