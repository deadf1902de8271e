"""Indices with arrays in eager execution, as NumPy takes them."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.tensor import Tensor
from jitgrad.eager.numpy_errors import run_quietly

_ndarray = np.ndarray
_PLAIN = frozenset({int, slice, EllipsisType, type(None)})
_INT = frozenset({int})
_other_interpreter = current_interpreter.other


def array_key(index: Any) -> tuple[Any, ...] | None:
    """``index``, of tensors and arrays of integers or bools with axes, lists of ints, and what else selects parts, with arrays.

    None for another one: without an array, or with one that is not in C order, in which NumPy would write.
    """
    key, arrays = [], 0
    for entry in index if type(index) is tuple else (index,):
        kind = type(entry)
        if kind in _PLAIN:
            key.append(entry)
            continue
        if kind is list and _INT.issuperset(map(type, entry)):
            entry = np.asarray(entry)
        data = entry._data if kind is Tensor else entry
        if type(data) is not _ndarray or data.dtype.kind not in "iub" or not data.ndim or not data.flags.c_contiguous:
            return None
        key.append(data)
        arrays += 1
    return tuple(key) if arrays else None


def taken_at(x: Tensor, index: Any) -> Tensor | None:
    """``x[index]`` for an `array_key`, without a history; None where its ops are to be applied, which say what is wrong."""
    data = x._data
    if type(data) is not _ndarray or _other_interpreter() is not None or (x._requires_grad and grad_enabled.get()):
        return None
    key = array_key(index)
    if key is None:
        return None
    try:
        return Tensor(run_quietly(data.__getitem__, key))
    except (IndexError, RuntimeError, TypeError, ValueError):  # or another thread is within NumPy's context
        return None
