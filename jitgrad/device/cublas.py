"""Matrix products by cuBLAS, which the extras cuda12 and cuda13 install, or a CUDA toolkit has."""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from collections.abc import Callable, Iterator
from ctypes import byref, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from jitgrad.core.errors import CudaError
from jitgrad.core.fork import fork_safe_lock

_NAMES = ("libcublas.so.13", "libcublas.so.12", "cublas64_13.dll", "cublas64_12.dll")
# folders of the wheels, below the namespace package nvidia
_FOLDERS = ("cu13/lib", "cublas/lib", "cu13/bin/x86_64", "cublas/bin")
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_uint64, c_size_t),
}
_WORKSPACE = 32 << 20  # bytes; what cuBLAS itself takes on the largest devices


def _candidates() -> Iterator[str]:
    """Libraries in the wheels, then those that the system's search path leads to."""
    spec = importlib.util.find_spec("nvidia")
    for package in (spec.submodule_search_locations or ()) if spec is not None else ():
        for folder in _FOLDERS:
            yield from (str(path) for name in _NAMES if (path := Path(package, folder, name)).exists())
    yield from _NAMES


def find_cublas() -> Any:
    """The library. Raises CudaError if it is not installed."""
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError("matrix products need cuBLAS: pip install 'jitgrad[cuda12]', or 'jitgrad[cuda13]' for driver 580 and newer")


class Cublas:
    """A handle of cuBLAS in the current context, in full float32 precision (no TF32).

    Attributes:
        handle: on the default stream.
        lock: held while ``handle`` is in use, because it serves one thread at a time.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = find_cublas() if library is None else library
        for name, types in _SIGNATURES.items():
            getattr(self._library, name).argtypes = types
        self.handle: int = self._new_handle()
        self.lock: threading.RLock = fork_safe_lock()

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
