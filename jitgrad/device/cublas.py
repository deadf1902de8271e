"""Matrix products by cuBLAS, which the extras cuda12 and cuda13 install, or a CUDA toolkit has."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from ctypes import byref, c_double, c_float, c_int, c_longlong, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from jitgrad.core.errors import CudaError
from jitgrad.core.fork import fork_safe_lock
from jitgrad.device.driver import Product

_NAMES = ("libcublas.so.13", "libcublas.so.12", "cublas64_13.dll", "cublas64_12.dll")
# folders of the wheels, below the namespace package nvidia
_FOLDERS = ("cu13/lib", "cublas/lib", "cu13/bin/x86_64", "cublas/bin")
_NO_TRANSPOSE, _TRANSPOSE = 0, 1

_GEMM = (c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p, c_uint64, c_int, c_longlong, c_uint64, c_int, c_longlong)
_GEMM_ARGUMENTS = (*_GEMM, c_void_p, c_uint64, c_int, c_longlong, c_int)


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
    """cuBLAS in the current context, on the default stream, in full float32 precision (no TF32)."""

    def __init__(self, library: Any = None) -> None:
        self._library = find_cublas() if library is None else library
        for name in ("cublasSgemmStridedBatched", "cublasDgemmStridedBatched"):
            getattr(self._library, name).argtypes = _GEMM_ARGUMENTS
        handle = c_void_p()
        self._call("cublasCreate_v2", byref(handle))
        self._handle = handle
        self._lock = fork_safe_lock()  # a handle serves one thread at a time

    def _call(self, function: str, *args: Any) -> None:
        status = getattr(self._library, function)(*args)
        if status:
            raise CudaError(f"{function} failed with cublasStatus_t {status}")

    def multiply(self, product: Product) -> None:
        """Start ``product``. cuBLAS knows columns first, so it computes the transposed product of the
        operands in exchanged order."""
        (m, k, n), (left, right, out) = product.sizes, (product.left, product.right, product.out)
        single = product.dtype == np.float32
        number = c_float if single else c_double
        operands = [x for a in (right, left) for x in (a.address, a.leading, a.step)]
        forms = [_TRANSPOSE if a.transposed else _NO_TRANSPOSE for a in (right, left)]
        sizes, results = (n, m, k), (out.address, out.leading, out.step)
        function = f"cublas{'S' if single else 'D'}gemmStridedBatched"
        with self._lock:
            self._call(
                function, self._handle, *forms, *sizes, byref(number(1)), *operands, byref(number(0)), *results, product.batch
            )
