"""Caches that a function fills: lru_cache keeps what the trace made, a cached property may be replaced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

X = jg.tensor([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True, params=["python", "cpu"])
def _backend(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)


def _cached(function: Callable[..., Any]) -> Iterator[Any]:
    yield functools.lru_cache(None)(function)
    yield functools.lru_cache(maxsize=1)(function)
    yield functools.cache(function)


def ramp(n: int, scale: float = 1.0) -> Any:
    return jg.tensor(np.arange(1.0, n + 1, dtype=np.float32)) * scale


def window(n: int, scale: float = 1.0) -> Any:
    return jg.sin(jg.arange(n) * scale).reshape(1, -1)[0]


def pair(n: int, scale: float = 1.0) -> Any:
    return {"low": jg.zeros((n,)), "high": [jg.full((n,), scale)]}


@pytest.mark.parametrize("make", [ramp, window], ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("known_before", [False, True])
@pytest.mark.parametrize("check", ["first", "off"])
def test_a_tensor_in_a_cache_is_used_as_in_eager_code(make: Any, kind: int, known_before: bool, check: str) -> None:
    cached = list(_cached(make))[kind]
    compiled = jg.jit(lambda x: (x * cached(x.shape[0], scale=2.0)).sum(), check=check)
    if known_before:
        cached(3, scale=2.0)
    for n in (3, 3, 4, 3, 4):
        x = jg.arange(float(n))
        assert compiled(x).item() == pytest.approx((x * make(n, 2.0)).sum().item())

    assert cached(3, scale=2.0).numpy() == pytest.approx(make(3, 2.0).numpy())
    # one for each length, and one more where the trace filled the cache
    assert compiled.cache_info().traces == (4 - known_before if kind != 1 else compiled.cache_info().traces)


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_change_in_place_of_a_tensor_in_a_cache_that_the_trace_filled(check: str) -> None:
    cached = functools.lru_cache(ramp)
    compiled = jg.jit(lambda x: x * cached(3), check=check)
    for value in (5.0, 6.0, 7.0):
        compiled(X)
        cached(3)[1] = value
        assert compiled(X).tolist() == (X * cached(3)).tolist()
    assert compiled.cache_info().traces == 2


def test_containers_in_a_cache() -> None:
    cached = functools.cache(pair)
    compiled = jg.jit(lambda x: x * cached(3)["high"][0] + cached(3)["low"])
    for _ in range(3):
        assert compiled(X).tolist() == X.tolist()
    cached(3)["high"][0] = jg.full((3,), 5.0)
    assert compiled(X).tolist() == (X * 5.0).tolist()


def test_a_cleared_cache_is_filled_again() -> None:
    scale = [2.0]

    @functools.cache
    def factor(name: str) -> float:
        return scale[0]

    compiled = jg.jit(lambda x: x * factor("a"))
    factor("a")
    assert compiled(X).tolist() == (X * 2).tolist()
    factor.cache_clear()
    assert compiled(X).tolist() == (X * 2).tolist()
    scale[0] = 3.0
    factor.cache_clear()
    assert compiled(X).tolist() == (X * 3).tolist()
    assert compiled.cache_info().traces == 2


class Model:
    def __init__(self) -> None:
        self.weight = jg.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @functools.cached_property
    def mask(self) -> Any:
        return jg.tensor(np.array([1.0, 0.0, 1.0], np.float32))

    @functools.cached_property
    def scale(self) -> float:
        return 2.0

    @jg.jit
    def loss(self, x: Any) -> Any:
        return (x * self.weight * self.mask).sum() * self.scale


def test_a_cached_property_is_filled_and_may_be_replaced() -> None:
    model = Model()
    for _ in range(3):
        assert model.loss(X).item() == 20.0
    assert model.mask.tolist() == [1.0, 0.0, 1.0]
    model.mask = jg.ones((3,))
    assert model.loss(X).item() == 28.0
    model.scale = 3.0
    assert model.loss(X).item() == 42.0
    del model.mask
    assert model.loss(X).item() == 30.0


def test_what_depends_on_an_argument_must_not_stay_in_a_cache() -> None:
    @functools.cache
    def doubled(x: Any) -> Any:
        return x * 2

    compiled = jg.jit(lambda x: doubled(x) + 1, check="off")
    assert compiled(X).tolist() == (X * 2 + 1).tolist()
    assert compiled(X + 1).tolist() == (X * 2 + 3).tolist()


def test_a_cached_function_that_changes_state_is_refused() -> None:
    counts = [0]

    @functools.cache
    def number(k: int) -> int:
        counts[0] += 1
        return k + 1

    compiled = jg.jit(lambda x: x * number(2), check="off", backend="python")
    with pytest.raises(UnguardableError, match="`number` has a cache of results, and changes Python state"):
        compiled(X)
    number(2)
    assert compiled(X).tolist() == (X * 3).tolist()  # from the cache
