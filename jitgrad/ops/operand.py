"""What the public functions take: tensors, arrays and Python numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from jitgrad.aval import Dtype, aval_of_scalar
from jitgrad.dispatch import apply_op
from jitgrad.tensor import Tensor

Operand: TypeAlias = "Tensor | np.ndarray[Any, Any] | np.generic | bool | int | float"

# apply_op as the functions with one result see it: the same object, typed
apply: Callable[..., Tensor] = apply_op


def is_number(x: Any) -> bool:
    """Whether ``x`` is a Python number, which is weakly typed (a NumPy scalar is not)."""
    return isinstance(x, (bool, int, float)) and not isinstance(x, np.generic)


def dtype_of(x: Any) -> Dtype | None:
    """The dtype that ``x`` brings along, None if it is no operand."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and is_number(x):
        return aval_of_scalar(x).dtype
    return dtype if isinstance(dtype, np.dtype) else None


def is_integral(x: Any) -> bool:
    """Whether ``x`` holds integers or bools, for which rounding is the identity."""
    dtype = dtype_of(x)
    return dtype is not None and dtype.kind in "biu"


BLOCK = 8192  # elements: the temporaries of a formula stay in the L1 and L2 caches


def blockwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, a formula on arrays of one float dtype, applied block by block.

    Over whole arrays each of its temporaries would be memory fresh from the system, and its page faults would cost
    several times the arithmetic.
    """

    def call(*arrays: np.ndarray[Any, Any]) -> Any:
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        count = math.prod(shape)
        if count <= BLOCK:
            return function(*arrays)
        flat = [x if x.ndim == 0 else np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in arrays]
        out = np.empty(count, arrays[0].dtype)
        for start in range(0, count, BLOCK):
            stop = start + BLOCK
            out[start:stop] = function(*(x if x.ndim == 0 else x[start:stop] for x in flat))
        return out.reshape(shape)

    return call
