"""The CUDA device as a place for arrays: allocation from the pool, and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jitgrad.core.aval import Aval, Dtype, Shape
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.op import OpDef
from jitgrad.device import exchange
from jitgrad.device.driver import Driver
from jitgrad.device.faults import Faults
from jitgrad.device.pool import Block, DevicePool
from jitgrad.eager.buffer_pool import address_of


class DeviceKernels(Protocol):
    """What needs compiled kernels."""

    def apply(
        self, device: CudaDevice, op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]
    ) -> Any:
        """The result(s) of ``op``; operands are DeviceArrays, ndarrays and numbers."""

    def copy_strided(self, target: DeviceArray, source: DeviceArray) -> None:
        """Copy between arrays of the same shape that do not overlap, of which one is not contiguous."""


class CudaDevice:
    """Memory of the device that ``driver`` runs.

    Attributes:
        kernels: of this class; the cuda target sets it, which is on a higher level.
    """

    kernels: DeviceKernels

    name = "cuda"
    dlpack_device: tuple[int, int] = (exchange.CUDA_DEVICE, 0)

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.pool: DevicePool = DevicePool(driver)
        self.pool.add_holder(exchange.OFFERED)
        self.faults: Faults = Faults(self)

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
        self.faults.check()
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
        apart = source.owner is not target.owner and type(source.owner) is type(target.owner) is Block
        if not apart and source.may_share_memory(target):
            if (source.address, source.strides) == (target.address, target.strides):
                return
            source = self.copy(source)
        if target.is_contiguous and source.is_contiguous:
            self.driver.copy_on_device(target.address, source.address, target.nbytes)
        elif target.dtype.kind == "c":
            self.kernels.copy_strided(target.as_pairs(), source.as_pairs())
        else:
            self.kernels.copy_strided(target, source)

    def apply(self, op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Any:
        return self.kernels.apply(self, op, operands, avals, attrs)

    def synchronize(self) -> None:
        self.driver.synchronize()
        self.faults.check()

    # --- other libraries --------------------------------------------------------------------------

    def to_dlpack(self, array: DeviceArray, stream: int | None, **keywords: Any) -> Any:
        """A capsule over ``array``, or over a copy on the host if the consumer asks for that by ``dl_device``.

        Raises:
            BufferError: it asks for another device, or for the host without a copy.
        """
        place = keywords.pop("dl_device", None)
        if place is None or tuple(map(int, place)) == self.dlpack_device:
            return exchange.to_dlpack(array.copy() if keywords.get("copy") else array, self.driver, stream)
        if tuple(map(int, place)) != exchange.HOST or keywords.pop("copy", None) is False:
            raise BufferError(f"__dlpack__: {array} is on cuda; it cannot be shared with device {tuple(map(int, place))}")
        return self.to_host(array).__dlpack__(**keywords)

    def interface_of(self, array: DeviceArray) -> dict[str, Any]:
        return exchange.interface_of(array)
