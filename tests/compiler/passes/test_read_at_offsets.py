"""Kernels read padded and rolled values from where they come from; nothing is written for a border."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.schedule import cuda_tuning
from jitgrad.jit.decorator import jit

RNG = np.random.default_rng(0)


def image(*shape: int) -> Any:
    return jg.tensor(RNG.normal(size=shape))


def heat(u: Any, mode: str, steps: int = 2) -> Any:
    for _ in range(steps):
        p = jg.pad(u, 1, mode=mode)
        u = u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return u


def waves(u: Any) -> Any:
    return jg.roll(u, 1, 0) + jg.roll(u, -1, 0) + jg.roll(u, 1, 1) + jg.roll(u, -1, 1) - 4 * u


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_a_step_is_a_kernel(mode: str, same: Any) -> None:
    u = image(40, 50)
    f = same(lambda u: heat(u, mode), u, rtol=1e-13, atol=1e-13)

    assert len(f.kernels(u)) == 2 and f.explain(u).bytes_written <= 3 * u.numpy().nbytes


def test_a_roll_is_no_kernel(same: Any) -> None:
    u = image(40, 50)
    f = same(lambda u: (waves(waves(u)) ** 2).sum(), u, rtol=1e-13)

    assert len(f.kernels(u)) == 2


def test_the_gradient_of_a_periodic_step_is_a_kernel_for_each(same: Any) -> None:
    u = image(40, 50)
    f = same(jg.value_and_grad(lambda u: (waves(waves(u)) ** 2).sum()), u, rtol=1e-12, atol=1e-12)

    assert len(f.kernels(u)) == 4


def test_gradients_of_edges_are_read_where_they_are_summed(same: Any) -> None:
    u = image(40, 50)
    f = same(jg.grad(lambda u: (heat(u, "edge", 1) ** 2).sum()), u, rtol=1e-12, atol=1e-12)

    assert "insert_slices" not in str(f.graph(u, stage="fuse")) and len(f.kernels(u)) <= 8


def largest_neighbour(x: Any) -> Any:
    p = jg.pad(x, 1)
    for i in range(3):
        for j in range(3):
            x = jg.maximum(x, p[i : i + x.shape[0], j : j + x.shape[1]])
    return x


def test_many_edges_of_short_rows_cost_more_than_a_padded_copy(same: Any) -> None:
    """Six of the nine reads jump along the rows: they are worth three times `Tuning.edge_read_bytes`."""
    short, long = image(8, 128), image(8, 256)

    assert len(same(largest_neighbour, short).kernels(short)) > 1
    assert len(same(largest_neighbour, long).kernels(long)) == 1


def test_edges_along_columns_do_not_count(same: Any) -> None:
    def tallest(x: Any) -> Any:
        p = jg.pad(x, ((3, 3), (0, 0)))
        for i in range(7):
            x = jg.maximum(x, p[i : i + x.shape[0]])
        return x

    x = image(40, 50)
    assert len(same(tallest, x).kernels(x)) == 1


def test_total_variation_with_its_gradient_is_three_kernels(same: Any) -> None:
    def variation(x: Any) -> Any:
        parts = [x[1:] - x[:-1], x[:, 1:] - x[:, :-1]]
        return sum(jg.sqrt(d * d + 1e-4).sum() for d in parts)

    x = image(40, 50)
    f = same(jg.value_and_grad(variation), x, rtol=1e-12, atol=1e-12)
    assert len(f.kernels(x)) == 3


def test_the_interior_has_no_condition() -> None:
    u = image(40, 200)
    source = jit(lambda u: heat(u, "constant", 1), check="off").kernels(u)[0].source
    interior = source.split("for j in range(")[1].split("for e in range(2)")[0]

    assert "select" not in interior and "load_between" not in interior
    assert "load_between" in source.split("for e in range(2)")[1]


def test_other_sizes_share_the_kernel() -> None:
    f = jit(lambda u: heat(u, "edge", 1), check="off")
    f(image(40, 200))
    f(image(50, 280))

    assert f.cache_info().kernels_compiled == 1


def test_a_padded_value_that_is_a_result_is_written(same: Any) -> None:
    def both(u: Any) -> tuple[Any, Any]:
        p = jg.pad(u * 2, 1)
        return p, p[1:-1, 2:] + u

    u = image(30, 40)
    f = same(both, u)
    assert "offset_read" not in str(f.graph(u, stage="fuse"))


def test_short_rows_are_written(same: Any) -> None:
    u = image(200, 3)
    f = same(lambda u: jg.roll(u, 1, 0) - u, u)
    assert "offset_read" not in str(f.graph(u, stage="fuse"))


def test_what_is_read_elsewhere_is_not_overwritten(same: Any) -> None:
    """The new state may take the memory of the old one only if each element is read where it is written."""
    state = {"u": image(40, 50)}
    expected = state["u"].numpy().copy()

    @jit(check="off")
    def step(v: Any) -> Any:
        state["u"] = waves(state["u"]) + v
        return state["u"].sum()

    v = image(40, 50)
    for _ in range(3):
        step(v)
        expected = waves(jg.tensor(expected)).numpy() + v.numpy()
    np.testing.assert_allclose(state["u"].numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["?", "i4", "u1", "i8", "f4"])
def test_dtypes(dtype: str, same: Any) -> None:
    x = jg.tensor(RNG.integers(0, 2, (5, 130)).astype(dtype))
    same(lambda x: jg.where(jg.pad(x, 1)[2:, :-2] > 0, jg.roll(x, 3, 1), jg.pad(x, 2, mode="edge")[:-4, 4:]), x)


def test_infinite_elements_stay_where_they_are(same: Any) -> None:
    """Outside are zeros, whatever lies at the place in memory that is read in their stead."""
    x = RNG.normal(size=(6, 140))
    x[0, 0] = x[-1, -1] = np.nan
    x[0, 70] = np.inf
    same(lambda x: jg.pad(x, 1)[:-2, :-2] + jg.pad(x, 1)[2:, 2:], jg.tensor(x))


def test_devices_read_padded_values_too() -> None:
    """Kernels for GPUs read at offsets whatever the length of rows: each thread computes its own positions."""
    assert cuda_tuning((9, 0)).reads_at_offsets and cuda_tuning((9, 0)).min_offset_row == 1


def test_steps_that_read_at_offsets_are_not_computed_in_boxes() -> None:
    """In boxes these three steps of a shallow water model, with their gradient, took 77 kernels and 297 images."""

    def ddx(a: Any) -> Any:
        return (jg.roll(a, -1, 1) - jg.roll(a, 1, 1)) * 0.5

    def ddy(a: Any) -> Any:
        return (jg.roll(a, -1, 0) - jg.roll(a, 1, 0)) * 0.5

    def energy(h: Any, u: Any, v: Any) -> Any:
        for _ in range(3):
            u = u + 0.1 * (-u * ddx(u) - v * ddy(u) - ddx(h))
            v = v + 0.1 * (-u * ddx(v) - v * ddy(v) - ddy(h))
            h = h - 0.1 * (ddx(h * u) + ddy(h * v))
        return (h * h).sum()

    x = jg.ones((512, 512))
    found = jit(jg.grad(energy), backend="python").explain(x, x, x)

    assert found.launches <= 40 and found.bytes_read + found.bytes_written <= 180 * x.aval.nbytes
