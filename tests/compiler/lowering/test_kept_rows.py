"""Reductions around kept axes as reductions of whole rows, one for each index of the kept axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import jit
from jitgrad.testing import check_grads

R = np.random.default_rng(0)
CLOSE = {"rtol": 1e-10, "atol": 1e-11}


@pytest.fixture
def small(tune: Any) -> None:
    """Rows pay however few and short they are."""
    tune(min_kept_rows=1, min_row_run=1)


def array(*shape: int, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    return R.standard_normal(shape).astype(dtype)


def batch_norm_loss(x: Any, scale: Any, shift: Any) -> Any:
    y = jg.batch_norm(x, None, None, scale, shift, training=True)
    return jg.mean(jg.square(jg.relu(y)))


def normalise(x: Any, axes: tuple[int, ...] = (0, 2, 3)) -> Any:
    return x - jg.mean(x, axis=axes, keepdims=True)


batch_norm_step = jg.value_and_grad(batch_norm_loss, argnums=(0, 1, 2))


def forms(function: Any, *args: Any) -> list[tuple[int, ...]]:
    """The axes of the reductions that become kernels, without those of everything."""
    graph = jit(function, check="off").graph(*args, stage="canonicalize_reductions")
    return [n.attr("axis") for n in graph.nodes if n.op.name == "sum" and n.out.aval.size > 1]


def kernels(function: Any, *args: Any) -> list[KernelStep]:
    steps = jit(function, check="off").lookup(*args).program.plan.steps
    assert all(isinstance(s, KernelStep) for s in steps)
    return [s for s in steps if isinstance(s, KernelStep)]


# --- how many kernels ----------------------------------------------------------------------------------------------


def test_batch_norm_forward_and_backward_is_one_kernel() -> None:
    (step,) = kernels(batch_norm_step, array(4, 20, 6, 8), array(20), array(20))

    assert len(step.lowered.kernel.outer) == 1
    assert len(step.lowered.kernel.inner) == 2
    assert step.lowered.schedule.iterations == 20


def test_two_batch_norms_and_what_lies_between_are_one_kernel() -> None:
    def loss(x: Any, scale: Any, shift: Any) -> Any:
        y = jg.relu(jg.batch_norm(x, None, None, scale, shift, training=True)) + x
        return batch_norm_loss(y, shift, scale)

    step = jg.value_and_grad(loss, argnums=(0, 1, 2))

    assert len(kernels(step, array(4, 20, 6, 8), array(20), array(20))) == 1


def test_running_statistics_join_the_kernel_of_the_batch() -> None:
    norm = jg.nn.BatchNorm2d(20, dtype=np.float64)
    counts = [k for k in norm.state_dict() if "num" in k]

    function = jit(lambda x: norm(x), check="off")
    steps = function.lookup(array(4, 20, 6, 8)).program.plan.steps

    assert counts == ["num_batches_tracked"]
    assert len(steps) <= 2  # the counter is a kernel of its own


def test_long_rows_need_no_scratch_where_a_result_has_room() -> None:
    """Values kept between three sweeps take turns in the memory of dx."""
    (step,) = kernels(batch_norm_step, array(4, 20, 48, 48), array(20), array(20))

    assert step.lowered.schedule.block_size == 1
    assert [b.label for b in step.lowered.scratch] == ["partial results"]


# --- when ----------------------------------------------------------------------------------------------------------

ROWS, IN_TWO = [(1, 2, 3)], [(2, 3), (0,)]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param((4, 20, 6, 8), ROWS, id="enough"),
        pytest.param((4, 15, 6, 8), IN_TWO, id="few rows"),
        pytest.param((4, 20, 5, 6), IN_TWO, id="short parts"),
        pytest.param((48, 20, 6, 8), ROWS, id="as many parts as elements in one"),
        pytest.param((49, 20, 6, 8), IN_TWO, id="many parts"),
    ],
)
def test_sizes_alone_decide(shape: tuple[int, ...], expected: Any) -> None:
    assert forms(normalise, array(*shape)) == expected


def test_rows_too_long_for_a_cache_are_summed_in_two(tune: Any) -> None:
    tune(max_row_bytes=4 * 48 * 8 - 1)

    assert forms(normalise, array(4, 20, 6, 8)) == IN_TWO
    assert forms(normalise, array(4, 20, 6, 8, dtype=np.float32)) == ROWS


def test_a_sum_that_no_element_needs_is_in_two() -> None:
    assert forms(lambda x: jg.sum(jg.square(x), axis=(0, 2, 3)), array(4, 20, 6, 8)) == IN_TWO


def test_other_rows_of_the_same_elements_leave_all_in_two() -> None:
    """An instance norm's scale, or a pooling of what was normalised: both walk rows of one channel of one image."""
    def pooled(x: Any) -> Any:
        return jg.mean(normalise(x), axis=(2, 3))

    assert forms(pooled, array(4, 20, 6, 8)) == [*IN_TWO, (2, 3)]


def test_a_product_keeps_what_lies_beyond_it_apart() -> None:
    def apart(x: Any, w: Any) -> Any:
        return jg.mean(jg.tanh(normalise(x) @ w), axis=(2, 3))

    assert forms(apart, array(4, 20, 6, 8), array(8, 8)) == [*ROWS, (2, 3)]


def test_images_with_channels_last_are_summed_in_the_order_of_memory() -> None:
    """Rows of one channel would read every line of memory once for each channel."""
    permuted = lambda x: normalise(jg.tanh(jg.permute_dims(x, (0, 3, 1, 2))))  # noqa: E731

    assert forms(permuted, array(4, 6, 8, 20)) == [(0, 1, 2)]
    assert forms(lambda x: normalise(jg.permute_dims(x, (2, 0, 1, 3))), array(20, 6, 4, 8)) == ROWS


# --- values --------------------------------------------------------------------------------------------------------

SHAPES = [(1, 3, 2, 4), (5, 1, 2, 4), (5, 3, 1, 1), (5, 3, 1, 4), (1, 1, 1, 2), (3, 2, 5, 7), (5, 2, 1, 3), (2, 3, 17, 19)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batch_norm_of_odd_sizes(shape: tuple[int, ...], dtype: Any, same: Any) -> None:
    x, scale, shift = array(*shape, dtype=dtype), array(shape[1], dtype=dtype), array(shape[1], dtype=dtype)

    same(batch_norm_step, x, scale, shift, **(CLOSE if dtype == np.float64 else {"rtol": 2e-3, "atol": 2e-4}))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("axes", [(0, 2, 4), (0, 3, 4), (0, 1, 3, 4), (0, 1, 2, 4), (0, 4)])
def test_any_axes_between(axes: tuple[int, ...], same: Any) -> None:
    def f(x: Any) -> Any:
        y = normalise(x, axes)
        return y, jg.max(y, axis=axes), jg.mean(y * y), jg.grad(lambda x: jg.sum(normalise(x, axes) ** 3))(x)

    found = same(f, array(3, 2, 3, 2, 9), **CLOSE)

    assert found.explain(array(3, 2, 3, 2, 9)).unfused_ops == []


VIEWS = {
    "every second image": lambda x: x[::2],
    "backwards": lambda x: x[::-1, :, ::-1, ::-1],
    "every second column": lambda x: x[..., ::2],
    "swapped": lambda x: jg.permute_dims(x, (1, 0, 3, 2)),
    "swapped in front": lambda x: jg.permute_dims(x, (2, 1, 0, 3)),
    "one image many times": lambda x: jg.broadcast_to(x[:1], (5, *x.shape[1:])),
    "one column many times": lambda x: jg.broadcast_to(x[..., :1], (*x.shape[:3], 9)),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, same: Any) -> None:
    def f(x: Any) -> Any:
        y = VIEWS[name](x)
        scale = jg.sum(jg.square(x)) * jg.full((y.shape[1],), 0.5)
        return jg.value_and_grad(batch_norm_loss, argnums=(0, 1, 2))(y, scale, scale - 1.0)

    same(f, array(4, 3, 5, 6), **CLOSE)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["f4", "i1", "i8", "u2", "?"])
@pytest.mark.parametrize("reduction", ["sum", "prod", "max", "min", "any", "all"])
def test_every_reduction_and_dtype(reduction: str, dtype: str, same: Any) -> None:
    x = (array(3, 2, 4) * 2).astype(dtype)
    if dtype == "f4":
        x[1, 0, 2] = np.nan

    def f(x: Any) -> Any:
        found = getattr(jg, reduction)(x, axis=(0, 2))
        return found, jg.equal(x, jg.reshape(found, (2, 1)))

    function = same(f, x, rtol=1e-6)

    graph = function.graph(x, stage="canonicalize_reductions")
    assert [n.attr("axis") for n in graph.nodes if n.op.name == reduction] == [(1, 2)]


@pytest.mark.usefixtures("small")
def test_gradients_agree_with_finite_differences() -> None:
    function = jit(lambda x, scale, shift: jg.tanh(jg.batch_norm(x, None, None, scale, shift, training=True)), check="off")

    check_grads(function, (array(3, 2, 2, 3), array(2), array(2)), order=1)


@pytest.mark.usefixtures("small")
def test_the_derivative_of_a_derivative(same: Any) -> None:
    def second(x: Any, scale: Any) -> Any:
        inner = jg.grad(lambda x: jg.mean(jg.tanh(jg.batch_norm(x, None, None, scale, None, training=True))))
        return jg.grad(lambda x: jg.sum(jg.square(inner(x))))(x)

    same(second, array(3, 2, 2, 3), array(2), **CLOSE)


@pytest.mark.numba
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(4, 20, 6, 8), (4, 20, 48, 48), (3, 17, 19, 23)])
def test_compiled_rows_are_right_and_the_same_for_any_number_of_threads(shape: Any, threads: int, same: Any) -> None:
    def step(x: Any, scale: Any, shift: Any) -> Any:
        def loss(x: Any, scale: Any, shift: Any) -> Any:
            y = jg.gelu(jg.batch_norm(x, None, None, scale, shift, training=True))
            return jg.mean(y * jg.tanh(y + x))

        return jg.value_and_grad(loss, argnums=(0, 1, 2))(x, scale, shift)

    args = array(*shape), array(shape[1]), array(shape[1])
    before = jg.get_num_threads()
    try:
        jg.set_num_threads(1)
        expected = jit(step, check="off")(*args)
        jg.set_num_threads(threads)
        same(step, *args, **CLOSE)
        found = jit(step, check="off")(*args)
    finally:
        jg.set_num_threads(before)
    for a, b in zip([found[0], *found[1]], [expected[0], *expected[1]], strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
