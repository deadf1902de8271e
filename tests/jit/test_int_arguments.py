"""Int arguments: a new value in arithmetic compiles nothing, a shape or a branch retraces; results are eager's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import RetraceWarning
from jitgrad.jit.decorator import jit
from tests.compiled import assert_same_results

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, k: x * k,
    "result": lambda x, k: (x * k, k + 1, {"half": k / 2}),
    "reflected": lambda x, k: (k - x) / (x * x + 1) + k / 4,
    "bias correction": lambda x, k: x / (1 - 0.9**k),
    "int arithmetic": lambda x, k: x * (3 * k - 1) + -k,
    "comparison": lambda x, k: jg.where(x > k, x, k),
    "functions": lambda x, k: jg.maximum(x, k) + jg.clip(x, -k, k),
    "full": lambda x, k: x + jg.where(jg.ones(5, dtype=bool), k, 0.5),
    "isinstance": lambda x, k: x * k if isinstance(k, int) else x,
    "bool tensor": lambda x, k: (x > 1) * k,
    "integers": lambda x, k: jg.astype(x, "i8") * k % 7 // 2 + (jg.astype(x, "i4") & k),
}

NEEDS_VALUE: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda x, k: x[k],
    "slice": lambda x, k: x[:k],
    "axis and roll": lambda x, k: jg.roll(x, k),
    "branch": lambda x, k: x * k if k > 2 else x - k,
    "range": lambda x, k: sum((x * j for j in range(k)), x),
    "conversion": lambda x, k: x * math.sqrt(k) + float(k),
    "power": lambda x, k: x**k,
    "text": lambda x, k: {f"key {k}": x},
    "small integers": lambda x, k: jg.astype(x, "i1") + k,
    "type": lambda x, k: x * {1: 2, 2: 3, 3: 4, 4: 7}[k],
    "number divided by it": lambda x, k: x + 7 // k + 7 % k,
}

VALUES = (1, 2, 3, 4)


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", sorted(ARITHMETIC))
def test_a_new_value_in_arithmetic_compiles_nothing(name: str, dtype: str) -> None:
    f, x = jit(ARITHMETIC[name]), jg.arange(5, dtype=dtype)

    for k in (1, 2, 3, 70_000, 4, -5, 2**31 - 1, 6, 6):
        if not (name == "bias correction" and k < 0):
            assert_same_results((f(x, k),), (f.eager(x, k),))

    assert f.cache_info().traces == 2


@pytest.mark.parametrize("name", sorted(NEEDS_VALUE))
def test_an_int_whose_value_decides_something_stays_static(name: str) -> None:
    f, x = jit(NEEDS_VALUE[name]), jg.arange(5, dtype="f4")

    for _ in range(2):
        for k in VALUES:
            assert_same_results((f(x, k),), (f.eager(x, k),))

    assert f.cache_info().traces == len(VALUES)


def test_only_the_int_whose_value_is_needed_stays_static() -> None:
    f, x = jit(lambda x, k, n: x[:n] * k), jg.arange(5, dtype="f4")

    for n in (2, 3):
        for k in VALUES:
            assert_same_results((f(x, k, n),), (f.eager(x, k, n),))

    assert f.cache_info().traces == 3  # the first, and one for each n


def test_bools_and_ints_beyond_32_bits_are_static() -> None:
    f, x = jit(lambda x, k: x * k), jg.arange(5, dtype="f8")

    for k in (1, 2, True, False, 2**31, 2**62, 2**70, -(2**40)):
        assert_same_results((f(x, k),), (f.eager(x, k),))

    assert f.cache_info().traces == 8


def test_products_of_ints_that_int64_may_not_hold_are_static() -> None:
    f, x = jit(lambda x, k: x + k * k * k), jg.arange(5, dtype="f8")

    for k in (1, 2, 2**31 - 1):
        assert_same_results((f(x, k),), (f.eager(x, k),))

    assert f.cache_info().traces == 3


def test_a_function_that_catches_the_error_is_traced_with_the_value() -> None:
    def f(x: Any, k: int) -> Any:
        try:
            return x * float(k)
        except RuntimeError:
            return x - 1

    compiled, x = jit(f), jg.arange(3, dtype="f4")

    for k in VALUES:
        assert_same_results((compiled(x, k),), (f(x, k),))


@pytest.mark.parametrize("transform", [jg.checkpoint, jg.vmap])
def test_a_function_within_a_transform_that_catches_the_error_is_traced_with_the_value(transform: Any) -> None:
    def f(x: Any, k: int) -> Any:
        def inner(x: Any) -> Any:
            try:
                return x * float(k)
            except RuntimeError:
                return x - 1

        return transform(inner)(x)

    compiled, x = jit(f), jg.arange(3, dtype="f4")

    for k in VALUES:
        assert_same_results((compiled(x, k),), (f(x, k),))
    assert compiled.cache_info().fallbacks == 0


def test_an_error_of_eager_execution_stays_that_error() -> None:
    f, x = jit(lambda x, k: jg.arange(3, dtype="i1") + k), jg.ones(2)

    f(x, 1)
    with pytest.raises(OverflowError):
        f.eager(x, 300)
    with pytest.raises(OverflowError):
        f(x, 300)


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
def test_gradients_and_later_calls_read_the_new_value(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    f = jit(lambda x, k, y=0.5: (jg.sin(x) * k / (1 + k) + y).sum())
    x = jg.tensor([0.1, 0.2, 0.3], requires_grad=True)

    for k in (1, 2, 3, 4, 5, 2**31, 6, 7):
        x.grad = None
        f(x, k, y=0.25).backward()
        expected = np.cos(x.detach().numpy()) * k / (1 + k)
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)

    assert f.cache_info().traces == 3


@pytest.mark.numba
def test_a_whole_step_counts_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    w, m = jg.tensor(np.ones(4, "f4"), requires_grad=True), jg.zeros(4)

    def step(x: Any, t: int) -> None:
        w.grad = None
        ((w * x) ** 2).sum().backward()
        m[...] = 0.9 * m + 0.1 * w.grad
        with jg.no_grad():
            w.copy_(w - 0.1 * m / (1 - 0.9**t))

    compiled, x = jit(step), jg.arange(4, dtype="f4")
    for t in range(1, 8):
        compiled(x, t)
    fused = w.detach().numpy().copy()
    with jg.no_grad():
        w.copy_(jg.ones(4))
        m.copy_(jg.zeros(4))
    for t in range(1, 8):
        step(x, t)

    np.testing.assert_allclose(fused, w.detach().numpy(), rtol=1e-5)
    assert compiled.cache_info().traces == 2


def test_a_trace_for_each_of_many_values_is_warned_of() -> None:
    cache = jg.zeros((20, 2))

    def step(x: Any, position: int) -> Any:
        with jg.no_grad():
            cache[position] = x
        return cache[: position + 1].sum()

    compiled = jg.jit(step, backend="python")
    with pytest.warns(RetraceWarning, match=r"traced for each value, 16 values of argument 1 so far.*decides a branch, a shape"):
        for k in range(18):
            assert compiled(jg.ones(2), k).item() == 2.0 * (k + 1)


def test_powers_of_zero_are_pythons() -> None:
    f = jit(lambda x, k: x * 0.0**k, check="off")

    np.testing.assert_array_equal(f(jg.ones(2), 1).numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(f(jg.ones(2), 0).numpy(), [1.0, 1.0])
    with pytest.raises(ZeroDivisionError):
        f(jg.ones(2), -1)
