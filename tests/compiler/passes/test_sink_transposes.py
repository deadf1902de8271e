"""Permuted operands: work moves below permutations, and remaining ones are transposed by tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import jit

RNG = np.random.default_rng(0)


def array(*shape: int, dtype: str = "f") -> Any:
    x = RNG.normal(size=shape) * 9
    return jg.tensor(x.astype(dtype))


def schedules(f: Any, *args: Any) -> list[Any]:
    steps = jit(f, check="off").lookup(*args).program.plan.steps
    return [s.lowered.schedule for s in steps if isinstance(s, KernelStep)]


def reads(f: Any, *args: Any) -> list[str]:
    """The operands that the kernels of ``f`` transpose in tiles."""
    return [name for schedule in schedules(f, *args) for name in schedule.transposed]


SUNK = {
    "unary": lambda x: jg.tanh(x.T),
    "chain": lambda x: jg.exp(x.T * 0.1 + 1.0) - x.T,
    "of a vector": lambda x: x.T * x[:, 0] + x[0][:, None],
    "of a scalar": lambda x: x.T / x.max(),
    "sum of columns": lambda x: x.T.sum(axis=1),
    "sum of rows": lambda x: (x.T * x.T).sum(axis=0),
    "sum of all": lambda x: jg.sin(x.T).sum(),
    "softmax": lambda x: jg.softmax(x.T, axis=0),
    "softmax across": lambda x: jg.softmax(x.T, axis=1),
    "twice": lambda x: (x.T + 1.0).T * 2.0,
    "where": lambda x: jg.where(x.T > 0, x.T, -1.0),
    "kept axes swapped": lambda x: jg.permute_dims(x[:, :, None] * 1.5, (1, 2, 0)).max(axis=1),
}


@pytest.mark.parametrize("name", SUNK)
def test_work_sinks_below_permutations(name: str, same: Any) -> None:
    x = array(70, 33, dtype="d")

    assert not reads(SUNK[name], x)
    same(SUNK[name], x, rtol=1e-12, atol=1e-12)
    same(jg.grad(lambda x: (SUNK[name](x) ** 2).sum()), x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("axes", [(0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("reduced", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_reductions_of_permuted_axes(axes: tuple[int, ...], reduced: Any, same: Any) -> None:
    x = array(5, 6, 7, dtype="d")

    same(lambda x: jg.permute_dims(jg.exp(x * 0.1), axes).sum(axis=reduced), x, rtol=1e-12)
    same(lambda x: jg.permute_dims(x, axes).max(axis=reduced, keepdims=True), x)


def test_a_result_is_in_the_order_of_its_operand_as_with_eager() -> None:
    x = array(40, 50)

    assert jit(lambda x: x.T * 2.0, check="off")(x).numpy().strides == (x.T * 2.0).numpy().strides == (4, 200)


def everything(x: Any, y: Any, row: Any, column: Any) -> Any:
    t = x.T + y
    return t * column[:, None] - row, jg.tanh(x.T) > y


@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["e", "f", "d", "i", "l"])
@pytest.mark.parametrize("shape", [(Tuning().min_transposed_length, 64), (9, 9), (64, 64), (65, 130), (200, 67), (1000, 33)])
def test_turned_operands(shape: tuple[int, int], dtype: str, same: Any) -> None:
    n, m = shape
    args = array(m, n, dtype=dtype), array(n, m, dtype=dtype), array(m, dtype=dtype), array(n, dtype=dtype)

    assert len(reads(everything, *args)) == 1
    same(everything, *args, rtol=1e-6, atol=1e-6)


def test_turned_operands_step_by_step(same: Any) -> None:
    same(everything, array(70, 66, dtype="d"), array(66, 70, dtype="d"), array(70, dtype="d"), array(66, dtype="d"))


@pytest.mark.numba
@pytest.mark.parametrize("axes", [(0, 2, 1), (0, 1, 3, 2), (0, 2, 3, 1), (1, 3, 0, 2)])
def test_batches_are_turned_one_by_one(axes: tuple[int, ...], same: Any) -> None:
    shape = (3, 20, 70) if len(axes) == 3 else (2, 9, 20, 70)
    x, y = array(*shape), array(*(shape[k] for k in axes))

    def f(x: Any, y: Any) -> Any:
        return jg.permute_dims(x, axes) * y

    same(f, x, y)
    assert bool(reads(f, x, y)) == (axes != (1, 3, 0, 2))


@pytest.mark.numba
def test_windows_and_reversed_views(same: Any) -> None:
    base = RNG.normal(size=(90, 80)).astype("f")
    views = [base[5:75, 10:].T, base[::-1][:70, :].T, base[:70, ::-1].T, base[::2, :70].T[:70, :45]]

    for view in views:
        same(lambda x, y: x - 2.0 * y, view, np.ones(view.shape, "f"))
        same(lambda x, y: x.T - 2.0 * y, view, np.ones(view.shape[::-1], "f"))


@pytest.mark.numba
def test_an_array_and_its_transpose_in_place(same: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y += x.T
        y -= y.T * 0.5
        return y

    same(f, array(130, 130), rtol=1e-6)

    x = array(130, 130)
    expected = x.numpy() + x.numpy().T

    @jit(check="off")
    def symmetric(x: Any) -> None:
        x += x.T

    symmetric(x)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_short_or_small_or_many_stay_as_they_are() -> None:
    def f(x: Any, y: Any) -> Any:
        return x.T + y

    assert reads(f, array(64, Tuning().min_transposed_length), array(Tuning().min_transposed_length, 64))
    assert not reads(f, array(64, Tuning().min_transposed_length - 1), array(Tuning().min_transposed_length - 1, 64))
    assert not reads(f, array(64, 64, dtype="b"), array(64, 64, dtype="b"))
    xs = [array(64, 64) for _ in range(Tuning().max_transposed_operands + 2)]
    assert not reads(lambda *xs: sum((x.T for x in xs[1:]), start=xs[0]), *xs)
