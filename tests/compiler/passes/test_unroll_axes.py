"""Unrolled short axes: which axes, eager's results, and the number of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import format_graph
from jitgrad.jit.decorator import jit

MAX_PIECES, LEAST_PIECE = Tuning().max_pieces, Tuning().min_piece
R = np.random.default_rng(0)


def values(shape: tuple[int, ...], dtype: str = "f") -> Any:
    x = R.standard_normal(shape) * 3
    if dtype in "fd":
        x.flat[::17] = np.nan
        x.flat[3::19] = -np.inf
        x.flat[5::7] = -0.0
    return jg.tensor(x.astype(dtype))


def windows(reduction: str) -> Callable[[Any], Any]:
    return lambda x: getattr(jg, reduction)(x, axis=(2, 4))


def pool(x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape((n, c, h // 2, 2, w // 2, 2)).max(axis=(3, 5))


def differences(p: Any) -> Any:
    return p[:, None, :] - p[None, :, :]


def forces(p: Any) -> Any:
    d = differences(p)
    return (d / ((d * d).sum(axis=2) + 0.1)[:, :, None]).sum(axis=1)


def potential(p: Any) -> Any:
    d = differences(p)
    return (1.0 / jg.sqrt((d * d).sum(axis=2) + 0.1)).sum()


@pytest.mark.parametrize("dtype", ["f", "d", "i", "b", "?", "H"])
@pytest.mark.parametrize("reduction", ["sum", "prod", "max", "min", "any", "all"])
def test_windows_equal_eager(reduction: str, dtype: str, same: Any) -> None:
    for shape in ((3, 2, 3, 4, 2), (1, 9, 2, 5, 2), (3, 1, 2, 7, 1), (2, 0, 2, 3, 2)):
        if 0 not in shape or reduction not in ("max", "min"):
            exact = reduction not in ("sum", "prod")
            same(windows(reduction), values(shape, dtype), **({} if exact else {"rtol": 1e-6, "atol": 1e-6}))


@pytest.mark.numba
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_compiled_with_gradients(threads: int, same: Any) -> None:
    before = jg.get_num_threads()
    jg.set_num_threads(threads)
    x, p = jg.tensor(R.standard_normal((2, 3, 40, 56)).astype("f")), jg.tensor(R.standard_normal((70, 3)))
    try:
        same(jg.value_and_grad(lambda x: (pool(x) ** 2).sum()), x, rtol=2e-6, atol=1e-6)
        same(lambda p: (forces(p), jg.grad(potential)(p), forces(p).sum(axis=1)), p, rtol=1e-12, atol=1e-12)
    finally:
        jg.set_num_threads(before)


def test_strided_arrays(same: Any) -> None:
    x = values((3, 20, 3, 6, 2))

    same(lambda x: windows("max")(x[::-1, 1::2, :, ::-1] * 2.0), x)
    same(lambda x: windows("max")(jg.permute_dims(x, (3, 1, 4, 0, 2))), x)
    same(lambda x: windows("max")(x + x[:, :1, :1, :, :1]), x)


def test_one_axis_read_along_two_dimensions(same: Any) -> None:
    x = jg.tensor(R.standard_normal((3, 20, 3)))

    same(lambda x: ((x + jg.permute_dims(x, (2, 1, 0))) ** 2).sum(axis=(0, 2)), x, rtol=1e-12)
    same(lambda x: (x + jg.permute_dims(x, (2, 1, 0))).max(axis=1), x)


def test_what_is_read_as_a_whole_as_well(same: Any) -> None:
    p = jg.tensor(R.standard_normal((20, 3)))

    def f(p: Any) -> Any:
        d = differences(p) * 2.0
        total = (d * d).sum(axis=2).sum(axis=1)
        return total, d, d.reshape((400, 3)) @ jg.ones((3, 2), dtype=np.float64), jg.cumulative_sum(d, 0)

    same(f, p, rtol=1e-12)


def test_positions(same: Any, steps_of: Any) -> None:
    x = values((20, 3, 5))

    same(lambda x: jg.where(jg.arange(3)[:, None] > 0, x, 1.0).max(axis=1), x)
    noisy = same(lambda x: (x + jg.arange(300).reshape((20, 3, 5))).max(axis=1), x)

    assert "max" not in steps_of(noisy, x)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(2, 2, 0), (2, 3, 0), (3, 2, 1), ((1, 3), (1, 3), 0), ((3, 2), (3, 2), (1, 0)), (2, (2, 1), 0), (1, 2, 0)],
)
def test_pools_of_images(kernel: Any, stride: Any, padding: Any, same: Any) -> None:
    x = jg.tensor(np.round(R.standard_normal((2, 3, 9, 11)), 1))

    def pools(x: Any) -> Any:
        y = x * 2.0
        return jg.max_pool2d(y, kernel, stride, padding), jg.avg_pool2d(y, kernel, stride, padding)

    def loss(x: Any) -> Any:
        return sum((p**3).sum() for p in pools(x))

    same(lambda x: (pools(x), jg.grad(loss)(x)), x, rtol=1e-12, atol=1e-12)


def test_windows_that_overlap_are_added_up(same: Any, steps_of: Any) -> None:
    x = jg.tensor(R.standard_normal((2, 3, 8, 12)))
    apart, overlapping = (
        same(jg.grad(lambda x, by=by: (jg.max_pool2d(x, 3, by) ** 2).sum()), x, rtol=1e-12, atol=1e-12) for by in (3, 2)
    )

    assert "fold" not in steps_of(apart, x)
    assert "fold" in steps_of(overlapping, x)


def test_windows_for_a_product_stay_whole(steps_of: Any) -> None:
    convolve = jit(lambda x, w: jg.conv2d(x, w), check="off", passes={"block_convolutions": False})

    assert "unfold" in steps_of(convolve, jg.ones((2, 3, 8, 8)), jg.ones((4, 3, 3, 3)))


# --- decisions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (pool, (2, 4, 16, 16)),
        (jg.grad(lambda x: (pool(x) ** 2).sum()), (2, 4, 16, 16)),
        (lambda x: x.reshape((-1, 4, 2, 3)).sum(axis=2), (240, 3)),
        (lambda x: jg.max_pool2d(x, 3, 2), (2, 4, 15, 15)),
        (jg.grad(lambda x: (jg.max_pool2d(x, 2) ** 2).sum()), (2, 4, 16, 16)),
        (jg.grad(lambda x: (jg.avg_pool2d(x, 2) ** 2).sum()), (2, 4, 16, 16)),
    ],
)
def test_one_kernel(function: Any, shape: tuple[int, ...], steps_of: Any) -> None:
    assert steps_of(jit(function, check="off"), jg.ones(shape)) == ["kernel"]


def test_short_columns_are_rows_of_their_own(steps_of: Any, same: Any) -> None:
    x = jg.tensor(R.standard_normal((4, 40, 3)))

    assert set(steps_of(same(lambda x: x.sum(axis=1), x, rtol=1e-12), x)) == {"kernel"}


@pytest.mark.parametrize("function", [forces, lambda p: (differences(p) ** 2).sum(axis=2).sum(axis=1)])
def test_coordinates_are_brought_in_order_first(function: Any, steps_of: Any) -> None:
    assert steps_of(jit(function, check="off"), jg.ones((64, 3))) == ["kernel"] * 4


def parts(function: Any, *shapes: tuple[int, ...]) -> bool:
    """Whether the pass changes the graph of ``function``."""
    arguments = [jg.ones(shape) for shape in shapes]
    before, after = (
        jit(function, check="off").graph(*arguments, stage=s) for s in ("distribute_mean_gradient", "unroll_axes")
    )
    return str(before) != str(after)


def test_rows_columns_and_lanes_are_left_to_their_loops() -> None:
    assert not parts(lambda x: x.sum(axis=0), (3, 100))
    assert not parts(lambda x: x.sum(axis=1), (100, 5))
    assert not parts(lambda x: x.sum(axis=(0, 2)), (3, 100, 3))
    assert not parts(lambda x: x.sum(axis=1), (20, 3, 20))
    assert not parts(lambda x: jg.softmax(x, -1), (100, 5))
    assert not parts(lambda x: jg.layer_norm(x, (5,)).sum(axis=0), (100, 5))
    assert parts(lambda x: x.sum(axis=1), (100, 3))
    assert parts(lambda x: jg.softmax(x, -1), (100, 4))
    assert parts(lambda x: x.sum(axis=1), (20, 3, 3))
    assert not parts(lambda x: x.sum(axis=1), (20, 3, 5))
    assert parts(lambda x: x.sum(axis=1).sum(axis=0), (20, 40, 3))
    assert parts(lambda x: x.sum(axis=2).sum(axis=1), (20, 40, 3))


def test_sums_over_points_are_numbers_for_each_coordinate() -> None:
    assert parts(lambda x: x.sum(axis=0), (300, 3))
    assert parts(lambda x: (x[:, :, None] * x[:, None]).sum(axis=0), (300, 3))
    assert not parts(lambda x: x.sum(axis=0), (300, 5))
    assert not parts(lambda x: x.sum(axis=1), (4, 300))


@pytest.mark.parametrize("reduction", ["sum", "max", "mean", "prod"])
@pytest.mark.parametrize("shape", [(300, 3), (20, 20, 4), (257, 2, 3)])
def test_columns_of_points(reduction: str, shape: tuple[int, ...], same: Any) -> None:
    axes = (0, 1) if shape[1] == 20 else 0
    same(lambda x: getattr(jg, reduction)(jg.tanh(x), axis=axes), jg.tensor(R.standard_normal(shape)), rtol=1e-12)


def test_limits() -> None:
    assert parts(windows("max"), (LEAST_PIECE, 1, MAX_PIECES, 2, 1))
    assert not parts(windows("max"), (LEAST_PIECE, 2, MAX_PIECES + 1, 20, 2))
    assert not parts(windows("max"), (LEAST_PIECE // 2 - 1, 1, 3, 2, 3))


def test_repeated_elements_are_written_side_by_side(steps_of: Any, same: Any) -> None:
    function = same(lambda x: (jg.repeat(x * 2.0, 3, 1), jg.repeat(x, 2, 0)), values((20, 5)))

    assert parts(lambda x: jg.repeat(x, 3), (40,))
    assert not parts(lambda x: jg.tile(x, (4,)), (40,))
    assert not parts(lambda x: jg.repeat(jg.tanh(x * 2.0) + 1.0, 3), (40,))  # the rows are lanes, and tanh is in vectors
    assert steps_of(function, values((20, 5)))[0] == "kernel"


def test_pieces_of_a_pool(golden: Any) -> None:
    graph = jit(jg.grad(lambda x: pool(x).sum()), check="off").graph(jg.ones((1, 2, 8, 8)), stage="unroll_axes")

    assert format_graph(graph, origins=False) == golden
