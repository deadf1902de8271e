"""torch's constructors by type: ``torch.Tensor``, ``torch.FloatTensor`` and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import empty, tensor


def _constructor(name: str, dtype: Dtype) -> Callable[..., Tensor]:
    def construct(*data: Any) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            given = data[0] if isinstance(data[0], Tensor | np.ndarray) else np.array(data[0])
            return tensor(given if given.size else np.zeros(given.shape, dtype), dtype=dtype)
        return empty(data or (0,), dtype=dtype)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = (
        f"A tensor of ``{dtype}``: a copy of an array, a tensor or a list, or without values of a shape."
    )
    return construct


FloatTensor: Callable[..., Tensor] = _constructor("FloatTensor", np.dtype(np.float32))
DoubleTensor: Callable[..., Tensor] = _constructor("DoubleTensor", np.dtype(np.float64))
HalfTensor: Callable[..., Tensor] = _constructor("HalfTensor", np.dtype(np.float16))
LongTensor: Callable[..., Tensor] = _constructor("LongTensor", np.dtype(np.int64))
IntTensor: Callable[..., Tensor] = _constructor("IntTensor", np.dtype(np.int32))
ByteTensor: Callable[..., Tensor] = _constructor("ByteTensor", np.dtype(np.uint8))
BoolTensor: Callable[..., Tensor] = _constructor("BoolTensor", np.dtype(np.bool_))
