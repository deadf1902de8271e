"""Matrix products by cuBLAS, which the extras cuda12 and cuda13 install, or a CUDA toolkit has."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_size_t, c_uint64, c_void_p
from typing import Any

from jitgrad.core.errors import CudaError
from jitgrad.device.libraries import find_library

_NAMES = ("libcublas.so.13", "libcublas.so.12", "cublas64_13.dll", "cublas64_12.dll")
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_uint64, c_size_t),
}
_WORKSPACE = 32 << 20  # bytes; what cuBLAS itself takes on the largest devices


def find_cublas() -> Any:
    """The library. Raises CudaError if it is not installed."""
    library = find_library(_NAMES, "cublas")
    if library is not None:
        return library
    raise CudaError("matrix products need cuBLAS: pip install 'jitgrad[cuda12]', or 'jitgrad[cuda13]' for driver 580 and newer")


class Cublas:
    """A handle of cuBLAS in the current context, in full float32 precision (no TF32).

    Attributes:
        handle: on the default stream; it serves one thread at a time.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = find_cublas() if library is None else library
        for name, types in _SIGNATURES.items():
            getattr(self._library, name).argtypes = types
        self.handle: int = self._new_handle()

    def _call(self, function: str, *args: Any) -> None:
        check_cublas_status(function, getattr(self._library, function)(*args))

    def _new_handle(self) -> int:
        handle = c_void_p()
        self._call("cublasCreate_v2", byref(handle))
        return handle.value or 0

    def on_stream(self, stream: int, workspace: Callable[[int], int]) -> int:
        """Another handle, for ``stream``. ``workspace`` gives it memory of its own of a number of bytes: cuBLAS may not
        allocate while a graph is captured."""
        handle = self._new_handle()
        self._call("cublasSetStream_v2", handle, stream)
        self._call("cublasSetWorkspace_v2", handle, workspace(_WORKSPACE), _WORKSPACE)
        return handle

    def function(self, name: str) -> int:
        """The address of a function of the library."""
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0


def check_cublas_status(function: str, status: int) -> None:
    """Raise CudaError if ``status``, which ``function`` returned, is no success."""
    if status:
        raise CudaError(f"{function} failed with cublasStatus_t {status}")
