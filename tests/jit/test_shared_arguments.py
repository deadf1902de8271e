"""Outside tensors that are arguments as well, and in-place operators on outside names."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from jitgrad.jit.decorator import jit

pytestmark = [
    pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning"),
    pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)]),
]

total = jg.zeros(3)
settings = SimpleNamespace(w=jg.ones(3), inner=SimpleNamespace(k=2.0))


@pytest.fixture(autouse=True)
def chosen_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)


def test_an_argument_may_be_the_outside_tensor_that_is_changed():
    def make() -> Any:
        u = jg.zeros(3)

        def f(v: Any) -> Any:
            u[...] = u + 1
            return v + u

        return u, f

    u, f = make()
    compiled = jit(f)
    twin, eager = make()

    for same in (True, True, True, False, False, True, False, True, True):
        found = compiled(u if same else jg.ones(3))
        expected = eager(twin if same else jg.ones(3))
        assert found.tolist() == expected.tolist()
        assert u.tolist() == twin.tolist()
    assert compiled.cache_info().traces == 2


def test_an_argument_that_is_changed_may_be_an_outside_tensor():
    u, other = jg.ones(3), jg.ones(3)

    @jit
    def f(v: Any) -> Any:
        v *= 2
        return v + u

    assert [f(u).tolist()[0] for _ in range(4)] == [4.0, 8.0, 16.0, 32.0]
    assert [f(other).tolist()[0] for _ in range(3)] == [18.0, 20.0, 24.0]
    assert f(u).tolist() == [64.0] * 3


@pytest.mark.parametrize("first", [True, False])
def test_gradients_of_one_tensor_at_two_places_are_added(first: bool):
    w, v = (jg.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))

    @jit
    def step(x: Any) -> Any:
        loss = (x * w).sum()
        loss.backward()
        return loss

    for same in (first, first, first, not first, not first, first, not first, first):
        w.grad = v.grad = None
        x = w if same else v
        assert step(x).item() == 14.0
        if same:
            assert w.grad.tolist() == [2.0, 4.0, 6.0]
        else:
            assert w.grad.tolist() == v.grad.tolist() == [1.0, 2.0, 3.0]


def test_a_closure_tensor_as_argument_gets_both_gradients_outside():
    w = jg.tensor([1.0, 2.0], requires_grad=True)
    f = jit(lambda v: (v * w).sum())

    for _ in range(4):
        w.grad = None
        f(w).backward()
        assert w.grad.tolist() == [2.0, 4.0]


def test_a_view_of_what_is_changed_is_refused_with_line_and_remedy():
    u = jg.zeros(6)

    def f(v: Any) -> Any:
        u[...] = u + 1
        return v * 2

    line = f.__code__.co_firstlineno
    message = rf"test_shared_arguments.py:{line} changes .*f32\[6\].*argument 0 f32\[2\].*clone"
    with pytest.raises(UnguardableError, match=message):
        jit(f)(u[2:4])
    assert u.tolist() == [0.0] * 6


def test_an_in_place_operator_may_assign_to_a_global():
    def f(x: Any) -> Any:
        global total
        total += 1.0
        return total * x

    before, compiled = total, jit(f)
    start = total.tolist()[0]

    for k in range(1, 5):
        assert compiled(jg.ones(3)).tolist() == [start + k] * 3
    assert total is before
    assert compiled.cache_info().traces == 1


def test_an_in_place_operator_may_assign_to_a_nonlocal_name():
    total, count = jg.zeros(3), 0

    @jit
    def f(x: Any) -> Any:
        nonlocal total
        total -= x
        return total * 2

    assert [f(jg.ones(3)).tolist()[0] for _ in range(4)] == [-2.0, -4.0, -6.0, -8.0]
    total = jg.zeros(3)
    assert f(jg.ones(3)).tolist() == [-2.0] * 3

    @jit
    def counting(x: Any) -> Any:
        nonlocal count
        count += 1
        return x

    for _ in range(4):
        counting(jg.ones(3))
    assert count == 4


def test_attributes_of_a_namespace_through_attrgetter():
    first, both = operator.attrgetter("w"), operator.attrgetter("inner.k", "w")

    f = jit(lambda x: first(settings) * both(settings)[0] * x)

    assert [f(jg.ones(3)).tolist() for _ in range(3)] == [[2.0] * 3] * 3
    settings.inner.k = 3.0
    assert f(jg.ones(3)).tolist() == [3.0] * 3
    settings.inner.k, settings.w = 2.0, jg.tensor(np.full(3, 5.0, "f4"))
    assert f(jg.ones(3)).tolist() == [10.0] * 3
    settings.w = jg.ones(3)
