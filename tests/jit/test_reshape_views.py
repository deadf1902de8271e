"""In-place changes show in a reshape exactly if eager execution shares the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import TraceError, UnguardableError

BACKENDS = ["cpu", "python"]


def change_the_base_of_a_copy(x: Any) -> Any:
    y = x * 2.0
    v = jg.flip(y, 1).reshape(-1)
    y[0] += 1.0
    return v, y


def change_the_base_of_a_view(x: Any) -> Any:
    y = x * 2.0
    v = y.reshape(-1)
    y[0] += 1.0
    return v, y


def change_a_view(x: Any) -> Any:
    y = x * 2.0
    y.reshape(-1)[3] = 0.0
    return (y,)


def change_a_copy(x: Any) -> Any:
    y = x * 2.0
    v = y[:, ::2].reshape(-1)
    v += 1.0
    return v, y


def change_an_argument_through_a_reshape(x: Any) -> Any:
    x.reshape(-1)[3] = 0.0
    return (x.sum(),)


def change_the_copy_of_an_argument(x: Any) -> Any:
    v = x.T.reshape(-1)
    v += 1.0
    return (v,)


def change_an_argument_with_a_reshaped_part(x: Any) -> Any:
    v = x[:, ::2].reshape(-1)
    x += 1.0
    return (v,)


def view_of_a_view_through_a_reshape(x: Any) -> Any:
    y = jg.tanh(x)
    rows = y.reshape(6, 4)[1:]
    rows[0] = 5.0
    return rows, y


def change_beside_views_in_every_layout(x: Any) -> Any:
    y = x * 2.0
    parts, column = y.reshape(2, 2, 6), y.reshape(4, 1, 6)[:, 0]
    y[0] += 1.0
    return parts, column, y


def reshape_after_a_change(x: Any) -> Any:
    y = x * 2.0
    y += x
    v = y.reshape(-1)
    y -= 1.0
    return v, y


def change_a_dead_reshape(x: Any) -> Any:
    total = (x.T * 2.0).reshape(-1).sum()
    x += 1.0
    return (total,)


CHANGES = [
    change_the_base_of_a_copy, change_the_base_of_a_view, change_a_view, change_a_copy, change_an_argument_through_a_reshape,
    change_beside_views_in_every_layout,
    change_the_copy_of_an_argument, change_an_argument_with_a_reshaped_part, view_of_a_view_through_a_reshape,
    reshape_after_a_change, change_a_dead_reshape,
]  # fmt: skip


def rows_first(k: int) -> Any:
    return jg.tensor(np.arange(24.0).reshape(4, 6) / 7 + k)


def columns_first(k: int) -> Any:
    return rows_first(k).T.reshape(-1).reshape(6, 4).T


def outcome(f: Callable[[Any], Any], x: Any) -> list[Any]:
    return [t.numpy().copy() for t in (*f(x), x)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_the_results_are_those_of_eager(change: Any, backend: str) -> None:
    compiled = jg.jit(change, check="off", backend=backend)

    for k in range(4):
        for found, expected in zip(outcome(compiled, rows_first(k)), outcome(change, rows_first(k)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_later_argument_in_another_layout_gets_eagers_result_or_an_error(change: Any) -> None:
    compiled = jg.jit(change, check="off")
    for k in range(3):
        compiled(rows_first(k))
    assert not columns_first(0).numpy().flags.c_contiguous

    x = columns_first(3)
    try:
        found = outcome(compiled, x)
    except UnguardableError as error:
        assert "argument 0 f64[4,6], from which they come, is not contiguous" in str(error)
        np.testing.assert_array_equal(x.numpy(), columns_first(3).numpy())
    else:
        for a, b in zip(found, outcome(change, columns_first(3)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_change_of_a_reshape_in_an_unknown_layout_is_refused_with_both_lines() -> None:
    def f(x: Any) -> Any:
        y = x.T * 2.0
        v = y.reshape(-1)
        y[0] += 1.0
        return v, y

    with pytest.raises(TraceError, match=r"test_reshape_views\.py:\d+ of a tensor f64\[.*test_reshape_views\.py:\d+ made a"):
        jg.jit(f)(rows_first(0))


def test_axes_that_are_split_or_added_need_no_guard_of_the_layout() -> None:
    compiled = jg.jit(change_beside_views_in_every_layout, check="off", backend="python")
    for x in (rows_first(0), columns_first(1), rows_first(2)):
        for a, b in zip(compiled(x), change_beside_views_in_every_layout(x), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert compiled.cache_info().traces == 1


def change_of_part_before(x: Any) -> Any:
    x[::2] = 1.0
    y = x * 2
    return y, y.reshape(-1)


def change_of_a_mask_before(x: Any) -> Any:
    y = x * 2
    y[y > 0] = 3.0
    z = y.reshape(-1)
    z += 1
    return y, z


@pytest.mark.parametrize("f", [change_of_part_before, change_of_a_mask_before])
def test_a_change_in_place_keeps_the_layout(f: Callable[..., Any]) -> None:
    compiled = jg.jit(f, backend="python", check="off")
    for seed in range(2):
        x = np.random.default_rng(seed).normal(size=(4, 3))
        results = []
        for function in (compiled, f):
            y, z = function(jg.tensor(x))
            z *= 2  # a view of y
            results.append((y.numpy(), z.numpy()))
        np.testing.assert_allclose(results[0][0], results[1][0])
        np.testing.assert_allclose(results[0][1], results[1][1])
