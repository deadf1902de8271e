"""Functions that make the same array of the same numbers: what a small one holds is kept, and copied for later calls.

``eye`` and ``linspace`` are several ops on coordinates, where the copy of a small array takes a third of a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.context import creation_device, current_interpreter
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import call_key

_P = ParamSpec("_P")

_LARGEST = 1 << 15  # bytes of an array that is kept
_MOST = 64  # arrays of a function; a program with more starts again
_other_interpreter = current_interpreter.other


def remembered(function: Callable[_P, Tensor]) -> Callable[_P, Tensor]:
    """``function``, which makes a tensor of numbers, texts and dtypes, and looks at no state but the default dtype."""
    known: dict[Any, tuple[np.ndarray[Any, Any], Aval, bool]] = {}

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> Tensor:
        if _other_interpreter() is not None or creation_device.get() is not None:
            return function(*args, **kwargs)
        tensors: list[Tensor] = []
        key = call_key(tensors, args, kwargs)
        if key is None or tensors:
            return function(*args, **kwargs)
        made = known.get(key)
        if made is None:
            out = function(*args, **kwargs)
            data = out._data
            if type(data) is not np.ndarray or data.nbytes > _LARGEST or out.aval.weak:
                return out
            if len(known) >= _MOST:
                known.clear()
            made = known[key] = data.copy(), out.aval, out._requires_grad
        copy = Tensor.of_result(made[0].copy(), made[1])
        copy._requires_grad = made[2]
        return copy

    return call
