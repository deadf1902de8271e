"""Arithmetic of number arguments in which Python raises an error, or gives a complex number, for some of the values."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import jitgrad as jg


def _caught(x: Any, k: Any) -> Any:
    try:
        return x * (1 / k)
    except ZeroDivisionError:
        return x * 7


def _unused(x: Any, k: Any) -> Any:
    1 / k
    return x * 2


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "1 / k": lambda x, k: x * (1 / k),
    "k // n and k % n": lambda x, k: (x * (7.5 // k), x * (7.5 % k)),
    "k ** n": lambda x, k: x * (k**2),
    "root": lambda x, k: k ** (1 / 3),
    "1 - k ** n": lambda x, k: x / (1 - k**3) * (2.0 / (1 - k)),
    "signs": lambda x, k: x * (1 / -k) + abs(-k) / (abs(k) - 1),
    "inf and nan": lambda x, k: x * (math.inf / k) + k / math.nan,
    "caught": _caught,
    "unused": _unused,
}
VALUES = (2.0, 3.0, 0.0, 1.0, -8.0, 0.0, 1e200, -0.5, 2, 0, 5, 2.0, 3.0)


def _outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        result = f(*args)
    except ArithmeticError as error:
        return type(error)
    return [repr(part.tolist()) if isinstance(part, jg.Tensor) else part for part in jg.tree_util.tree_leaves(result)]


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_and_complex_numbers_are_those_of_eager_execution(name: str, backend: str) -> None:
    f, x = jg.jit(FUNCTIONS[name], backend=backend, check="off"), jg.tensor([1.0, 2.0], dtype=jg.float64)
    for k in VALUES:
        assert str(_outcome(f, x, k)) == str(_outcome(FUNCTIONS[name], x, k)), k


def test_the_program_is_one_for_all_values_that_raise_nothing() -> None:
    f = jg.jit(lambda x, k: x * (1 / k) * (2.0 / (1 - k**2)), backend="python", check="off")
    for k in (2.0, 3.0, 4.0, 5.0):
        f(jg.ones(2), k)
    assert f.cache_info().traces == 1
    with pytest.raises(ZeroDivisionError):
        f(jg.ones(2), 1.0)


def test_numbers_that_callers_change_outside() -> None:
    settings = SimpleNamespace(n=1.0)
    f = jg.jit(lambda x: x * (2 / settings.n), backend="python", check="off")
    for n in (1.0, 2.0, 4.0, 8.0):
        settings.n = n
        assert f(jg.ones(1)).tolist() == [2 / n]
    settings.n = 0.0
    with pytest.raises(ZeroDivisionError):
        f(jg.ones(1))


def test_products_in_long_loops_are_computed() -> None:
    def f(x: Any, k: float) -> Any:
        product = 1.0
        for _ in range(60):
            product = product * k / (k + 1)
        return x * product

    compiled = jg.jit(f, backend="python", check="off")
    for k in (1.0, 2.0, 0.0, 3.0):
        assert compiled(jg.ones((), dtype=jg.float64), k).item() == pytest.approx(f(jg.ones((), dtype=jg.float64), k).item())
