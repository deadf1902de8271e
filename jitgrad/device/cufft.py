"""Fourier transforms by cuFFT, which the extras cuda12 and cuda13 install, or a CUDA toolkit has."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from math import prod
from typing import Any, NamedTuple

from jitgrad.core.errors import CudaError
from jitgrad.device.libraries import find_library

# CUDA 13 has version 12 of cuFFT, CUDA 12 version 11
_NAMES = ("libcufft.so.12", "libcufft.so.11", "cufft64_12.dll", "cufft64_11.dll")
_MANY = c_void_p  # an array of lengths
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cufftCreate": (c_void_p,),
    "cufftSetAutoAllocation": (c_int, c_int),
    "cufftMakePlanMany64": (
        *(c_int, c_int, _MANY, _MANY, c_longlong, c_longlong, _MANY, c_longlong, c_longlong),
        *(c_int, c_longlong, c_void_p),
    ),
    "cufftDestroy": (c_int,),
}
_TYPES = {8: 0x29, 16: 0x69}  # cufftType of complex numbers of so many bytes
CUFFT_MISSING = "install cuFFT with pip install 'jitgrad[cuda12]', or 'jitgrad[cuda13]' for driver 580 and newer"


class TransformShape(NamedTuple):
    """What cuFFT needs to know of a transform of complex numbers from one array to another with the same places.

    Attributes:
        lengths: of the axes that are transformed, at most three.
        stride: from one element of the last of them to the next, in elements.
        distance: from one transform to the next, in elements.
        batch: how many transforms there are.
        itemsize: of a complex number, in bytes.
    """

    lengths: tuple[int, ...]
    stride: int
    distance: int
    batch: int
    itemsize: int


class TransformPlan:
    """A plan of the library; it goes when the last program that uses it is gone.

    Attributes:
        handle: the library's number for it.
        work_bytes: memory that each execution needs, which its caller provides.
    """

    def __init__(self, library: Any, shape: TransformShape, bind: Callable[[], None]) -> None:
        """``bind`` prepares the thread for calls of the library."""
        bind()
        handle, work = c_int(), c_size_t()
        _call(library, "cufftCreate", byref(handle))
        self.handle: int = handle.value
        finalizer = weakref.finalize(self, _destroy, library, self.handle, bind)
        finalizer.atexit = False  # the driver may be gone by then
        _call(library, "cufftSetAutoAllocation", self.handle, 0)
        lengths = (c_longlong * len(shape.lengths))(*shape.lengths)
        layout = (lengths, shape.stride, shape.distance)
        kind = _TYPES[shape.itemsize]
        args = (self.handle, len(lengths), lengths, *layout, *layout, kind, shape.batch, byref(work))
        _call(library, "cufftMakePlanMany64", *args)
        self.work_bytes: int = work.value


def _destroy(library: Any, handle: int, bind: Callable[[], None]) -> None:
    with suppress(CudaError):  # a forked child leaves it alone
        bind()
        library.cufftDestroy(handle)


def load_cufft() -> Any:
    """The library with its argument types; None if it is not installed."""
    library = find_library(_NAMES, "cufft")
    if library is not None:
        for name, types in _SIGNATURES.items():
            getattr(library, name).argtypes = types
    return library


def _call(library: Any, function: str, *args: Any) -> None:
    check_cufft_status(function, getattr(library, function)(*args))


def check_cufft_status(function: str, status: int) -> None:
    """Raise CudaError if ``status``, which ``function`` returned, is no success."""
    if status:
        raise CudaError(f"{function} failed with cufftResult {status}")


def address_in(library: Any, name: str) -> int:
    """The address of a function of ``library``."""
    return ctypes.cast(getattr(library, name), c_void_p).value or 0


def contiguous_transform(shape: Sequence[int], axes: Sequence[int], itemsize: int) -> TransformShape | None:
    """The transform of a C-contiguous array of ``shape`` over neighbouring ``axes``; None if it takes more than one call.

    One call does the first axes, for all elements behind each other, or the last ones.
    """
    first, last = axes[0], axes[-1]
    outer, inner = prod(shape[:first]), prod(shape[last + 1 :])
    if tuple(axes) != tuple(range(first, last + 1)) or len(axes) > 3 or (outer > 1 and inner > 1):
        return None
    lengths = tuple(shape[first : last + 1])
    distance, batch = (1, inner) if inner > 1 else (prod(lengths), outer)
    return TransformShape(lengths, inner, distance, batch, itemsize)
