"""Python ints that an integer dtype does not hold are an error, in kernels too, which would wrap around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

PROGRAMS: dict[str, Callable[[Any, int], Any]] = {
    "multiply": lambda x, k: x * k,
    "radd": lambda x, k: k + x,
    "floor_divide": lambda x, k: x // k,
    "where": lambda x, k: jg.where(x > 1, x, k),
    "maximum": jg.maximum,
    "clip": lambda x, k: jg.clip(x, 0, k),
    "full": lambda x, k: jg.full(x.shape, k, dtype=x.dtype) + x,
    "full_like": lambda x, k: x + jg.full_like(x, k),
}


def in_place(x: Any, k: int) -> Any:
    y = x + 1
    y += k
    return y


@pytest.mark.parametrize("how", ["eager", "fused"])
@pytest.mark.parametrize(("dtype", "number"), [("uint8", -3), ("uint8", 300), ("int8", 200), ("int16", 1 << 15), ("uint64", -1)])
@pytest.mark.parametrize("name", [*PROGRAMS, "in_place"])
def test_a_number_that_does_not_fit_is_an_error(name: str, dtype: str, number: int, how: str) -> None:
    f = PROGRAMS.get(name, in_place)
    x = jg.tensor(np.arange(4).astype(dtype))
    run = jit(f, check="off", backend="python") if how != "eager" else f
    assert run(x, 1).shape == x.shape

    with pytest.raises(OverflowError, match=rf"{number} does not fit in {dtype}.* go from .*x\.astype"):
        run(x, number)


@pytest.mark.parametrize("how", ["eager", "fused"])
def test_comparisons_know_every_number(how: str) -> None:
    def f(x: Any) -> Any:
        return x > 300, x == -1, x < 10**30

    x = jg.tensor(np.arange(4).astype("uint8"))
    found = (jit(f, check="off", backend="python") if how == "fused" else f)(x)

    assert [r.tolist() for r in found] == [[False] * 4, [False] * 4, [True] * 4]


@pytest.mark.parametrize("how", ["eager", "fused"])
@pytest.mark.parametrize(("dtype", "number"), [("uint8", 255), ("int8", -128), ("uint64", 2**64 - 1), ("float32", 10**9)])
def test_the_last_numbers_fit(dtype: str, number: int, how: str) -> None:
    def f(x: Any) -> Any:
        return jg.where(x > 1, x, number)

    x = jg.tensor(np.arange(4).astype(dtype))
    found = (jit(f, check="off", backend="python") if how == "fused" else f)(x)

    assert found.dtype == x.dtype and found.tolist() == [number, number, 2, 3]
