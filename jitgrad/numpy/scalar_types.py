"""NumPy's scalar types by name: dtypes that are called to convert, so that ``float64(x)`` keeps the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of


class CallableDtype(type):
    """The type of the scalar types: ``float64(x)`` is a tensor, ``dtype=float64`` and ``x.dtype == float64`` work."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any = 0, /) -> Tensor:
        return tensor_of(x, cls.dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, CallableDtype):
            return cls.dtype == other.dtype
        return cls.dtype == other if isinstance(other, (np.dtype, type, str)) else NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"jitgrad.numpy.{cls.__name__}"


def _scalar_type(name: str) -> CallableDtype:
    dtype = np.dtype(name)
    return CallableDtype(name, (), {"dtype": dtype, "__module__": __name__, "__doc__": f"Converts to {dtype}, and names it."})


bool_: CallableDtype = _scalar_type("bool")
int8: CallableDtype = _scalar_type("int8")
int16: CallableDtype = _scalar_type("int16")
int32: CallableDtype = _scalar_type("int32")
int64: CallableDtype = _scalar_type("int64")
uint8: CallableDtype = _scalar_type("uint8")
uint16: CallableDtype = _scalar_type("uint16")
uint32: CallableDtype = _scalar_type("uint32")
uint64: CallableDtype = _scalar_type("uint64")
float16: CallableDtype = _scalar_type("float16")
float32: CallableDtype = _scalar_type("float32")
float64: CallableDtype = _scalar_type("float64")
complex64: CallableDtype = _scalar_type("complex64")
complex128: CallableDtype = _scalar_type("complex128")
csingle: CallableDtype = complex64
cdouble: CallableDtype = complex128
half: CallableDtype = float16
single: CallableDtype = float32
double: CallableDtype = float64
int_: CallableDtype = int64
uint: CallableDtype = uint64
byte: CallableDtype = int8
ubyte: CallableDtype = uint8
short: CallableDtype = int16
intc: CallableDtype = int32
longlong: CallableDtype = int64
