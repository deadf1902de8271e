"""Operands of public functions: tensors, arrays and Python numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jitgrad.core.aval import Dtype, aval_of_array, aval_of_scalar
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.tensor import Tensor

Operand: TypeAlias = "Tensor | np.ndarray[Any, Any] | np.generic | bool | int | float | complex"


class ValuesAndIndices(NamedTuple):
    """Elements along an axis, and their positions on it."""

    values: Tensor
    indices: Tensor


# apply_op as the functions with one result see it: the same object, typed
apply: Callable[..., Tensor] = apply_op


def is_number(x: Any) -> bool:
    """Whether ``x`` is a Python number, which is weakly typed (a NumPy scalar is not)."""
    return isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)


def dtype_of(x: Any) -> Dtype | None:
    """The dtype of ``x``; None if it is no operand."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and is_number(x):
        return aval_of_scalar(x).dtype
    return dtype if isinstance(dtype, np.dtype) else None


def contents_of(x: Any, what: str) -> np.ndarray[Any, Any]:
    """The elements of a tensor, an array or a list, on which it depends what the function ``what`` does.

    A trace is right for these alone. Raises TracedValueError for a tensor that depends on its inputs.
    """
    if isinstance(x, Tensor):
        return x.concrete(what)
    array = np.asarray(x)
    current_interpreter.get().rely_on(array)
    return array


def host_array(x: Any) -> np.ndarray[Any, Any] | None:
    """The elements of the tensor ``x``, if they are on the host and ops run at once: what has no gradient, and may have a
    shape that depends on values, is computed from them without ops. None for anything else."""
    data = x._data if type(x) is Tensor else None
    return data if type(data) is np.ndarray and _other_interpreter() is None else None


def as_result(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor without history of an ``array`` that jitgrad made."""
    return Tensor.of_result(array, aval_of_array(array))


_other_interpreter = current_interpreter.other


def is_integral(x: Any) -> bool:
    """Whether ``x`` holds integers or bools, for which rounding is the identity."""
    dtype = dtype_of(x)
    return dtype is not None and dtype.kind in "biu"
