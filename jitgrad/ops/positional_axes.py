"""Results of ``x.max(1)`` and the like, which are tensors here and pairs in torch: a use as a pair gets a warning."""

from __future__ import annotations

import warnings
import weakref
from typing import NoReturn

from jitgrad.core.errors import MeaningWarning
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor

PAIRS_IN_TORCH = frozenset(["max", "min", "sort", "median"])


class PositionalAxes:
    """The results, while they are alive, of calls whose axis was given by position."""

    def __init__(self) -> None:
        self.results: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # by id

    def note(self, result: Tensor) -> None:
        """Remember ``result``."""
        self.results[id(result)] = result

    def check(self, x: Tensor, use: str) -> None:
        """Warn if ``x`` is such a result: ``use`` takes an element of it here, and one of a pair in torch."""
        if self.results.pop(id(x), None) is x:
            warnings.warn(
                f"{Origin.capture().full()}: {use} of the result of max, min, sort or median of an axis given by position: "
                f"as in NumPy, that is one tensor {x.aval}, not torch's pair of values and indices. Write x.max(dim=1) for "
                "the pair, or x.max(axis=1) for the tensor",
                MeaningWarning,
                stacklevel=3,
            )


POSITIONAL_AXES: PositionalAxes = PositionalAxes()


def no_pair(_self: Tensor) -> NoReturn:
    """torch's name of a part of a pair, which tensors have not."""
    raise AttributeError(
        "a tensor has no 'values' and no 'indices'. torch's pair of them comes from calls with its keyword, such as "
        "x.max(dim=1) or x.sort(dim=1); without it the call is NumPy's, and gives one tensor"
    )
