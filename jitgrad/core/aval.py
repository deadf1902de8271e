"""Arithmetic of shapes and dtypes, without data."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.core.errors import AxisError, DtypeError, ShapeError, shown

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]
Shape = tuple[int, ...]

_SHORT = {"f": "f", "i": "i", "u": "u", "c": "c"}


def dtype_name(dtype: Dtype) -> str:
    """``f32`` for float32, ``i64`` for int64, ``bool`` for bool."""
    return "bool" if dtype.kind == "b" else f"{_SHORT[dtype.kind]}{dtype.itemsize * 8}"


@dataclass(frozen=True, slots=True)
class Aval:
    """An abstract array: shape and dtype; ``weak``: from a Python scalar (NEP 50)."""

    shape: Shape
    dtype: Dtype
    weak: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}{'*' if self.weak else ''}[{','.join(map(str, self.shape))}]"


_ARRAYS: dict[tuple[Shape, Dtype], Aval] = {}
_MAX_ARRAYS = 4096


def aval_of_array(array: Any) -> Aval:
    """The aval of ``array``; those of the same shape and dtype are mostly one object, which is found quickly."""
    return strong_aval(array.shape, array.dtype)


def strong_aval(shape: Shape, dtype: Dtype) -> Aval:
    """`aval_of_array` of an array of ``shape`` and ``dtype``."""
    key = shape, dtype
    aval = _ARRAYS.get(key)
    if aval is None:
        if len(_ARRAYS) >= _MAX_ARRAYS:
            _ARRAYS.clear()
        aval = _ARRAYS[key] = Aval(*key)
    return aval


PYTHON_SCALAR_DTYPES: dict[type, Dtype] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


@lru_cache(maxsize=1024)
def _scalar_aval(kind: type) -> Aval:
    # a Python bool promotes like np.bool_, so nothing is lost by calling it strong
    return Aval((), PYTHON_SCALAR_DTYPES[kind], weak=kind is not bool)


class Count(int):
    """A number that follows from a shape, and is an argument of kernels, not part of their text."""


def aval_of_scalar(x: bool | int | float | complex) -> Aval:
    """The weak 0-d aval of a Python number."""
    if isinstance(x, int):
        return _scalar_aval(bool if isinstance(x, bool) else int)
    return _scalar_aval(float if isinstance(x, float) else complex)


def is_number_of_trace(x: Any) -> bool:
    """Whether ``x`` stands for a number in a trace, as arguments and what ``item()`` gives do: an int or a float by
    ``isinstance`` alone."""
    return isinstance(x, (int, float)) and not issubclass(type(x), (int, float))


def broadcast_shapes(what: str, avals: Sequence[Aval]) -> Shape:
    """NumPy's broadcast of the avals' shapes; ``what`` is named in the error.

    Raises:
        ShapeError: if two shapes do not broadcast.
    """
    first = avals[0].shape
    for a in avals:
        if a.shape != first:
            break
    else:
        return first
    ndim = max(a.ndim for a in avals)
    out = [1] * ndim
    for a in avals:
        for k, n in enumerate(a.shape, ndim - a.ndim):
            if n != 1 and out[k] != 1 and out[k] != n:
                listed = " and ".join(str(b) for b in avals)
                raise ShapeError(f"{what}: cannot broadcast {listed} together (axis {k - ndim}: {out[k]} against {n})")
            if n != 1:
                out[k] = n
    return tuple(out)


class ElementCount(int):
    """``x.size``: the number of elements, as in NumPy. Called, as in torch, it gives the shape or one length of it."""

    shape: Shape

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[normalize_axis("size", dim, len(self.shape))]


@lru_cache(maxsize=4096)
def element_count(shape: Shape) -> ElementCount:
    """The number of elements of an array of ``shape``."""
    count = ElementCount(math.prod(shape))
    count.shape = shape
    return count


def normalize_axis(what: str, axis: Any, ndim: int) -> int:
    """``axis`` as an int in ``[0, ndim)``. Raises AxisError if it is out of bounds."""
    try:
        k = operator.index(axis)
    except TypeError:
        k = None
    if k is None or isinstance(axis, bool):
        raise AxisError(f"{what}: axis must be an int, got {shown(axis)}")
    if not -ndim <= k < ndim:
        raise AxisError(f"{what}: axis {k} is out of bounds for an array of {ndim} dimensions")
    return k % ndim if ndim else 0


def is_one_number(x: Any) -> bool:
    """Whether ``x`` is no sequence: an int, or an array without axes, which has a method for iteration all the same."""
    return not isinstance(x, Iterable) or getattr(x, "ndim", 1) == 0


def normalize_axes(what: str, axis: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """``axis`` (None: all) as a sorted tuple of distinct ints in ``[0, ndim)``."""
    if axis is None:
        return tuple(range(ndim))
    listed: tuple[Any, ...] = (axis,) if is_one_number(axis) else tuple(axis)  # type: ignore[arg-type]
    axes = tuple(sorted(normalize_axis(what, k, ndim) for k in listed))
    if len(set(axes)) != len(axes):
        raise AxisError(f"{what}: axis {axis!r} names the same axis twice")
    return axes


def reduced_axes(what: str, axis: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction leaves out: as `normalize_axes`, but axis 0 or -1 of a number is none, as in NumPy and torch."""
    return () if ndim == 0 and is_axis_of_number(axis) else normalize_axes(what, axis, ndim)


def is_axis_of_number(axis: Any) -> bool:
    """Whether reductions of arrays without axes take the int ``axis``."""
    return not isinstance(axis, bool) and hasattr(axis, "__index__") and operator.index(axis) in (0, -1)


def normalize_shape(what: str, shape: Any) -> Shape:
    """``shape`` (an int or a sequence of ints) as a tuple of ints."""
    try:
        return (operator.index(shape),) if is_one_number(shape) else tuple(map(operator.index, shape))
    except TypeError:
        raise ShapeError(f"{what}: a shape is an int or a sequence of ints, got {shown(shape)}") from None


# --- dtype rules ----------------------------------------------------------------------------------
# A rule maps (operand avals, **attrs) to (dtype that each operand is cast to, dtype of the result),
# as in NumPy's ufunc loops.

DtypeRule = Callable[..., tuple[tuple[Dtype, ...], Dtype]]
_WEAK_TYPES: dict[str, type] = {"f": float, "c": complex}


def _key(a: Aval) -> Any:
    if a.weak:
        return _WEAK_TYPES.get(a.dtype.kind, int)
    return a.dtype


@lru_cache(maxsize=4096)
def _ufunc_dtypes(ufunc: np.ufunc, keys: tuple[Any, ...]) -> tuple[tuple[Dtype, ...], Dtype]:
    """NumPy's loop resolution. As in NumPy, float functions of bool and int8 give f16."""
    if all(not isinstance(k, np.dtype) for k in keys):  # only weak operands: Python's dtypes
        keys = tuple(PYTHON_SCALAR_DTYPES[k] for k in keys)
    resolved = ufunc.resolve_dtypes((*keys, None))
    return tuple(resolved[: len(keys)]), resolved[-1]


def like_ufunc(ufunc: np.ufunc) -> DtypeRule:
    """The dtype rule of a NumPy ufunc with one result (NEP 50)."""

    def rule(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
        try:
            return _ufunc_dtypes(ufunc, tuple(map(_key, avals)))
        except TypeError:
            listed = ", ".join(map(str, avals))
            raise DtypeError(f"{ufunc.__name__} is not defined for the dtypes of {listed}") from None

    return rule


def promote(*avals: Aval) -> Dtype:
    """The common dtype of the operands (NEP 50: weak ones only raise the kind)."""
    return _promote_keys(tuple(map(_key, avals)))


@lru_cache(maxsize=4096)
def _promote_keys(keys: tuple[Any, ...]) -> Dtype:
    return np.result_type(*(k if isinstance(k, np.dtype) else k(0) for k in keys))


def same_dtype(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    """All operands and the result in the common dtype."""
    dtype = promote(*avals)
    return (dtype,) * len(avals), dtype


@lru_cache(maxsize=256)
def float_dtype_for(dtype: Dtype) -> Dtype:
    """The dtype a float function computes in for ``dtype``, as ``np.exp`` does."""
    return np.exp.resolve_dtypes((dtype, None))[-1]


def float_dtype(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    """Operands and result in the float dtype to which the common dtype promotes, as in
    ``np.exp``."""
    dtype = float_dtype_for(promote(*avals))
    return (dtype,) * len(avals), dtype


def select_dtype(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    """``where``: a bool condition, both choices and the result in the choices' common dtype."""
    dtype = promote(*avals[1:])
    return (np.dtype(np.bool_), dtype, dtype), dtype


def is_differentiable(dtype: Dtype) -> bool:
    """Only floats and complex numbers have gradients; integers and bools never require grad."""
    return dtype.kind in "fc"


@lru_cache(maxsize=64)
def real_dtype_of(dtype: Dtype) -> Dtype:
    """The dtype of the parts of a complex ``dtype``; of others ``dtype`` itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


@lru_cache(maxsize=64)
def complex_dtype_of(dtype: Dtype) -> Dtype:
    """The complex dtype that holds ``dtype``: complex64 for floats of up to 32 bits, else complex128."""
    if dtype.kind == "f" and dtype.itemsize <= 4:
        return np.dtype(np.complex64)
    return dtype if dtype.kind == "c" else np.dtype(np.complex128)
