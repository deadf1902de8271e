"""Calls that NumPy and torch understand differently: ``x.max(1)``, a tensor here and a pair in torch, and ``x.std()``."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from jitgrad.core.config import get_immutable
from jitgrad.core.errors import MeaningWarning
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor

PAIRS_IN_TORCH = frozenset(["max", "min", "sort", "median"])
UNBIASED_IN_TORCH = frozenset(["var", "std"])


class PositionalAxes:
    """The results, while they are alive, of calls whose axis was given by position."""

    def __init__(self) -> None:
        self.results: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # by id
        # the last result, and the call that gives torch's pair: of one call only, because it keeps the argument alive
        self.last: tuple[weakref.ref[Tensor], Callable[[], Any]] | None = None

    def note(self, result: Tensor, as_pair: Callable[[], Any] | None = None) -> None:
        """Remember ``result``, of which ``as_pair`` computes what torch's call gives."""
        self.results[id(result)] = result
        if as_pair is not None:
            self.last = (weakref.ref(result, self._forget), as_pair)

    def _forget(self, reference: weakref.ref[Tensor]) -> None:
        if self.last is not None and self.last[0] is reference:
            self.last = None

    def pair_of(self, x: Tensor) -> Any:
        """torch's pair of the call that made ``x``, whose parts have names that tensors have not.

        Raises AttributeError if there is no such call, or another one has come after it.
        """
        last = self.last
        if last is None or last[0]() is not x:
            raise AttributeError(
                "a tensor has no 'values' and no 'indices'. torch's pair of them comes from calls with its keyword, such "
                "as x.max(dim=1) or x.sort(dim=1); without it the call is NumPy's, and gives one tensor"
            )
        return last[1]()

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



def warn_of_biased(function: str, x: Any) -> None:
    """Warn that ``var`` or ``std`` without a keyword divides by n here, and by n - 1 in torch."""
    if get_immutable():  # a program for JAX, which divides by n
        return
    given = x.aval if isinstance(x, Tensor) else type(x).__name__
    warnings.warn(
        f"{Origin.capture().full()}: {function} of {given} without a keyword divides by n, as in NumPy; torch divides by n - 1. "
        f"Write {function}(correction=1) for torch's, or correction=0",
        MeaningWarning,
        stacklevel=3,
    )
