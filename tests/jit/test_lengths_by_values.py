"""Masks as indices, and functions whose results are as long as values say: a program for each length."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, RetraceWarning, ShapeError, TracedValueError
from jitgrad.jit.trace_warnings import MANY_TRACES


@pytest.fixture(autouse=True, params=["python", pytest.param("cpu", marks=pytest.mark.numba)])
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)


def scaled(x: Any, m: Any) -> Any:
    x[m] *= 2.0
    return x


def added(x: Any, m: Any) -> Any:
    x[m] += x[m] ** 2
    return x


def moved(x: Any, m: Any) -> Any:
    x[m] = x[~m].sum() * x[m]
    return x


def rows_set(x: Any, m: Any) -> Any:
    x[m[:, 1]] = x[m[:, 1]][::-1] * 2.0
    return x


def beside_a_slice(x: Any, m: Any) -> Any:
    x[m[:, 0], 1:] -= 3.0
    return x


def through_a_view(x: Any, m: Any) -> Any:
    part = x[1:]
    part[m[1:]] /= 4.0
    return x * 1.0


CHANGES = [scaled, added, moved, rows_set, beside_a_slice, through_a_view]
READS: dict[str, Callable[..., Any]] = {
    "all axes": lambda x, m: x[m],
    "rows": lambda x, m: x[m[:, 0]],
    "columns": lambda x, m: x[:, m[0]],
    "beside an int": lambda x, m: x[m[:, 0], -1],
    "beside positions": lambda x, m: x[:2][m[:2, 1], 0],
    "one truth": lambda x, m: x[m.any()],
    "negative strides": lambda x, m: x[::-1][m[::-1]],
    "broadcast": lambda x, m: np.broadcast_to(x[0], m.shape)[m] if isinstance(x, np.ndarray) else jg.masked_select(x[0], m),
    "positions": lambda x, m: m.nonzero(),
    "numbers": lambda x, m: (x * m).nonzero()[1],
    "empty": lambda x, m: x[:0][m[:0]],
    "wide": lambda x, m: x[m][:, None] * x[m],
}


def operands(seed: int, dtype: str = "float64") -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4, 3)).astype(dtype)
    m = rng.integers(0, 2, (4, 3)).astype(bool) if seed else np.zeros((4, 3), bool)
    x[2, 1] = np.nan if dtype == "float32" else 1.0
    return x, m


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", CHANGES)
def test_changes_are_those_of_numpy(function: Callable[..., Any], dtype: str) -> None:
    f = jg.jit(function)
    for seed in (0, 1, 2, 2, 1):
        x, m = operands(seed, dtype)
        t = jg.tensor(x)
        found, expected = f(t, jg.tensor(m)), function(x.copy(), m)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
        changed = x.copy()
        function(changed, m)
        np.testing.assert_allclose(t.numpy(), changed, rtol=1e-6)
    assert f.cache_info().fallbacks == 0


@pytest.mark.parametrize("name", READS)
def test_selections_are_those_of_numpy(name: str) -> None:
    f = jg.jit(READS[name])
    for seed in (1, 0, 2, 3, 1):
        x, m = operands(seed)
        found, expected = f(jg.tensor(x), jg.tensor(m)), READS[name](x, m)
        for a, b in zip(jg.tree.leaves(found), jg.tree.leaves(expected), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_array_equal(a.numpy(), b)
    assert f.cache_info().fallbacks == 0


def masked_loss(x: Any, w: Any) -> Any:
    m = x > 0
    y = (x * w).clone()
    y[m] *= 3.0
    y[~m] += w[~m]
    rows, columns = jg.nonzero(m)
    return (x[m] ** 2).mean() + y.sum() + (w[rows, columns] ** 2).sum() + x[m].max() + jg.repeat(x, (w[:, 0] > 0) + 1, 0).sum()


def test_gradients_and_second_derivatives() -> None:
    both = jg.value_and_grad(masked_loss, argnums=(0, 1))
    f, h = jg.jit(both), jg.jit(lambda x, w: jg.hvp(lambda x: masked_loss(x, w), (x,), (x,))[0])
    for seed in (1, 2, 3, 1):
        rng = np.random.default_rng(seed)
        x, w = (jg.tensor(rng.normal(size=(4, 3))) for _ in range(2))
        for a, b in zip(jg.tree.leaves(f(x, w)), jg.tree.leaves(both(x, w)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
        expected = jg.hvp(lambda x, w=w: masked_loss(x, w), (x,), (x,))[0]
        np.testing.assert_allclose(h(x, w).numpy(), expected.numpy(), rtol=1e-12)


BY_VALUES: dict[str, Callable[..., Any]] = {
    "unique": lambda k: jg.unique(k, True, True, True),
    "unique of an axis": lambda k: jg.unique(jg.stack([k, k // 2]), True, True, True, axis=1),
    "unique_all": lambda k: tuple(jg.unique_all(k / jg.where(k == 0, jg.nan, 1.0))),
    "unique of nan": lambda k: jg.unique(jg.where(k == 0, jg.nan, k * 1.0)),
    "unique_consecutive": lambda k: jg.unique_consecutive(k, True, True),
    "unique_consecutive of an axis": lambda k: jg.unique_consecutive(jg.stack([k, k * 0]), True, True, dim=1),
    "repeat": lambda k: jg.repeat(k * 0.5, k),
    "repeat of an axis": lambda k: jg.repeat(jg.stack([k, k + 1]), k, 1),
    "repeat as often as one says": lambda k: jg.repeat(k, k[-1], 0),
    "bincount": lambda k: jg.bincount(k),
    "bincount with weights": lambda k: jg.bincount(k, k * 0.5, 2),
    "one_hot": lambda k: jg.one_hot(k),
    "argwhere": lambda k: jg.numpy.argwhere(k),
    "extract": lambda k: jg.numpy.extract(k > 1, k),
    "compress": lambda k: jg.numpy.compress(k > 1, jg.stack([k, k]), axis=1),
}


@pytest.mark.parametrize("name", BY_VALUES)
def test_lengths_by_values(name: str) -> None:
    f = jg.jit(BY_VALUES[name])
    for row in ([3, 1, 1, 0, 2], [3, 1, 1, 0, 2], [0, 0, 0, 0, 0], [1, 1, 4, 4, 1], [2, 2, 2, 0, 3]):
        k = jg.tensor(row)
        found, expected = (jg.tree.leaves(g(k)) for g in (f, BY_VALUES[name]))
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert f.cache_info().fallbacks == 0 and f.cache_info().traces < 5


def test_the_reason_for_another_program_is_the_length() -> None:
    f = jg.jit(lambda x: x[x > 0])
    for n in range(3):
        assert f(jg.arange(3.0) - n).shape == (2 - n,)

    assert "a length that values decide at" in f.why_retraced()[0]
    assert f.cache_info().traces == 3


def test_a_number_for_all_that_a_mask_selects_is_one_program() -> None:
    @jg.jit
    def f(x: Any) -> Any:
        x[x > 0] = 7.0
        return x

    for n in range(4):
        f(jg.arange(4.0) - n)
    assert f.cache_info().traces == 1


def test_many_lengths_run_op_by_op() -> None:
    f = jg.jit(lambda x: (x[x > 0] * 2).sum())
    with pytest.warns(RetraceWarning):
        for n in range(MANY_TRACES + 3):
            x = np.where(np.arange(30) < n, 1.0, -1.0)
            assert f(jg.tensor(x)).item() == 2.0 * n
    assert f.cache_info().traces == MANY_TRACES


def test_wrong_counts_are_the_errors_of_eager_execution() -> None:
    def put(x: Any, v: Any) -> Any:
        x[x > 0] = v
        return x

    f = jg.jit(put)
    assert f(jg.tensor([1.0, -1.0, 2.0]), jg.tensor([5.0, 6.0])).tolist() == [5.0, -1.0, 6.0]
    x = jg.tensor([1.0, 1.0, 2.0])
    with pytest.raises(ShapeError):
        f(x, jg.tensor([5.0, 6.0]))
    assert x.tolist() == [1.0, 1.0, 2.0]
    with pytest.raises(ArgumentError, match="repeats must be"):
        jg.jit(lambda x: jg.repeat(x, x))(jg.tensor([1, -1]))
    with pytest.raises(ArgumentError, match="output_size=3"):
        jg.jit(lambda x: jg.repeat(x, x, output_size=3))(jg.tensor([1, 1]))


def test_without_a_call_there_is_no_length() -> None:
    with pytest.raises(TracedValueError, match=r"indexing with a mask needs the value(?s:.*)jitgrad.where\(mask, x, 0\).sum\(\)"):
        jg.jit(lambda x: x[x > 0]).compile(jg.ShapeDtypeStruct((3,), jg.float32))
    for f in (lambda x: x[x > 0], jg.nonzero, jg.unique, lambda x: jg.repeat(x, x.astype(jg.int64))):
        for mapped in (jg.vmap(f), jg.jit(jg.vmap(f))):
            with pytest.raises(TracedValueError, match="differs between the examples of vmap"):
                mapped(jg.ones((2, 3)))
    assert jg.bincount(jg.tensor([1]), minlength=3).tolist() == [0, 1, 0]
    found = jg.jit(jg.vmap(lambda k: jg.bincount(k, minlength=3)))(jg.tensor([[0, 2], [1, 1]]))
    assert found.tolist() == [[1, 0, 1], [0, 2, 0]]


def test_state_is_written_after_the_length_is_known() -> None:
    total = jg.zeros(())

    @jg.jit
    def f(x: Any) -> Any:
        total.add_(x[x > 0].sum())
        return x[x > 0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (0, 0, 1, 1, 2, 0):
            f(jg.arange(3.0) - n)
    assert total.item() == 3 + 3 + 1 + 1 + 0 + 3
