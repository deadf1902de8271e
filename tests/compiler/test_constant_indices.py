"""Indices that are known while tracing, in few runs, are slices: no library call reads or writes at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

R = np.random.default_rng(0)
X = R.standard_normal((6, 7))
SEVEN = R.standard_normal(7)

Function = Callable[..., Any]


def diagonal(x: Any) -> Any:
    i = np.arange(6)
    return x[i, i + 1] * 2.0


def anti_diagonal(x: Any) -> Any:
    i = np.arange(1, 6)
    return x[i, 6 - i] * 2.0


def downwards(x: Any) -> Any:
    return x[np.arange(5, -1, -2)] * 2.0


def negative(x: Any) -> Any:
    return x[np.arange(-4, -1), -3] * 2.0


def a_list(x: Any) -> Any:
    return x[[1, 3, 5]] * 2.0


def grid(x: Any) -> Any:
    return x[np.ix_([0, 2, 4], [6, 3, 0])] * 2.0


def number_beside_array(x: Any) -> Any:
    return x[2, np.array([1, 2, 3])] * 2.0


def rows_of_rows(x: Any) -> Any:
    return x[np.arange(6).reshape(2, 3)] * 2.0


def both_axes_as_one(x: Any) -> Any:
    k = np.arange(20).reshape(4, 5)
    return x[k // 7, k % 7] * 2.0


def one_index(x: Any) -> Any:
    return x[np.array([4]), np.array([-1])] * 2.0


def taken(x: Any) -> Any:
    return jg.take(x, [0, 3, 6], 1) * 2.0


def same_in_all_rows(x: Any) -> Any:
    index = np.broadcast_to(np.array([1, 3, 5]), (4, 3))
    return jg.gather(x, 1, jg.tensor(index)) * 2.0


def beside_a_mask(x: Any) -> Any:
    return x[np.array([True, False, True, False, True, False])] * 2.0


def written(x: Any) -> Any:
    y = x * 1.0
    i = np.arange(6)
    y[i, i] = SEVEN[:6] * 1.0
    return y * 2.0


def added(x: Any) -> Any:
    return jg.index_add(x * 3.0, 0, [0, 2, 4], x[:3] * 2.0) * 2.0


def scattered(x: Any) -> Any:
    index = jg.tensor(np.broadcast_to(np.array([[0], [2]]), (2, 7)).copy())
    return jg.scatter_add(jg.zeros((6, 7)), 0, index, x[:2] * 2.0) * 2.0


def computed(x: Any) -> Any:
    i = jg.arange(3)
    return x[2 * i, jg.tensor([1, 2, 3]) + i] * 2.0


SPACED = [computed, diagonal, anti_diagonal, downwards, negative, a_list, grid, number_beside_array, rows_of_rows,
          both_axes_as_one, one_index, taken, same_in_all_rows, beside_a_mask, written, added, scattered]  # fmt: skip


def loss(f: Function) -> Function:
    return lambda x: (f(x) ** 3).sum()


def unfused(compiled: Any, *args: Any) -> list[str]:
    """The library calls of the program and of its gradient."""
    report = compiled.explain(*args)
    return [*report.unfused_ops, *(report.backward.unfused_ops if report.backward is not None else [])]


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())


@pytest.mark.parametrize("f", SPACED, ids=lambda f: f.__name__)
def test_values_and_gradients_have_no_library_call_and_the_same_bits(f: Function) -> None:
    x = jg.tensor(X, requires_grad=True)
    compiled = jg.jit(f)
    out, expected = compiled(x), f(x)
    same(out, expected)
    weights = jg.tensor(R.standard_normal(out.shape))
    (out * weights).sum().backward()
    got, x.grad = x.grad, None
    (expected * weights).sum().backward()
    same(got, x.grad)
    assert unfused(compiled, x) == []


@pytest.mark.parametrize("f", SPACED, ids=lambda f: f.__name__)
def test_gradients_within_the_function(f: Function) -> None:
    gradient = jg.grad(loss(f))
    compiled = jg.jit(gradient)
    np.testing.assert_allclose(compiled(jg.tensor(X)).numpy(), gradient(jg.tensor(X)).numpy(), rtol=1e-14)
    assert unfused(compiled, jg.tensor(X)) == []


@pytest.mark.parametrize("f", [anti_diagonal, grid, written, scattered], ids=lambda f: f.__name__)
def test_second_order(f: Function) -> None:
    def second(x: Any) -> Any:
        return jg.grad(lambda y: (jg.grad(loss(f))(y) ** 2).sum())(x)

    np.testing.assert_allclose(jg.jit(second)(jg.tensor(X)).numpy(), second(jg.tensor(X)).numpy(), rtol=1e-12)


def duplicates(x: Any) -> Any:
    return x[[1, 1, 1]] * 2.0


def uneven(x: Any) -> Any:
    return x[[0, 1, 3]] * 2.0


def uneven_pairs(x: Any) -> Any:
    return x[[0, 2, 5, 5], [1, 1, 3, 3]] * x[:4, 0]


def duplicates_apart(x: Any) -> Any:
    return x[[0, 2, 2, 5, 1, -1]] * 2.0


def uneven_columns(x: Any) -> Any:
    return jg.take(x, [[6, 0], [1, 4]], 1) * 2.0


def uneven_in_all_rows(x: Any) -> Any:
    return jg.gather(x, 1, jg.tensor(np.broadcast_to(np.array([1, 1, 5]), (4, 3)))) * 2.0


def uneven_written(x: Any) -> Any:
    y = x * 1.0
    y[[0, 3, 3, 1]] = x[:4] * 2.0  # of equal indices the last counts
    return y * 2.0


def uneven_written_in_zeros(x: Any) -> Any:
    y = jg.zeros((6, 7))
    y[[4, 3, 3, 0], [1, 2, 2, 5]] = x[0, :4] * 2.0
    return y * x


def uneven_added(x: Any) -> Any:
    return jg.index_add(x * 3.0, 0, [0, 4, 4, 1], x[:4] * 2.0) * 2.0


def uneven_scattered(x: Any) -> Any:
    index = jg.tensor(np.broadcast_to(np.array([[0], [2], [5], [2]]), (4, 7)).copy())
    return jg.scatter_add(jg.zeros((6, 7)), 0, index, x[:4] * 2.0) * 2.0


RUNS = [duplicates, uneven, uneven_pairs, duplicates_apart, uneven_columns, uneven_in_all_rows, uneven_written,
        uneven_written_in_zeros, uneven_added, uneven_scattered]  # fmt: skip


@pytest.mark.parametrize("f", RUNS, ids=lambda f: f.__name__)
def test_a_few_runs_are_a_few_slices(f: Function) -> None:
    test_values_and_gradients_have_no_library_call_and_the_same_bits(f)
    test_gradients_within_the_function(f)
    test_second_order(f)


@pytest.mark.parametrize("seed", range(30))
def test_random_indices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(-k, k, int(rng.integers(1, 7))) for k in (6, 7))
    values = jg.tensor(rng.standard_normal((rows.size, 7)))

    def f(x: Any) -> Any:
        read = (x[rows] * values, x[:, columns] * 2.0, x[rows[: columns.size], columns[: rows.size]] * 3.0)
        return (*read, jg.index_add(x * 2.0, 0, rows, values), jg.index_add(jg.zeros((6, 7)), 0, rows, x[rows] * values))

    x = jg.tensor(X)
    for found, expected in zip(jg.jit(f)(x), f(x), strict=True):
        same(found, expected)
    gradient = jg.grad(lambda x: sum((part**2).sum() for part in f(x)))
    np.testing.assert_allclose(jg.jit(gradient)(x).numpy(), gradient(x).numpy(), rtol=1e-13, atol=1e-13)
    assert unfused(jg.jit(f), x) == []


def many_runs(x: Any) -> Any:
    return x[np.array([0, 0, 3, 5, 5, 1, 1, 4, 4, 2, 2, 0, 0, 0, 3, 3, 1, 1])] * 2.0


def separate_axes(x: Any) -> Any:
    return x[:, None][[0, 1, 2], :, [0, 1, 2]] * 2.0


def different_in_rows(x: Any) -> Any:
    return jg.gather(x, 1, jg.tensor(np.array([[0, 1], [1, 2]]))) * 2.0


def bools(x: Any) -> Any:
    return (jg.index_put(x > 0.0, (jg.tensor(np.array([0, 1])), jg.tensor(np.array([0, 1]))), x[0, :2] > 5.0)) * 2.0


def empty(x: Any) -> Any:
    return x[np.zeros(0, np.int64)] * 2.0


@pytest.mark.parametrize("f", [many_runs, separate_axes, different_in_rows, empty], ids=lambda f: f.__name__)
def test_other_indices_stay_calls(f: Function) -> None:
    x = jg.tensor(X)
    compiled = jg.jit(jg.value_and_grad(loss(f)))
    value, gradient = compiled(x)
    expected, wanted = jg.value_and_grad(loss(f))(x)
    np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-14)
    np.testing.assert_allclose(gradient.numpy(), wanted.numpy(), rtol=1e-14)
    assert unfused(compiled, x) or f is empty


def zero_dimensional(x: Any) -> Any:
    return x[np.array(2)] + x[jg.tensor(np.array(3))] + jg.take(x, np.int64(-1), 0)


@pytest.mark.parametrize("f", [zero_dimensional, bools], ids=lambda f: f.__name__)
def test_same_values(f: Function) -> None:
    same(jg.jit(f)(jg.tensor(X)), f(jg.tensor(X)))


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "i8", "c16", "?"])
@pytest.mark.parametrize("f", [anti_diagonal, rows_of_rows, grid], ids=lambda f: f.__name__)
def test_dtypes(f: Function, dtype: str) -> None:
    x = jg.tensor(np.round(X * 3).astype(dtype))
    out, expected = jg.jit(f)(x), f(x)
    assert out.dtype == expected.dtype
    same(out, expected)


def test_strided_and_empty_operands() -> None:
    for x in (np.zeros((6, 0)), R.standard_normal((0, 7))):
        same(jg.jit(lambda x: x[:, [0, 1]] if x.shape[1] else x[[0, 1]])(jg.tensor(x)), jg.tensor(x[:, :2][:2]))
    turned = jg.tensor(X.T[::-1].copy().T[:, ::-1])
    same(jg.jit(anti_diagonal)(turned), anti_diagonal(turned))


def test_out_of_bounds_is_the_error_of_eager_execution() -> None:
    x = jg.tensor(X)
    for index in ([5, 6], [-7, -6]):
        with pytest.raises(IndexError) as eager:
            x[index]
        with pytest.raises(IndexError) as compiled:
            jg.jit(lambda x, index=index: x[index] * 1.0)(x)
        assert str(eager.value).splitlines()[0] == str(compiled.value).splitlines()[0]


def test_a_part_of_an_argument_is_a_copy() -> None:
    x = jg.tensor(X.copy())
    out = jg.jit(lambda x: x[[0, 1, 2]])(x)
    x[0] = 0.0
    same(out, jg.tensor(X[:3]))
    out[1] = 7.0
    same(x[1], jg.tensor(X[1]))


def test_reads_before_a_change_in_place() -> None:
    def step(x: Any) -> Any:
        part = x[[0, 2, 4]]
        x *= 2.0
        part[0] = 1.0
        return part, x[[0, 2, 4]]

    a, b = jg.tensor(X.copy()), jg.tensor(X.copy())
    compiled = jg.jit(step)
    for _ in range(3):
        for one, other in zip(compiled(a), step(b), strict=True):
            same(one, other)
        same(a, b)


def test_an_outside_array_that_changes_is_read_on_every_call_from_then_on() -> None:
    index = np.arange(3)
    f = jg.jit(lambda x: x[index] * 2.0)
    x = jg.tensor(X)
    for start in range(4):
        index[:] = np.arange(start, start + 3)
        same(f(x), jg.tensor(X[start : start + 3] * 2.0))
    assert f.cache_info().traces == 2
    assert f.why_retraced() == [f.why_retraced()[0]] and "changed its contents" in f.why_retraced()[0]


def test_a_view_of_an_outside_array_is_watched() -> None:
    index = np.arange(6)
    f = jg.jit(lambda x: x[index[1:].reshape(-1)[::-1]] * 2.0)
    same(f(jg.tensor(X)), jg.tensor(X[:0:-1] * 2.0))
    index[:] = [0, 0, 1, 2, 3, 4]
    same(f(jg.tensor(X)), jg.tensor(X[4::-1] * 2.0))


def test_arrays_too_large_to_compare_are_read_on_every_call() -> None:
    index = np.arange(20_000)
    f, x = jg.jit(lambda x: x[index] * 2.0), R.standard_normal(30_000)
    same(f(jg.tensor(x)), jg.tensor(x[:20_000] * 2.0))
    index += 5
    same(f(jg.tensor(x)), jg.tensor(x[5:20_005] * 2.0))
    assert f.cache_info().traces == 1


def test_a_run_time_index_stays_a_call() -> None:
    f, index = jg.jit(lambda x, i: x[i] * 2.0), jg.tensor([0, 1])
    same(f(jg.tensor(X), index), jg.tensor(X[:2] * 2.0))
    index[0] = 3
    same(f(jg.tensor(X), index), jg.tensor(X[[3, 1]] * 2.0))


def test_anti_diagonals_are_written_straight_to_their_places() -> None:
    """The gradient of a sum over all anti-diagonals is one array with a part for each: no zeros are added."""
    n = 5

    def total(x: Any) -> Any:
        parts = [jg.exp(x[np.arange(max(0, k - n + 1), min(n, k + 1)), k - np.arange(max(0, k - n + 1), min(n, k + 1))]).sum()
                 for k in range(2 * n - 1)]  # fmt: skip
        return sum(parts)

    x = jg.tensor(X[:5, :5])
    compiled = jg.jit(jg.grad(total))
    same(compiled(x), jg.grad(total)(x))
    report = compiled.explain(x)
    assert report.unfused_ops == []
    assert "index_put_add" not in str(report)
    assert report.bytes_written <= (3 * 25 + 2 * 9) * 8


def test_under_vmap() -> None:
    x = jg.tensor(R.standard_normal((3, 6, 7)))
    compiled = jg.jit(jg.vmap(anti_diagonal))
    same(compiled(x), jg.vmap(anti_diagonal)(x))
