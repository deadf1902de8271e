"""Products and triangular systems, by address, of the OpenBLAS that NumPy's wheels contain."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_PREFIXES = ("scipy_", "")  # SciPy's builds rename every symbol, to coexist with another BLAS
_FUNCTIONS = ("cblas_sgemm", "cblas_dgemm", "cblas_strsm", "cblas_dtrsm")
_SUFFIX = "64_"  # the interface with 64-bit integers, the only one the runtime calls

_ROW_MAJOR, _LEFT, _UPPER, _LOWER, _AS_IT_IS, _TRANSPOSED, _NON_UNIT = 101, 141, 121, 122, 111, 112, 131  # of cblas.h

# the native loop counts here the users of BLAS on one thread, and stores the number of threads to restore
STATE = (ctypes.c_int64 * 8)()


@dataclass(frozen=True, slots=True)
class Blas:
    """Addresses of ``cblas_sgemm``, ``cblas_dgemm`` and both ``trsm`` with 64-bit integers, and the library's name."""

    sgemm: int
    dgemm: int
    strsm: int
    dtrsm: int
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
        if all(_address(library, name) for name in _FUNCTIONS):
            return library
    return None


def library_address(name: str) -> int:
    """The address of a function of NumPy's bundled BLAS or LAPACK with 64-bit integers; 0 if there is none."""
    library = _library()
    return 0 if library is None else _address(library, name)


@cache
def find_blas() -> Blas | None:
    """NumPy's bundled BLAS; None if NumPy was built against another."""
    library = _library()
    if library is None:
        return None
    name = Path(library._name).name
    sgemm, dgemm, strsm, dtrsm = (_address(library, function) for function in _FUNCTIONS)
    return Blas(sgemm, dgemm, strsm, dtrsm, name)


def solve_in_place(triangle: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, upper: bool) -> None:
    """Replace ``x`` by the solution of ``triangle @ solution == x``: matrices of one float dtype, ``x`` in row-major order.

    One triangle is read; a zero on its diagonal gives infinities. `find_blas` must have found a library.
    """
    turned = triangle.strides[0] < triangle.strides[1]
    rows = triangle.T if turned else triangle  # as BLAS reads them
    if rows.strides[1] != x.itemsize or rows.strides[0] % x.itemsize or rows.strides[0] < len(x) * x.itemsize:
        rows = np.ascontiguousarray(rows)
    uplo, transposed = (_UPPER if upper != turned else _LOWER), (_TRANSPOSED if turned else _AS_IT_IS)
    leading = max(rows.strides[0] // x.itemsize, len(x))  # of one row, strides mean nothing
    options = _ROW_MAJOR, _LEFT, uplo, transposed, _NON_UNIT
    _trsm(x.dtype == np.float32)(*options, *x.shape, 1.0, rows.ctypes.data, leading, x.ctypes.data, x.shape[1])


@cache
def _trsm(single: bool) -> Callable[..., None]:
    found, real = find_blas(), ctypes.c_float if single else ctypes.c_double
    assert found is not None
    words: list[Any] = [ctypes.c_int64, ctypes.c_int64, real, *[ctypes.c_void_p, ctypes.c_int64] * 2]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int] * 5, *words)(found.strsm if single else found.dtrsm)


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
