"""Callables that @jit decorates: methods, modules, partials, nested functions; its options, and disabling it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, RetraceWarning
from jitgrad.jit.decorator import JitFunction, jit

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def tensor(*shape: int) -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape).astype(np.float32))


def assert_calls(f: JitFunction, *calls: tuple[Any, ...], traces: int) -> None:
    """Every call gives what eager gives, and together they need this many traces."""
    for args in calls:
        np.testing.assert_allclose(f(*args).numpy(), f.eager(*args).numpy(), rtol=1e-6)
    assert f.cache_info().traces == traces, f.why_retraced()


class Scaled(jg.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.weight = jg.nn.Parameter(jg.full((3,), factor))
        self.bias = 1.0

    def forward(self, x: Any) -> Any:
        return x * self.weight + self.bias

    @jit
    def doubled(self, x: Any) -> Any:
        return self.forward(x) * 2.0


def test_methods_and_modules() -> None:
    x, a, b = tensor(3), Scaled(2.0), Scaled(3.0)

    np.testing.assert_array_equal(a.doubled(x).detach().numpy(), (x.numpy() * 2 + 1) * 2)
    np.testing.assert_array_equal(b.doubled(x).detach().numpy(), (x.numpy() * 3 + 1) * 2)
    a.bias = 5.0
    np.testing.assert_array_equal(a.doubled(x).detach().numpy(), (x.numpy() * 2 + 5) * 2)
    compiled = jit(b)
    np.testing.assert_array_equal(compiled(x).detach().numpy(), x.numpy() * 3 + 1)
    compiled(x).sum().backward()
    np.testing.assert_array_equal(b.weight.grad.numpy(), x.numpy())


def test_partials_lambdas_and_bound_methods() -> None:
    x = tensor(3)
    module = Scaled(2.0)

    np.testing.assert_array_equal(jit(functools.partial(jg.multiply, x))(x).numpy(), x.numpy() ** 2)
    np.testing.assert_array_equal(jit(module.forward)(x).detach().numpy(), x.numpy() * 2 + 1)
    np.testing.assert_array_equal(jit(jg.tanh)(x).numpy(), np.asarray(jit(lambda x: jg.tanh(x))(x)))
    with pytest.raises(ArgumentError, match="function"):
        jit(3)


def test_functions_nest() -> None:
    inner = jit(lambda x: jg.tanh(x) * 2.0)
    outer = jit(lambda x: inner(x) + inner(x * 2.0))
    x = tensor(3)

    for _ in range(2):
        np.testing.assert_allclose(outer(x).numpy(), np.tanh(x.numpy()) * 2 + np.tanh(x.numpy() * 2) * 2, rtol=1e-6)
    assert outer.cache_info().traces == 1
    assert inner.cache_info().traces == 0, "inside a trace the function itself runs"


def test_recursion() -> None:
    @jit
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    x = tensor(3)
    np.testing.assert_allclose(power(x, 5).numpy(), x.numpy() ** 5, rtol=1e-5)
    assert power.cache_info().traces == 1


def test_options_are_checked() -> None:
    for options in ({"check": "sometimes"}, {"fallback": "maybe"}):
        with pytest.raises(ArgumentError, match="expected one of"):
            jit(lambda x: x, **options)


def test_clear_forgets_everything() -> None:
    f = jit(lambda x: x + 1.0)
    f(tensor(2))
    f.clear()

    assert f.cache_info().calls == 0 and f.why_retraced() == []
    assert_calls(f, (tensor(2),), traces=1)


def test_disabled_functions_run_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: x if x.sum().item() > 0 else -x)
    x = jg.ones(2)

    with jg.disable_jit():
        assert f(x) is x
    monkeypatch.setenv("JITGRAD_DISABLE", "1")
    assert jit(f.eager)(x) is x
    assert f.cache_info().traces == 0


def test_old_programs_of_a_changing_surrounding_are_forgotten(monkeypatch):
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    label = ""

    @jg.jit(check="off")
    def f(x):
        return {label: x * 2}

    with pytest.warns(RetraceWarning, match="was traced 16 times") as caught:
        for k in range(20):
            label = str(k)
            assert [*f(jg.ones(2))] == [label]

    assert len(caught) == 1
    assert [len(f._programs.of(key)) for key in f._programs] == [16]


def test_class_methods_and_static_methods() -> None:
    class Rates:
        factor = 2.0

        @classmethod
        @jit
        def of_class(cls, x: Any) -> Any:
            return x * cls.factor

        @staticmethod
        @jit
        def static(x: Any) -> Any:
            return x * Rates.factor

    class Higher(Rates):
        factor = 5.0

    x = jg.ones(2)
    for factor in (2.0, 3.0):
        Rates.factor = factor
        assert Rates.of_class(x).tolist() == Rates().of_class(x).tolist() == [factor] * 2
        assert Rates.static(x).tolist() == [factor] * 2
        assert Higher.of_class(x).tolist() == [5.0, 5.0]
