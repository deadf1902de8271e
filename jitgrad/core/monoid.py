"""What a reduction repeats: one record per monoid, from which kernels, passes and tests follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative operation with a neutral element.

    Attributes:
        step: name of the elementwise op that combines two elements.
        neutral: the neutral element of a dtype.
        combine: kernel text for an accumulator ``{a}`` and an element ``{x}``.
        on_floats: the same for floats whose order may change, so that they run in vector lanes; "" where the order of
            ``combine`` does not matter.
        on_bools: the monoid that does the same for bools, if ``combine`` has no meaning for them.
        in_f64: whether partial results of floats are carried in float64, so that long sums are as exact as pairwise ones.
    """

    name: str
    step: str
    neutral: Callable[[Dtype], Any]
    combine: str
    on_floats: str = ""
    on_bools: Monoid | None = None
    in_f64: bool = False

    def for_dtype(self, dtype: Dtype) -> Monoid:
        """The monoid that kernels use for elements of ``dtype``."""
        return self.on_bools if dtype.kind == "b" and self.on_bools is not None else self

    def accumulator(self, dtype: Dtype) -> Dtype:
        """The dtype in which partial results for a result of ``dtype`` are carried."""
        return np.dtype(np.float64) if self.in_f64 and dtype.kind == "f" else dtype


def _lowest(dtype: Dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: Dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


_ANY = Monoid("any", "logical_or", lambda _: 0, "to_bool({a} | {x})")
_ALL = Monoid("all", "logical_and", lambda _: 1, "to_bool({a} & {x})")

MONOIDS = {
    monoid.name: monoid
    for monoid in (
        Monoid("sum", "add", lambda _: 0, "{a} + {x}", on_floats="reassoc_add({a}, {x})", in_f64=True),
        Monoid("prod", "multiply", lambda _: 1, "{a} * {x}", on_floats="reassoc_mul({a}, {x})"),
        # The element comes first: LLVM turns "keep the accumulator where it is NaN" into a masked store, which is eight
        # times slower on AMD.
        Monoid("max", "maximum", _lowest, "fmax({x}, {a})", on_bools=_ANY),
        Monoid("min", "minimum", _highest, "fmin({x}, {a})", on_bools=_ALL),
        _ANY,
        _ALL,
    )
}
