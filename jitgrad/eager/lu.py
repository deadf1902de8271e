"""LU factors and the systems that they solve, by address, of the LAPACK that NumPy's wheels contain.

NumPy has no function that keeps the factors: `numpy.linalg.solve` computes them anew at each call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from jitgrad.eager.blas import library_address

_Array = np.ndarray[Any, Any]


@cache
def has_lapack() -> bool:
    """Whether `factor_in_place` and `solve_by` find LAPACK."""
    return all(map(library_address, ("sgetrf_", "dgetrf_", "cgetrf_", "zgetrf_", "sgetrs_", "dgetrs_")))


def factor_in_place(lu: _Array, pivots: _Array) -> None:
    """Replace the matrix [m, n] of which the row-major ``lu`` [n, m] is the transpose by its factors, and fill the int64
    ``pivots`` [min(m, n)]. A zero on the diagonal says that the matrix is singular."""
    m, n, info = ctypes.c_int64(lu.shape[1]), ctypes.c_int64(lu.shape[0]), ctypes.c_int64()
    rows, columns = ctypes.byref(m), ctypes.byref(n)
    _function("getrf_", lu.dtype.char, 6)(rows, columns, lu.ctypes.data, rows, pivots.ctypes.data, ctypes.byref(info))


def solve_by(lu: _Array, pivots: _Array, x: _Array, *, transposed: bool) -> None:
    """Replace the right sides of a system, the rows of the row-major ``x`` [columns, n], by its solutions.

    ``transposed``: of the system of the transposed matrix.
    """
    n, columns, info = ctypes.c_int64(len(lu)), ctypes.c_int64(len(x)), ctypes.c_int64()
    size, data = ctypes.byref(n), (lu.ctypes.data, ctypes.byref(n), pivots.ctypes.data, x.ctypes.data, ctypes.byref(n))
    function = _function("getrs_", lu.dtype.char, 9)
    function(ctypes.c_char_p(b"T" if transposed else b"N"), size, ctypes.byref(columns), *data, ctypes.byref(info), 1)


@cache
def _function(name: str, char: str, pointers: int) -> Callable[..., None]:
    """A Fortran function of pointers, with the length of its text behind them if it has one."""
    address = library_address({"f": "s", "d": "d", "F": "c", "D": "z"}[char] + name)
    lengths = [ctypes.c_size_t] if name == "getrs_" else []
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers, *lengths)(address)
