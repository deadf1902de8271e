"""Addresses on a device of the outside tensors that a fast call reads: looked at again only where an array is another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.core.device_array import DeviceArray
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda_device import CudaDevice


class KnownAddresses:
    """What one look at the tensors found.

    Attributes:
        arrays: of the tensors. They are held, so no other array can have the identity of one of them.
        addresses: of the arrays, which never change.
        apart_from: addresses of arguments that were found to lie apart from what the call writes of these arrays.
    """

    __slots__ = ("arrays", "addresses", "apart_from")

    def __init__(self, arrays: Sequence[Any], addresses: list[int]) -> None:
        self.arrays: Sequence[Any] = arrays
        self.addresses: list[int] = addresses
        self.apart_from: Any = None


class DeviceAddresses:
    """The addresses of ``tensors``; a fast call compares their arrays with those of ``known`` by identity.

    An array record never changes: a tensor that was moved, converted or replaced has another one.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._nothing = KnownAddresses([None] * len(tensors), [])
        self.known: KnownAddresses = self._nothing
        for device in {t._data.device for t in tensors if type(t._data) is DeviceArray}:
            if isinstance(device, CudaDevice):
                device.pool.add_holder(self)

    def look(self, arrays: Sequence[Any]) -> KnownAddresses | None:
        """What is known now of ``arrays``, those of the tensors; None if kernels cannot use one of them where it is."""
        if any(type(x) is not DeviceArray or not x.is_contiguous or not x.address for x in arrays):
            return None
        self.known = known = KnownAddresses(arrays, [x.address for x in arrays])
        return known

    def release(self) -> None:
        """Let go of the arrays, because memory is short."""
        self.known = self._nothing
