"""The algebra of NumPy arrays and scalars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.vecmath.algebra import Algebra, MathValue, exact_multiply_add


def _fma64(a: MathValue, b: MathValue, c: MathValue) -> MathValue:
    """``a * b + c`` by Dekker's exact product; a plain product where that overflows."""
    exact, total = exact_multiply_add(a, b, c)
    return np.where(np.isfinite(exact), exact, total)


@dataclass(frozen=True, slots=True)
class NumpyAlgebra:
    """Operations in one float format; ``fused``: `mad` rounds once in float32, as with fma."""

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

    def unfused(self) -> Algebra:
        return NumpyAlgebra(self.width)

    def const(self, number: float) -> MathValue:
        return self._float(number)

    def widen(self, x: MathValue) -> MathValue:
        return x.astype(np.float64)

    def narrow(self, x: MathValue) -> MathValue:
        return x.astype(np.float32)

    def fma(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        if self.width == 64:
            return _fma64(a, b, c)
        return (np.float64(a) * b + c).astype(np.float32)

    def mad(self, a: MathValue, b: MathValue, c: MathValue) -> MathValue:
        return self.fma(a, b, c) if self.fused and self.width == 32 else a * b + c

    def rint(self, x: MathValue) -> MathValue:
        return np.rint(x)

    def floor(self, x: MathValue) -> MathValue:
        return np.floor(x)

    def ceil(self, x: MathValue) -> MathValue:
        return np.ceil(x)

    def trunc(self, x: MathValue) -> MathValue:
        return np.trunc(x)

    def abs(self, x: MathValue) -> MathValue:
        return np.abs(x)

    def copysign(self, x: MathValue, sign: MathValue) -> MathValue:
        return np.copysign(x, sign)

    def sqrt(self, x: MathValue) -> MathValue:
        return np.sqrt(x)

    def minimum(self, x: MathValue, y: MathValue) -> MathValue:
        return np.minimum(x, y)

    def maximum(self, x: MathValue, y: MathValue) -> MathValue:
        return np.maximum(x, y)

    def fmod(self, x: MathValue, y: MathValue) -> MathValue:
        return np.fmod(x, y)

    def select(self, condition: MathValue, yes: MathValue, no: MathValue) -> MathValue:
        return np.where(condition, yes, no)

    def beyond(self, bound: float, slow: Callable[[Algebra, MathValue], MathValue], x: MathValue, usual: MathValue) -> MathValue:
        large = np.abs(x) > bound
        return np.where(large, slow(self, x), usual) if np.any(large) else usual

    def bits(self, x: MathValue) -> MathValue:
        return np.asarray(x).view(self._int)

    def from_bits(self, i: MathValue) -> MathValue:
        return np.asarray(i).view(self._float)

    def lookup(self, table: tuple[float, ...], index: MathValue) -> MathValue:
        return np.asarray(table, self._float)[index]


def numpy_callable(definition: Callable[..., MathValue], fused: bool = False) -> Callable[..., Any]:
    """``definition`` on arrays or scalars, all float32 or all float64, which broadcast.

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
