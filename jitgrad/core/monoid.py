"""What a reduction repeats: one record per monoid, from which its op, kernels and passes follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Dtype
from jitgrad.core.long_products import is_long_product, long_product
from jitgrad.core.long_sums import is_long, long_sum


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative operation with a neutral element.

    Attributes:
        ufunc: combines two elements; the elementwise op of its name does the same.
        neutral: the neutral element of a dtype.
        combine: kernel text for an accumulator ``{a}`` and an element ``{x}``.
        result: the dtype of the reduction of a dtype.
        on_floats: the same as ``combine`` for floats whose order may change, so that they run in vector lanes; "" where
            the order does not matter.
        on_bools: the monoid that does the same for bools, if ``combine`` has no meaning for them.
        in_f64: whether partial results of floats are carried in float64, so that long sums are as exact as pairwise ones.
    """

    name: str
    ufunc: np.ufunc
    neutral: Callable[[Dtype], Any]
    combine: str
    result: Callable[[Dtype], Dtype]
    on_floats: str = ""
    on_bools: Monoid | None = None
    in_f64: bool = False

    @property
    def step(self) -> str:
        """The name of the elementwise op that combines two elements."""
        return self.ufunc.__name__

    @property
    def has_empty_result(self) -> bool:
        """Whether no elements have a result: there is no largest of none."""
        return self.ufunc.identity is not None

    def for_dtype(self, dtype: Dtype) -> Monoid:
        """The monoid that kernels use for elements of ``dtype``."""
        return self.on_bools if dtype.kind == "b" and self.on_bools is not None else self

    def accumulator(self, dtype: Dtype) -> Dtype:
        """The dtype in which partial results for a result of ``dtype`` are carried."""
        return np.dtype(np.float64) if self.in_f64 and dtype.kind == "f" else dtype

    def reduce(self, x: Array, *, axis: Sequence[int]) -> Any:
        """The reduction in NumPy; long sums along leading axes by `jitgrad.core.long_sums`.

        float16 is summed in float32 and rounded once, as torch and JAX do. NumPy rounds to float16 after every step
        along an axis that is not the last: 4,096 ones add up to 2,048.
        """
        x = np.asarray(x)
        wide = np.dtype(np.float32) if self.on_floats and x.dtype == np.float16 else None
        if self.in_f64 and is_long(x.shape, axis, x.dtype):
            result = long_sum(x, axis, wide)
        elif self.ufunc is np.multiply and is_long_product(x.shape, axis, x.dtype):
            result = long_product(x, axis, wide)
        else:
            result = self.ufunc.reduce(x, axis=axis, dtype=wide)
        return result if wide is None else result.astype(x.dtype)


def sum_dtype(dtype: Dtype) -> Dtype:
    """The dtype NumPy sums ``dtype`` in: bools and ints in 64 bits, floats in their own."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def _bool_dtype(_: Dtype) -> Dtype:
    return np.dtype(np.bool_)


def _own_dtype(dtype: Dtype) -> Dtype:
    return dtype


def _lowest(dtype: Dtype) -> Any:
    if dtype.kind == "b":
        return False
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: Dtype) -> Any:
    if dtype.kind == "b":
        return True
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


SUM_MONOID = Monoid("sum", np.add, lambda _: 0, "{a} + {x}", sum_dtype, on_floats="reassoc_add({a}, {x})", in_f64=True)
PROD_MONOID = Monoid("prod", np.multiply, lambda _: 1, "{a} * {x}", sum_dtype, on_floats="reassoc_mul({a}, {x})")
ANY_MONOID = Monoid("any", np.logical_or, lambda _: 0, "to_bool({a} | {x})", _bool_dtype)
ALL_MONOID = Monoid("all", np.logical_and, lambda _: 1, "to_bool({a} & {x})", _bool_dtype)
# The element comes first: LLVM turns "keep the accumulator where it is NaN" into a masked store, which is eight times
# slower on AMD.
MAX_MONOID = Monoid("max", np.maximum, _lowest, "fmax({x}, {a})", _own_dtype, on_bools=ANY_MONOID)
MIN_MONOID = Monoid("min", np.minimum, _highest, "fmin({x}, {a})", _own_dtype, on_bools=ALL_MONOID)
