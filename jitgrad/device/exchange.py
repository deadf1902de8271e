"""Device memory shared with other libraries without a copy: DLPack and ``__cuda_array_interface__``."""

from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype
from jitgrad.core.device_array import Device, DeviceArray
from jitgrad.core.errors import DtypeError, OperandError
from jitgrad.core.references import has_owners
from jitgrad.device.driver import DEFAULT_STREAM, Driver

# of dlpack.h
CUDA_DEVICE = 2
HOST = 1, 0
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BITS = {"c": (64, 128)}  # of an element; of other dtypes those below
_REAL_BITS = (8, 16, 32, 64)
_KINDS = {code: kind for kind, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""


_Deleter = ctypes.CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter)]

_api = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", _api))
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
_NAME, _USED = b"dltensor", b"used_dltensor"

# what exported structures refer to, until their consumer is done
_exported: dict[int, tuple[Any, ...]] = {}


@_Deleter  # type: ignore[untyped-decorator]
def _delete(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


class OfferedCapsules:
    """The capsules that consumers got, each in a list of one.

    One that nobody consumed gives back its structure when it is looked at the next time, not by a destructor: this would run
    Python code while the consumer's exception is on its way.
    """

    def __init__(self) -> None:
        self._capsules: dict[int, list[Any]] = {}

    def add(self, address: int) -> Any:
        """A new capsule over the structure at ``address``."""
        self.release()
        capsule = _new_capsule(address, _NAME, None)
        self._capsules[address] = [capsule]
        return capsule

    def release(self) -> None:
        """Let go of the capsules that nobody else holds."""
        for address, held in list(self._capsules.items()):
            if has_owners(held):
                self._capsules.pop(address, None)
                if _is_capsule(held[0], _NAME):
                    _exported.pop(address, None)


OFFERED = OfferedCapsules()


def to_dlpack(array: DeviceArray, driver: Driver, stream: int | None = None) -> Any:
    """A DLPack capsule over the memory of ``array``; work in ``stream`` waits for what computes it."""
    if stream is not None and stream not in (-1, 0, DEFAULT_STREAM):
        event = driver.record_event()
        driver.wait_in_stream(stream, event)
        driver.destroy_event(event)
    shape = (c_int64 * max(array.ndim, 1))(*array.shape)
    strides = (c_int64 * max(array.ndim, 1))(*[s // array.dtype.itemsize for s in array.strides])
    managed = _Managed(deleter=_delete)
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = array.address, CUDA_DEVICE, 0, array.ndim
    tensor.code, tensor.bits, tensor.lanes = _CODES[array.dtype.kind], 8 * array.dtype.itemsize, 1
    tensor.shape, tensor.strides = shape, strides
    address = ctypes.addressof(managed)
    _exported[address] = managed, shape, strides, array
    return OFFERED.add(address)


class _Imported:
    """Owns memory that came by DLPack."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


def array_from_dlpack(device: Device, x: Any) -> DeviceArray:
    """An array over the memory of ``x``, an object on the device with ``__dlpack__``.

    Raises:
        OperandError: it is not on the CUDA device that jitgrad uses.
        DtypeError: its dtype is bfloat16 or another that jitgrad does not have.
    """
    place = tuple(map(int, x.__dlpack_device__()))
    if place != (CUDA_DEVICE, 0):
        raise OperandError(f"from_dlpack: {type(x).__name__} is on device {place}; jitgrad uses {(CUDA_DEVICE, 0)}")
    capsule = x.__dlpack__(stream=DEFAULT_STREAM)
    managed = ctypes.cast(_capsule_pointer(capsule, _NAME), POINTER(_Managed))
    tensor = managed.contents.tensor
    dtype = _dtype_of(tensor)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = [s * dtype.itemsize for s in tensor.strides[: tensor.ndim]] if tensor.strides else None
    _rename(capsule, _USED)
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, dtype, _Imported(managed), device, strides)


def _dtype_of(tensor: Any) -> Dtype:
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits not in _BITS.get(kind, _REAL_BITS):
        raise DtypeError(f"from_dlpack: type code {tensor.code} of {tensor.bits} bits is not supported")
    return np.dtype(f"{kind}{tensor.bits // 8}")


def interface_of(array: DeviceArray) -> dict[str, Any]:
    """What CuPy, numba and torch read to use the memory of ``array`` without a copy."""
    return {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.address, False),
        "strides": None if array.is_contiguous else array.strides,
        "stream": DEFAULT_STREAM,
    }


def array_from_interface(device: Device, x: Any) -> DeviceArray:
    """An array over the memory of ``x``, which has ``__cuda_array_interface__``.

    Work of another stream that is still to write it is waited for.
    """
    described = x.__cuda_array_interface__
    if described.get("stream") not in (None, DEFAULT_STREAM):
        device.synchronize()
    address, read_only = described["data"]
    if read_only:
        raise OperandError(f"asarray: the memory of this {type(x).__name__} is read-only; pass a copy")
    dtype = np.dtype(described["typestr"])
    shape = tuple(described["shape"])
    return DeviceArray(address if math.prod(shape) else 0, shape, dtype, x, device, described.get("strides"))
