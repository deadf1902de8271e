"""Kernels load the elements of tables at computed positions, and indices are checked as NumPy checks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.schedule import cuda_tuning
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Graph
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)
N = Tuning().min_table_reads


def tensor(*shape: int, dtype: str = "f8") -> jg.Tensor:
    return jg.tensor(R.uniform(0.5, 1.5, shape).astype(dtype))


def places(n: int, *shape: int) -> jg.Tensor:
    return jg.tensor(R.uniform(0, n - 2, shape))


def fused(function: Any, *args: Any) -> Graph:
    return jit(function, check="off").graph(*args, stage="fuse")


def names(function: Any, *args: Any) -> list[str]:
    """The steps of the program that are no views."""
    return [node.op.name for node in fused(function, *args).nodes if node.op.kind.name != "MOVEMENT"]


def interpolated(table: Any, x: Any) -> Any:
    low = jg.floor(x)
    i, part = jg.astype(low, "int64"), x - low
    return table[i] * (1 - part) + table[i + 1] * part


def bilinear(image: Any, x: Any, y: Any) -> Any:
    i, j = jg.astype(y, "int64"), jg.astype(x, "int64")
    u, v = x - jg.floor(x), y - jg.floor(y)
    top = image[i, j] * (1 - u) + image[i, j + 1] * u
    return top * (1 - v) + (image[i + 1, j] * (1 - u) + image[i + 1, j + 1] * u) * v


def test_an_interpolation_is_one_kernel_and_two_checks(same: Any) -> None:
    args = tensor(50), places(50, N)
    assert names(interpolated, *args) == ["fused", "take", "take"]
    same(interpolated, *args)


def test_the_checks_of_an_image_are_two_for_each_axis(same: Any) -> None:
    args = tensor(30, 40), places(40, 32, N // 32), places(30, 32, N // 32)
    assert sorted(names(bilinear, *args)) == ["fused", *["take"] * 4]
    same(bilinear, *args)


def test_gradients_of_the_places(same: Any) -> None:
    args = tensor(50), places(50, N)
    loss = jg.value_and_grad(lambda t, x: (interpolated(t, x) ** 2).sum(), 1)
    assert names(loss, *args).count("fused") <= 2
    same(loss, *args, rtol=1e-12)
    same(jg.value_and_grad(lambda t, x: (interpolated(t, x) ** 2).sum(), (0, 1)), *args, rtol=1e-12)


def test_no_index_or_element_is_in_memory() -> None:
    lookup = jit(lambda t, x: interpolated(t, x).sum(), check="off")
    args = tensor(50), places(50, 100 * N)
    (kernel,) = [step for step in lookup.lookup(*args).program.plan.steps if hasattr(step, "lowered")]
    assert sum(place.aval.nbytes for place in kernel.writes) <= 64
    assert any("element_at" in view.source for view in lookup.kernels(*args))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4"])
@pytest.mark.parametrize("index", ["i1", "i4", "i8", "u2", "u4"])
def test_dtypes(same: Any, dtype: str, index: str) -> None:
    table, i = tensor(60, dtype="f8"), R.integers(0, 60, N).astype(index)
    same(lambda t, i: t[i] + 1, jg.tensor((table.numpy() * 9).astype(dtype)), jg.tensor(i))


def test_indices_from_the_end(same: Any) -> None:
    same(lambda t, i: t[i - 60] * 2, tensor(60), jg.tensor(R.integers(0, 120, N)))
    same(lambda t, i, j: t[i, j] * 2, tensor(6, 7), jg.tensor(R.integers(-6, 6, N)), jg.tensor(R.integers(-7, 7, N)))


def test_indices_that_are_broadcast(same: Any) -> None:
    i, j = jg.tensor(R.integers(0, 6, (N // 16, 1))), jg.tensor(R.integers(-7, 7, (1, 16)))
    same(lambda t, i, j: t[i, j] * 2, tensor(6, 7), i, j)


def test_a_table_that_the_program_computes(same: Any) -> None:
    """The kernel that computes it is another one, also where it has as many elements as there are indices."""
    args = tensor(N), jg.tensor(R.integers(0, N, N))

    def chosen(t: Any, i: Any) -> Any:
        t = jg.exp(t)
        return t[i] * t

    assert names(chosen, *args).count("fused") == 2
    same(chosen, *args, rtol=1e-15)


def test_a_table_of_one_element(same: Any) -> None:
    same(lambda t, i: t[i] * 2, tensor(1), jg.tensor(np.zeros(N, np.int64)))


def test_views_as_tables(same: Any) -> None:
    args = tensor(8, 30), jg.tensor(R.integers(0, 30, N))
    same(lambda t, i: t[2][i] * 2, *args)
    same(lambda t, i: t[:, 3][i % 8] * 2, *args)
    same(lambda t, i: jg.flip(t[3], 0)[i] * 2, *args)
    same(lambda t, i: jg.reshape(t, (240,))[i] * 2, *args)


def test_rows_in_which_elements_are_looked_up(same: Any) -> None:
    same(lambda t, i: jg.softmax(t[i], -1), tensor(60), jg.tensor(R.integers(0, 60, (N // 8, 32))), rtol=1e-12)
    same(lambda t, i: t[i].sum(0), tensor(60), jg.tensor(R.integers(0, 60, (N // 8, 32))), rtol=1e-12)


@pytest.mark.parametrize("wrong", [60, -61, 1 << 40, -(1 << 40), (1 << 63) - 1])
def test_an_index_out_of_bounds_is_numpys_error(wrong: int) -> None:
    table, i = tensor(60), np.zeros(N, np.int64)
    function = jit(lambda t, i: t[i] * 2)
    function(table, jg.tensor(i))
    i[N // 2] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 60"):
        function(table, jg.tensor(i))
    np.testing.assert_array_equal(function(table, jg.tensor(i * 0)).numpy(), np.full(N, 2 * table.numpy()[0]))


@pytest.mark.parametrize(("i", "j"), [(6, 0), (0, 7), (-7, 0), (0, -8), (0, 1 << 33)])
def test_each_axis_of_an_image_is_checked(i: int, j: int) -> None:
    image, zeros = tensor(6, 7), np.zeros(N, np.int64)
    function = jit(lambda t, i, j: t[i, j] * 2)
    function(image, jg.tensor(zeros), jg.tensor(zeros))
    bad, axis, size = (i, 0, 6) if i else (j, 1, 7)
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds for axis {axis} with size {size}"):
        function(image, jg.tensor(zeros + i), jg.tensor(zeros + j))


def test_an_offset_that_leaves_the_bounds_is_found() -> None:
    function = jit(lambda t, i: t[i - 1] + t[i + 2])
    table, i = tensor(60), np.full(N, 30)
    function(table, jg.tensor(i))
    for k, wrong in ((58, 60), (-60, -61)):
        i[7] = k
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
            function(table, jg.tensor(i))


def test_a_failed_call_leaves_state_as_it_was() -> None:
    weights = tensor(N)

    @jit
    def step(table: Any, i: Any) -> None:
        weights.mul_(table[i])

    zeros = np.zeros(N, np.int64)
    step(tensor(60), jg.tensor(zeros))
    before = weights.numpy().copy()
    with pytest.raises(IndexError, match="out of bounds"):
        step(tensor(60), jg.tensor(zeros + 60))
    np.testing.assert_array_equal(weights.numpy(), before)


def test_state_that_is_a_table_and_changes(same: Any) -> None:
    """The elements are those from before the change, though the result takes the table's memory."""
    start, i = R.uniform(0.5, 1.5, N), R.permutation(N)
    table = jg.tensor(start.copy())

    @jit
    def step(i: Any) -> None:
        table.add_(table[i] * 2)

    expected = start.copy()
    for _ in range(3):
        step(jg.tensor(i))
        expected = expected + expected[i] * 2
    np.testing.assert_array_equal(table.numpy(), expected)


def test_checks_wait_until_a_run_of_blocks_is_over() -> None:
    """Two kernels with as many bytes between them as a run needs, and checks of the first one's indices."""

    def long(t: Any, x: Any) -> Any:
        for _ in range(60):
            x = jg.abs(interpolated(t, x))
        return x

    args = tensor(50, dtype="f4"), jg.tensor(R.uniform(0, 40, 1 << 18).astype("f4"))
    plan = jit(long, check="off").lookup(*args).program.plan
    assert len([step for step in plan.steps if hasattr(step, "lowered")]) > 1
    assert plan.block_runs


def test_few_reads_and_other_readers_stay_calls(same: Any) -> None:
    few = tensor(60), jg.tensor(R.integers(0, 60, N - 1))
    many = tensor(60), jg.tensor(R.integers(0, 60, N))
    assert names(lambda t, i: t[i] * 2, *few) == ["take", "fused"]
    assert names(lambda t, i: t[i], *many) == ["take"]
    assert names(lambda t, i: t[i] * 2, tensor(60, 3), many[1]) == ["take", "fused"]
    assert names(lambda t, i: jg.sort(t[i]), *many)[0] == "take"


def test_gpus_keep_the_calls() -> None:
    assert cuda_tuning((9, 0)).min_table_reads == 0
