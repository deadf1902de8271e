"""What ops that LAPACK computes have in common: their operands, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.errors import DtypeError, MatrixError, ShapeError


def by_lapack(name: str, function: Callable[..., Any], *arrays: Array, **keywords: Any) -> Any:
    """The result of NumPy's ``function``. Raises MatrixError for its LinAlgError."""
    try:
        return function(*arrays, **keywords)
    except np.linalg.LinAlgError as error:
        shapes = " and ".join(f"{x.dtype}{list(x.shape)}" for x in arrays)
        raise MatrixError(f"{name} of {shapes}: {error}; for nearly singular matrices add a small multiple of eye()") from None


def matrices(name: str, x: Aval, *, square: bool = True) -> Aval:
    """``x``, which must be matrices of a dtype that LAPACK has."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(f"{name} of {x}: the last two axes must be those of {'square ' if square else ''}matrices")
    if x.dtype.char not in "fdFD":
        raise DtypeError(f"{name} of {x}: LAPACK takes float32, float64 and their complex dtypes; .astype() it")
    return x


def square_aval(name: str) -> Callable[[Sequence[Aval], Mapping[str, Any]], Aval]:
    """The rule of an op whose result is like its operand, square matrices."""

    def abstract(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
        x = matrices(name, avals[0])
        return Aval(x.shape, x.dtype)

    return abstract
