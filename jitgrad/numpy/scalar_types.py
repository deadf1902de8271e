"""NumPy's scalar types by name: dtypes that are called to convert, so that ``float64(x)`` keeps the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of


class _ScalarType(type):
    """The type of the scalar types: ``float64(x)`` is a tensor, ``dtype=float64`` and ``x.dtype == float64`` work."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any = 0, /) -> Tensor:
        return tensor_of(x, cls.dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, _ScalarType):
            return cls.dtype == other.dtype
        return cls.dtype == other if isinstance(other, (np.dtype, type, str)) else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"jitgrad.numpy.{cls.__name__}"


def _scalar_type(name: str) -> Any:
    dtype = np.dtype(name)
    return _ScalarType(name, (), {"dtype": dtype, "__module__": __name__, "__doc__": f"Converts to {dtype}, and names it."})


bool_ = _scalar_type("bool")
int8, int16, int32, int64 = map(_scalar_type, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(_scalar_type, ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = map(_scalar_type, ("float16", "float32", "float64"))
half, single, double = float16, float32, float64
int_, uint, byte, ubyte, short, intc, longlong = int64, uint64, int8, uint8, int16, int32, int64
