"""Assignments to parts of arrays: in place if no other op reads the old values, else in a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import JitFunction, jit

BACKENDS = pytest.mark.parametrize("backend", ["python", "cpu"])


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape[0]).standard_normal(shape).astype(np.float32)


def steps(function: JitFunction, *args: Any) -> int:
    """How many steps a call takes; all of them are kernels."""
    found = function.lookup(*args).program.plan.steps
    assert all(isinstance(s, KernelStep) for s in found)
    return len(found)


def rows_one_by_one(x: Any, w: Any) -> Any:
    out, h = jg.zeros((7, 4)), jg.zeros(4)
    for t in range(7):
        h = jg.tanh(x[t] + w * h)
        out[t] = h
    return out


@BACKENDS
def test_rows_of_a_loop_over_time_are_written_to_one_array(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    x, w = jg.tensor(array(7, 4)), jg.tensor(array(4))
    f = jit(rows_one_by_one)

    for _ in range(3):
        np.testing.assert_allclose(f(x, w).numpy(), rows_one_by_one(x, w).numpy(), rtol=1e-6)

    assert steps(f, x, w) == 1 + 1 + 7  # zeros, all rows in one kernel, and each to its place
    assert bool(f._fast_calls) == (backend == "cpu")


@BACKENDS
def test_gradients_flow_through_assignments(backend: str, monkeypatch: pytest.MonkeyPatch, same: Any) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    x, w = jg.tensor(array(7, 4)), jg.tensor(array(4))

    same(jg.value_and_grad(lambda x, w: (rows_one_by_one(x, w) ** 2).sum(), argnums=(0, 1)), x, w, rtol=1e-5, atol=1e-6)


def smoothed(y: Any) -> None:
    y[1:-1] = (y[2:] + y[:-2]) * 0.5


def shifted(y: Any) -> None:
    y[2:] = y[:-2]


def reversed_part(y: Any) -> None:
    y[5:1:-1] = y[2:6] * 2.0


def nothing(y: Any) -> None:
    y[3:3] = 5.0


def twice(y: Any) -> None:
    y[:4] = y[4:8] + 1.0
    y[2:6] = y[:4] * 3.0


def cast(y: Any) -> None:
    y[::3] = np.arange(4, dtype=np.float64)


CHANGES = pytest.mark.parametrize("change", [smoothed, shifted, reversed_part, nothing, twice, cast])


@CHANGES
@BACKENDS
def test_a_local_array(change: Callable[[Any], None], backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    x = array(12)

    def f(x: Any) -> Any:
        y = x * 2.0
        change(y)
        return y

    g = jit(f, check="off")
    for _ in range(3):
        np.testing.assert_allclose(g(jg.tensor(x)).numpy(), f(x), rtol=1e-6)


@CHANGES
@BACKENDS
def test_an_array_whose_old_values_are_needed(
    change: Callable[[Any], None], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old array is a result, too, and a view of it was taken before."""
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    x = array(12)

    def f(x: Any, copy: Any) -> Any:
        y = x * 2.0
        before = copy(y)
        part = before[2:5]
        change(y)
        return y, before, part + y[2:5]

    g = jit(lambda x: f(x, lambda y: y.clone()), check="off")
    for _ in range(3):
        for a, b in zip(g(jg.tensor(x)), f(x, np.copy), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)


@CHANGES
@BACKENDS
def test_state_changes_where_it_lies(
    change: Callable[[Any], None], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    state, expected = jg.tensor(array(12)), array(12)

    @jit(check="off")
    def step() -> Any:
        change(state)
        return state.sum()

    for _ in range(3):
        total = step()
        change(expected)
        np.testing.assert_allclose(state.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(total.item(), expected.sum(), rtol=1e-5)


def test_a_part_of_state_is_written_without_a_copy_of_the_rest() -> None:
    state = jg.tensor(array(12))

    @jit(check="off")
    def step() -> None:
        smoothed(state)
        state[0] = 1.0

    report = step.explain()

    assert report.in_place == 1
    assert {s.outs for s in report.steps if s.kind != "view"} == {("f32[10]",), ("f32[1]",)}


def with_row(x: Any, row: Any) -> Any:
    y = x.clone()
    y[3] = 2.0 * row
    return y


def test_a_donated_array_is_changed_where_it_lies() -> None:
    f = jit(with_row, donate="x", check="off")
    x, row = jg.tensor(array(20, 300)), jg.tensor(array(300))
    expected = x.numpy().copy()
    expected[3] = 2.0 * row.numpy()

    x = f(x, row)

    assert f.explain(x, row).in_place == 1
    np.testing.assert_array_equal(x.numpy(), expected)


def random_changes(seed: int, size: int) -> Callable[..., Any]:
    """A function that assigns parts of three arrays to each other in an order of its own; some views are taken before."""
    rng = np.random.default_rng(seed)
    width = size // 3
    moves = []
    for _ in range(8):
        a, b = rng.integers(0, 3, 2)
        i, j = (int(k) for k in rng.integers(0, size - width, 2))
        moves.append((a, b, i, j, int(rng.choice([1, -1])), float(rng.choice([1.0, 0.5]))))

    def part(i: int, step: int) -> slice:
        return slice(i, i + width, 1) if step == 1 else slice(i + width - 1, i - 1 if i else None, -1)

    def f(*arrays: Any) -> Any:
        ys = [x * 1.5 for x in arrays]
        sums = []
        for a, b, i, j, step, scale in moves:
            before = ys[b] + ys[a]
            ys[a][part(i, step)] = ys[b][j : j + width] * scale if scale != 1.0 else ys[b][j : j + width]
            sums.append(before.sum())
        return [*ys, *sums]

    return f


@pytest.mark.parametrize("seed", range(60))
def test_random_changes(seed: int) -> None:
    check_random_changes(seed)


@pytest.mark.numba
@pytest.mark.parametrize("seed", range(100, 106))
def test_random_changes_compiled(seed: int) -> None:
    check_random_changes(seed)


def check_random_changes(seed: int) -> None:
    f = random_changes(seed, 12)
    xs = [array(12) * k for k in (1, 2, 3)]
    g = jit(f, check="off")

    for _ in range(2):
        for a, b in zip(g(*map(jg.tensor, xs)), f(*xs), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-5)
