"""Arguments as NumPy's functions take them: lists, numbers and arrays as tensors; keywords that have no meaning here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

import numpy as np

from jitgrad.core.aval import Dtype, is_number_of_trace
from jitgrad.core.errors import ArgumentError, OperandError
from jitgrad.core.parameters import parameters_of
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.numpy.output import written_into
from jitgrad.ops import arithmetic, comparison, creation, joining
from jitgrad.ops.operand import is_number

FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
_PYTHON = (bool, int, float, complex)
_REMEDIES = {
    "out": "tensors come out of functions, so assign the result: y[...] = {0}(...)",
    "where": "choose the elements with where(condition, x, other) before",
    "order": "the memory layout of tensors is not chosen; leave it out",
    "subok": "there are no subclasses of tensors; leave it out",
    "like": "leave it out; the functions of this module always make tensors",
}


def refuse(function: str, **given: Any) -> None:
    """Raise ArgumentError for the first keyword that has another value than its default None.

    ``where=True``, ``order="C"`` and ``subok=True``, which change nothing, are accepted.
    """
    for name, value in given.items():
        harmless = value is True or (isinstance(value, str) and value in "KACk")
        if value is not None and not harmless:
            remedy = _REMEDIES.get(name, "leave it out").format(function)
            raise ArgumentError(f"jitgrad.numpy.{function} takes no {name}=: {remedy}")


def _holds_tensor(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_holds_tensor, x))
    return isinstance(x, Tensor) or is_number_of_trace(x)


def operand(x: Any) -> Any:
    """``x`` for an op: lists as arrays, or as a stack of the tensors in them; everything else as it is."""
    if isinstance(x, (list, tuple)):
        return joining.stack([tensor_of(v) for v in x]) if _holds_tensor(x) else _array(x)
    if isinstance(x, (Tensor, np.ndarray, np.generic, *_PYTHON)):
        return x
    return _array(x) if hasattr(x, "__array__") else x


def _array(x: Any) -> Any:
    try:
        return np.asarray(x)
    except ValueError as error:
        raise OperandError(f"jitgrad.numpy: cannot make an array of {type(x).__name__}: {error}") from None


def tensor_of(x: Any, dtype: Any = None) -> Tensor:
    """``x`` as a tensor with NumPy's default dtypes: Python floats are float64, ints int64."""
    given = operand(x)
    if type(given) in _PYTHON:
        given = np.asarray(given)
    elif is_number_of_trace(given):
        dtype = dtype or (INT64 if isinstance(given, int) else FLOAT64)
    elif type(given) is Tensor and given.aval.weak and dtype is None:  # it stands for a Python number in a trace
        given = creation.clone(given)
    return creation.asarray(given, dtype=dtype)


def tensors_of(xs: Any) -> list[Tensor]:
    """Each element of a sequence as a tensor."""
    return [tensor_of(x) for x in xs]


def in_dtype(x: Tensor, dtype: Any) -> Tensor:
    """``x`` in ``dtype``, or as it is for None."""
    return x if dtype is None else arithmetic.astype(x, check_supported("astype", dtype), copy=False)


def floating(x: Any) -> Tensor:
    """``x`` as a tensor of floats or complex numbers: ints and bools as float64."""
    given = tensor_of(x)
    return given if given.dtype.kind in "fc" else arithmetic.astype(given, FLOAT64)


def floats_of(*xs: Any) -> list[Any]:
    """``xs`` in the float dtype in which NumPy's ufuncs compute with them together; Python numbers as they are."""
    given = [operand(x) for x in xs]
    if all(map(is_number, given)):
        return [tensor_of(x, FLOAT64) for x in given]
    weak = [x.__class__(0) if is_number(x) else tensor_of(x).dtype for x in given]
    dtype = np.result_type(np.float16, *weak)
    return [x if is_number(x) else in_dtype(tensor_of(x), dtype) for x in given]


def float_of(x: Any) -> Tensor:
    """``x`` in the float dtype in which NumPy's ufuncs compute with it: float16 for int8, float64 for int32."""
    return tensor_of(floats_of(x)[0])


def common_dtype(*xs: Tensor) -> Dtype:
    """The dtype that ``xs`` together have in NumPy."""
    return np.result_type(*(x.dtype for x in xs))


class Ufunc(Protocol):
    """A function of arrays with the keywords of NumPy's ufuncs; ``where`` needs ``out``, whose elements it leaves."""

    def __call__(self, *xs: Any, out: Any = None, where: Any = True, dtype: Any = None, **more: Any) -> Tensor: ...


def as_ufunc(function: Callable[..., Any], name: str | None = None) -> Ufunc:
    """``function`` with what NumPy's ufuncs take: lists as operands, and ``dtype=``, to which these are converted first."""
    shown = name or function.__name__
    parameters = parameters_of(function)
    inputs = sys.maxsize if parameters.rest else len(parameters.positional)

    @wraps(function)
    def call(*xs: Any, out: Any = None, where: Any = True, dtype: Any = None, **more: Any) -> Any:
        if len(xs) > inputs:
            xs, out = xs[:inputs], xs[inputs]
        if (where is not True and out is None) or more:
            refuse(shown, where=where, **{k: v for k, v in more.items() if k != "casting"})
        operands = [x if type(x) is Tensor else operand(x) for x in xs]
        result = function(*(operands if dtype is None else [tensor_of(x, dtype) for x in operands]))
        if out is None:
            return result
        into = out[0] if isinstance(out, tuple) and out else out
        return written_into(shown, into, result if where is True else comparison.where(where, result, into), broadcasts=True)

    call.__name__ = call.__qualname__ = shown
    return call
