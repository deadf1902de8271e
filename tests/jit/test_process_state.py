"""Settings of the process that a function changes by code that no guard follows: refused, and put back."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

CHANGES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "default dtype": (lambda: jg.set_default_dtype(jg.float64), lambda: jg.ones(1).dtype),
    "grad mode": (lambda: jg.set_grad_enabled(False), jg.is_grad_enabled),
    "number of threads": (lambda: jg.set_num_threads(jg.get_num_threads() + 1), jg.get_num_threads),
    "np.seterr": (lambda: np.seterr(divide="print"), np.geterr),
    "np.set_printoptions": (lambda: np.set_printoptions(precision=3), np.get_printoptions),
    "recursion limit": (lambda: sys.setrecursionlimit(4321), sys.getrecursionlimit),
    "warnings": (lambda: warnings.simplefilter("ignore"), lambda: [*warnings.filters]),
    "np.random": (lambda: np.random.seed(1), lambda: np.random.get_state()[1].tobytes()),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_function_that_changes_settings_is_refused_and_undone(name: str) -> None:
    change, setting = CHANGES[name]

    def f(x: Any) -> Any:
        change()
        return x * 2

    before = setting()
    with pytest.raises(UnguardableError, match=r"changes|cannot be guarded"):
        jg.jit(f, backend="python", check="off")(jg.ones(2))
    assert setting() == before


def test_settings_that_are_put_back_are_no_change() -> None:
    def f(x: Any) -> Any:
        with np.errstate(all="ignore"), jg.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return jg.log(x)

    assert jg.jit(f, backend="python", check="off")(jg.ones(2)).tolist() == [0.0, 0.0]
