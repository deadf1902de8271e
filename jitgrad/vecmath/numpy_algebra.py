"""The meaning of the definitions on NumPy arrays and scalars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.vecmath.algebra import Algebra, Value, exact_multiply_add


def _fma64(a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` through Dekker's exact product; a plain product where the splitting overflows."""
    exact, total = exact_multiply_add(a, b, c)
    return np.where(np.isfinite(exact), exact, total)


@dataclass(frozen=True, slots=True)
class NumpyAlgebra:
    """Operations on arrays or scalars of one float format; ``fused``: `mad` rounds once in float32, as with fma."""

    width: int
    fused: bool = False

    @property
    def _float(self) -> Any:
        return np.float32 if self.width == 32 else np.float64

    @property
    def _int(self) -> Any:
        return np.int32 if self.width == 32 else np.int64

    def wide(self) -> Algebra:
        return NumpyAlgebra(64)

    def const(self, number: float) -> Value:
        return self._float(number)

    def widen(self, x: Value) -> Value:
        return x.astype(np.float64)

    def narrow(self, x: Value) -> Value:
        return x.astype(np.float32)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        if self.width == 64:
            return _fma64(a, b, c)
        return (np.float64(a) * b + c).astype(np.float32)

    def mad(self, a: Value, b: Value, c: Value) -> Value:
        return self.fma(a, b, c) if self.fused and self.width == 32 else a * b + c

    def rint(self, x: Value) -> Value:
        return np.rint(x)

    def floor(self, x: Value) -> Value:
        return np.floor(x)

    def ceil(self, x: Value) -> Value:
        return np.ceil(x)

    def trunc(self, x: Value) -> Value:
        return np.trunc(x)

    def abs(self, x: Value) -> Value:
        return np.abs(x)

    def copysign(self, x: Value, sign: Value) -> Value:
        return np.copysign(x, sign)

    def sqrt(self, x: Value) -> Value:
        return np.sqrt(x)

    def minimum(self, x: Value, y: Value) -> Value:
        return np.minimum(x, y)

    def maximum(self, x: Value, y: Value) -> Value:
        return np.maximum(x, y)

    def fmod(self, x: Value, y: Value) -> Value:
        return np.fmod(x, y)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        return np.where(condition, yes, no)

    def beyond(self, bound: float, slow: Callable[[Algebra, Value], Value], x: Value, usual: Value) -> Value:
        large = np.abs(x) > bound
        return np.where(large, slow(self, x), usual) if np.any(large) else usual

    def bits(self, x: Value) -> Value:
        return np.asarray(x).view(self._int)

    def from_bits(self, i: Value) -> Value:
        return np.asarray(i).view(self._float)

    def lookup(self, table: tuple[float, ...], index: Value) -> Value:
        return np.asarray(table, self._float)[index]


def numpy_callable(definition: Callable[..., Value], fused: bool = False) -> Callable[..., Any]:
    """``definition`` on arrays or scalars, all float32 or all float64; the shape is their broadcast shape.

    Raises:
        TypeError: for operands of another or of mixed dtype.
    """

    def function(*operands: Any) -> Any:
        arrays = [np.asarray(x) for x in operands]
        if len({a.dtype for a in arrays}) != 1 or arrays[0].dtype not in (np.float32, np.float64):
            raise TypeError(f"{definition.__name__}: operands must all be float32 or all float64, "
                            f"got {', '.join(str(a.dtype) for a in arrays)}")
        with np.errstate(all="ignore"):
            out = definition(NumpyAlgebra(arrays[0].itemsize * 8, fused), *arrays)
        return np.asarray(out)[()]

    function.__name__ = definition.__name__
    function.__doc__ = definition.__doc__
    return function
