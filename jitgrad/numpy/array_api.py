"""Functions that only the array API standard (2024.12) names: of dtypes, of distinct elements, and about the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Dtype, complex_dtype_of, normalize_axis
from jitgrad.core.config import get_default_dtype
from jitgrad.core.errors import ArgumentError, DtypeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.device import cuda
from jitgrad.numpy.statistics import cumprod
from jitgrad.ops.creation import asarray, full
from jitgrad.ops.indexing import as_constant, take
from jitgrad.ops.joining import concat
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import flatten
from jitgrad.ops.placement import beside
from jitgrad.ops.positions import distinct

_KINDS: Mapping[str, str] = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "real floating": "float32 float64",
    "complex floating": "complex64 complex128",
}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}

# --- dtypes ------------------------------------------------------------------------------------------------------


def result_type(*arrays_and_dtypes: Any) -> Dtype:
    """The dtype that tensors, dtypes and Python numbers have together; the numbers give way, as in arithmetic."""
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: expected at least one tensor, dtype or number")
    numbers = (bool, int, float, complex)
    return np.result_type(*(x if isinstance(x, numbers) else _dtype(x) for x in arrays_and_dtypes))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the dtype ``from_``, or that of the tensor ``from_``, promotes to ``to``."""
    return np.can_cast(_dtype(from_), np.dtype(to))


def _dtype(x: Any) -> Dtype:
    return x.dtype if isinstance(x, (Tensor, np.ndarray)) else np.dtype(x)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is ``kind``: a dtype, the standard's name of a kind of dtypes, or a tuple of these.

    Raises:
        DtypeError: a name that the standard doesn't know.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, part) for part in kind)
    if not isinstance(kind, str):
        return bool(np.dtype(dtype) == np.dtype(kind))
    if kind not in _KINDS and kind not in _GROUPS:
        raise DtypeError(f"isdtype: kind must be one of {', '.join((*_KINDS, *_GROUPS))}, got {shown(kind)}")
    return np.dtype(dtype).name in _dtypes_of(kind)


def _dtypes_of(kind: str | None) -> list[str]:
    return [name for part in (_KINDS if kind is None else _GROUPS.get(kind, (kind,))) for name in _KINDS[part].split()]


# --- distinct elements -------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Distinct elements in order, where each stands first, each element's number among them, and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements in order, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements in order, and each element's number among them."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements of ``x`` and where they are; every NaN is distinct, unlike in :func:`jitgrad.unique`.

    The shape depends on the values: a @jit function has a program for each number of distinct elements.
    """
    first, inverse, counts = distinct(x, "unique_all", equal_nan=False)
    places = first if isinstance(first, Tensor) else as_constant(np.asarray(first))
    return UniqueAll(take(flatten(asarray(x)), places, 0), asarray(first), inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements of ``x`` and their counts; see :func:`unique_all`."""
    out = unique_all(x)
    return UniqueCounts(out.values, out.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements of ``x`` and each element's number among them; see :func:`unique_all`."""
    out = unique_all(x)
    return UniqueInverse(out.values, out.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """The distinct elements of ``x`` in order; see :func:`unique_all`."""
    return unique_all(x).values


# --- products ----------------------------------------------------------------------------------------------------


@takes_dim()
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The running product along ``axis``, by default the only one; its gradient is exact at zeros.

    With ``include_initial`` the result starts with the empty product, 1, and is longer by one.
    """
    given = asarray(x)
    if not given.ndim or (axis is None and given.ndim != 1):
        raise ArgumentError(f"cumulative_prod of {given.aval} needs an axis; reshape(-1) it first to run over all elements")
    k = normalize_axis("cumulative_prod", 0 if axis is None else axis, given.ndim)
    out = cumprod(given, k, dtype)
    if not include_initial:
        return out
    with beside(out):
        one = full(tuple(1 if j == k else n for j, n in enumerate(out.shape)), 1, dtype=out.dtype)
    return concat([one, out], k)


# --- the library -------------------------------------------------------------------------------------------------


class NamespaceInfo:
    """What ``__array_namespace_info__()`` gives: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """What the standard leaves open; a @jit function has no shapes that depend on data."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where new tensors are."""
        return "cpu"

    def devices(self) -> list[str]:
        """All places that tensors can be in."""
        return ["cpu", *(f"cuda:{k}" for k in range(cuda.device_count()))]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Dtype]:
        """The dtypes of new tensors."""
        integer = np.dtype(np.int64)
        floating = get_default_dtype()
        return {
            "real floating": floating,
            "complex floating": complex_dtype_of(floating),
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        """The dtypes of the standard that tensors can have, or those of a kind, or of several."""
        kinds = kind if isinstance(kind, tuple) else (kind,)
        return {name: np.dtype(name) for part in kinds for name in _dtypes_of(part)}


def namespace_info() -> NamespaceInfo:
    """The standard's ``__array_namespace_info__``."""
    return NamespaceInfo()
