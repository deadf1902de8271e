"""The record of an array in the memory of a device: address, shape, strides, dtype and owner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from jitgrad.core.aval import Aval, Dtype, Shape, real_dtype_of
from jitgrad.core.errors import ArgumentError, DeviceError
from jitgrad.core.op import OpDef


class DeviceName(str):
    """The name of a device, "cpu" or "cuda", with the attributes of torch's ``device``: ``type`` and ``index``.

    A number alone is that of a CUDA device. One is used, so that "cuda:0" equals the "cuda" of its tensors.

    Raises:
        ArgumentError: there is no such kind of device.
    """

    __slots__ = ()

    def __new__(cls, type: str | int, index: int | None = None) -> DeviceName:
        kind = f"cuda:{type}" if isinstance(type, int) else type
        name = kind if index is None else f"{kind}:{index}"
        if name.split(":")[0] not in ("cpu", "cuda"):
            raise ArgumentError(f"device {name!r}: expected 'cpu' or 'cuda'")
        return str.__new__(_FirstDevice, "cuda") if name == "cuda:0" else str.__new__(cls, name)

    @property
    def type(self) -> str:
        """ "cpu" or "cuda"."""
        return self.split(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number after the colon, if there is one."""
        parts = self.split(":")
        return int(parts[1]) if len(parts) > 1 else None


class _FirstDevice(DeviceName):
    """The device that is used, by its number: it prints that, and equals the name without it."""

    __slots__ = ()
    index = 0

    def __str__(self) -> str:
        return "cuda:0"

    def __repr__(self) -> str:
        return "'cuda:0'"

    def __format__(self, spec: str) -> str:
        return format("cuda:0", spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceName, ("cuda", 0)


class Device(Protocol):
    """A device other than the host: its memory, and how ops run on arrays in it."""

    name: str
    dlpack_device: tuple[int, int]

    def empty(self, shape: Shape, dtype: Dtype) -> DeviceArray:
        """A new C-contiguous array with any contents."""

    def full(self, shape: Shape, value: Any, dtype: Dtype) -> DeviceArray:
        """A new array that holds ``value`` everywhere."""

    def from_host(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        """A copy of ``array`` on the device."""

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """A copy of ``array`` as an ndarray, once the device has computed it."""

    def copy(self, array: DeviceArray) -> DeviceArray:
        """A C-contiguous copy."""

    def copy_into(self, target: DeviceArray, source: DeviceArray | np.ndarray[Any, Any]) -> None:
        """Copy ``source``, of the same shape and dtype, to the elements of ``target``."""

    def apply(self, op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Any:
        """The result(s) of ``op``; operands are DeviceArrays, ndarrays and numbers."""

    def synchronize(self) -> None:
        """Wait until the device has done all work."""

    def to_dlpack(self, array: DeviceArray, stream: int | None, **keywords: Any) -> Any:
        """A DLPack capsule over the memory of ``array``."""

    def interface_of(self, array: DeviceArray) -> dict[str, Any]:
        """The ``__cuda_array_interface__`` of ``array``."""


@lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a C-contiguous array."""
    strides = [0] * len(shape)
    step = itemsize
    for k in range(len(shape) - 1, -1, -1):
        strides[k] = step
        step *= shape[k]
    return tuple(strides)


def is_packed(shape: Shape, strides: Sequence[int], itemsize: int) -> bool:
    """Whether elements with these strides, in bytes, lie in row-major order without gaps."""
    step = itemsize
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 0:
            return True
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


class Flags(NamedTuple):
    """What an ndarray has under the same names."""

    c_contiguous: bool
    aligned: bool = True
    writeable: bool = True


class DeviceArray:
    """An array on a device; a view shares its ``owner``, which keeps the memory.

    It is what a Tensor holds in place of an ndarray, and has that class's names where the meaning is
    the same. NumPy cannot read it: what needs the numbers says ``device.to_host(array)``.
    """

    __slots__ = ("address", "shape", "strides", "dtype", "owner", "device", "is_contiguous", "__weakref__")

    def __init__(
        self, address: int, shape: Shape, dtype: Dtype, owner: Any, device: Device, strides: Sequence[int] | None = None
    ) -> None:
        self.address: int = address
        self.shape: Shape = shape
        self.dtype: Dtype = dtype
        self.owner: Any = owner
        self.device: Device = device
        self.strides: tuple[int, ...] = contiguous_strides(shape, dtype.itemsize) if strides is None else tuple(strides)
        # whether the elements lie in row-major order without gaps
        self.is_contiguous: bool = strides is None or is_packed(shape, strides, dtype.itemsize)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        return Flags(self.is_contiguous)

    def copy(self) -> DeviceArray:
        """A C-contiguous copy."""
        return self.device.copy(self)

    def bounds(self) -> tuple[int, int]:
        """The first address of the memory that the elements span, and the first one after it."""
        if not self.size:
            return self.address, self.address
        spans = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0)
        return self.address + low, self.address + high + self.dtype.itemsize

    def may_share_memory(self, other: DeviceArray) -> bool:
        """Whether the memory ranges overlap."""
        low, high = self.bounds()
        other_low, other_high = other.bounds()
        return low < other_high and other_low < high

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise DeviceError(f"NumPy cannot read an array on {self.device.name}: copy it to the host with .cpu()")

    def __repr__(self) -> str:
        return f"<array {self.dtype}{list(self.shape)} on {self.device.name}>"

    # --- views ------------------------------------------------------------------------------------

    def view(self, shape: Shape, strides: Sequence[int], offset: int = 0) -> DeviceArray:
        """Other elements of the same memory; ``offset`` and ``strides`` are in bytes."""
        return DeviceArray(self.address + offset, shape, self.dtype, self.owner, self.device, strides)

    def component(self, index: int) -> DeviceArray:
        """The real (0) or the imaginary part (1) of complex numbers; of real ones themselves, which have no other."""
        part = real_dtype_of(self.dtype)
        if part == self.dtype:
            return self
        return DeviceArray(self.address + index * part.itemsize, self.shape, part, self.owner, self.device, self.strides)

    def as_pairs(self) -> DeviceArray:
        """Complex numbers [...] as their parts [..., 2]."""
        part = real_dtype_of(self.dtype)
        strides = (*self.strides, part.itemsize)
        return DeviceArray(self.address, (*self.shape, 2), part, self.owner, self.device, strides)

    def transpose(self, axes: Sequence[int]) -> DeviceArray:
        return self.view(tuple([self.shape[k] for k in axes]), [self.strides[k] for k in axes])

    def broadcast_to(self, shape: Shape) -> DeviceArray:
        new = len(shape) - self.ndim
        strides = [0 if m == 1 != n else s for m, n, s in zip(self.shape, shape[new:], self.strides, strict=True)]
        return self.view(shape, [0] * new + strides)

    def slice(self, index: Sequence[tuple[int, int, int]]) -> DeviceArray:
        """For each of the first axes (start, step, length); the others whole."""
        offset = sum(start * stride for (start, _, n), stride in zip(index, self.strides, strict=False) if n)
        strides = [step * stride for (_, step, _), stride in zip(index, self.strides, strict=False)]
        shape = (*[n for _, _, n in index], *self.shape[len(index) :])
        return self.view(shape, (*strides, *self.strides[len(index) :]), offset)

    def expand_dims(self, axes: Sequence[int]) -> DeviceArray:
        shape, strides = list(self.shape), list(self.strides)
        for k in sorted(axes):
            shape.insert(k, 1)
            strides.insert(k, 0)
        return self.view(tuple(shape), strides)

    def squeeze(self, axes: Sequence[int]) -> DeviceArray:
        kept = [k for k in range(self.ndim) if k not in axes]
        return self.view(tuple([self.shape[k] for k in kept]), [self.strides[k] for k in kept])

    def reshape(self, shape: Shape) -> DeviceArray:
        """The elements in row-major order in another shape: a view where NumPy makes one."""
        if self.is_contiguous:
            return self.view(shape, contiguous_strides(shape, self.dtype.itemsize))
        # NumPy works out the strides, and reads no element of this memory, which is too small
        layout = np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        try:
            return self.view(shape, layout.reshape(shape, copy=False).strides)
        except ValueError:
            return self.copy().reshape(shape)


def copy_elements(target: Any, source: Any) -> None:
    """Write ``source`` to the elements of ``target``, of the same shape and dtype; each is on the host or a
    device."""
    if isinstance(target, DeviceArray):
        target.device.copy_into(target, source)
    else:
        np.copyto(target, to_host(source))


def to_host(array: Any) -> Any:
    """``array`` as an ndarray: itself, or a copy if it is on a device."""
    return array.device.to_host(array) if isinstance(array, DeviceArray) else array


VIEWS: Mapping[str, Any] = {
    "broadcast_to": lambda x, *, shape: x.broadcast_to(shape),
    "reshape": lambda x, *, shape: x.reshape(shape),
    "permute_dims": lambda x, *, axes: x.transpose(axes),
    "expand_dims": lambda x, *, axis: x.expand_dims(axis),
    "squeeze": lambda x, *, axis: x.squeeze(axis),
    "slice": lambda x, *, index: x.slice(index),
    "stop_gradient": lambda x: x,
    "real": lambda x: x.component(0),
    "imag": lambda x: x.component(1),
}
"""The view ops on device arrays, by name."""
