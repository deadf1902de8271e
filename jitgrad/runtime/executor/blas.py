"""Finds GEMM, by address, in the OpenBLAS that NumPy's wheels contain."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

_PREFIXES = ("scipy_", "")  # SciPy's builds rename every symbol, to coexist with another BLAS
_SUFFIX = "64_"  # the interface with 64-bit integers, the only one the runtime calls

# the native loop counts here the users of BLAS on one thread, and stores the number of threads to restore
STATE = (ctypes.c_int64 * 8)()


@dataclass(frozen=True, slots=True)
class Blas:
    """Addresses of ``cblas_sgemm`` and ``cblas_dgemm`` with 64-bit integers, and the library's name."""

    sgemm: int
    dgemm: int
    library: str


def _libraries() -> Iterator[Path]:
    """OpenBLAS libraries in the folders of NumPy's wheels for Linux, Windows and macOS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs", package / ".libs"):
        yield from sorted(folder.glob("*openblas*"))


def _address(library: ctypes.CDLL, name: str) -> int:
    """The address of the first of the library's names for ``name``; 0 if it has none."""
    for prefix in _PREFIXES:
        function = getattr(library, f"{prefix}{name}{_SUFFIX}", None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


@cache
def _library() -> ctypes.CDLL | None:
    for path in _libraries():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if _address(library, "cblas_sgemm") and _address(library, "cblas_dgemm"):
            return library
    return None


@cache
def find_blas() -> Blas | None:
    """NumPy's bundled BLAS; None if NumPy was built against another."""
    library = _library()
    if library is None:
        return None
    name = Path(library._name).name
    return Blas(_address(library, "cblas_sgemm"), _address(library, "cblas_dgemm"), name)


def thread_functions() -> tuple[int, int]:
    """Addresses of ``int get_num_threads(void)`` and ``void set_num_threads(int)``; zeros without them."""
    library = _library()
    if library is None:
        return 0, 0
    addresses = _address(library, "openblas_get_num_threads"), _address(library, "openblas_set_num_threads")
    return addresses if all(addresses) else (0, 0)


def get_blas_threads() -> int | None:
    """The number of threads of the bundled BLAS; None without one."""
    address, _ = thread_functions()
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)()) if address else None


def limit_blas_threads(count: int) -> None:
    """Let the bundled BLAS use at most ``count`` threads."""
    if (get_blas_threads() or 0) > count:
        set_blas_threads(count)


def set_blas_threads(count: int) -> None:
    """Let the bundled BLAS use ``count`` threads (NumPy's own matmul too: it is the same library)."""
    _, address = thread_functions()
    if address:
        ctypes.CFUNCTYPE(None, ctypes.c_int)(address)(count)
