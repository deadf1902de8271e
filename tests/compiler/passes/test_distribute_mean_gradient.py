"""Sums of terms in place of terms of sums: fewer sweeps in normalisations, with the same accuracy."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.passes.distribute_mean_gradient import distribute_mean_gradient
from jitgrad.compiler.pipeline import PASSES
from jitgrad.compiler.plan import KernelStep
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import jit


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return jg.tensor(np.random.default_rng(3).standard_normal(shape).astype(dtype))


def changed(f: Any, *args: Any) -> bool:
    """Whether the pass changes the program of ``f``."""
    graph = jit(f, check="off").graph(*args, stage="trace")
    for step in takewhile(lambda step: step.run is not distribute_mean_gradient, PASSES):
        graph = step(graph, Tuning())
    return distribute_mean_gradient(graph, Tuning()) is not graph


def sweeps(f: Any, *args: Any) -> list[int]:
    steps = jit(f, check="off").lookup(*args).program.plan.steps
    return [sum(bool(s.body) for s in step.lowered.kernel.sweeps) for step in steps if isinstance(step, KernelStep)]


def gradients(norm: Any) -> Any:
    return jg.value_and_grad(lambda x, g: (norm(x) * g).sum(), argnums=0)


NORMS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "layer_norm": (lambda x: jg.layer_norm(x, 40), (6, 40)),
    "two axes": (lambda x: jg.layer_norm(x, (5, 8)), (6, 5, 8)),
    "group_norm": (lambda x: jg.group_norm(x, 2), (3, 4, 5, 5)),
    "batch_norm": (lambda x: jg.batch_norm(x, None, None, training=True)[0], (6, 16, 8, 8)),
    "columns": (lambda x: (x - x.mean(axis=0)) * jg.rsqrt(x.var(axis=0) + 1e-5), (40, 6)),
    "to the whole": (lambda x: (x - x.mean()) / (x.std(correction=0) + 1e-5), (6, 40)),
    "a residual": (lambda x: x + jg.layer_norm(x, 40), (6, 40)),
}


@pytest.mark.numba
@pytest.mark.parametrize("name", NORMS)
def test_gradients_of_normalisations(name: str, same: Any) -> None:
    norm, shape = NORMS[name]
    x, g = random(*shape, dtype=np.float64) + 100.0, random(*shape, dtype=np.float64)

    assert changed(gradients(norm), x, g)
    same(gradients(norm), x, g, rtol=1e-9, atol=1e-11)


def test_a_layer_norm_and_its_gradient_take_three_sweeps() -> None:
    norm, shape = NORMS["layer_norm"]

    assert sweeps(gradients(norm), random(*shape), random(*shape)) == [3]


def test_second_derivatives() -> None:
    norm, shape = NORMS["layer_norm"]
    x, g = random(*shape, dtype=np.float64), random(*shape, dtype=np.float64)
    twice = jg.grad(lambda x: (jg.grad(lambda x: (norm(x) ** 3).sum())(x) * g).sum())

    np.testing.assert_allclose(jit(twice, check="off")(x).numpy(), twice(x).numpy(), rtol=1e-9, atol=1e-11)


def late(x: Any, y: Any) -> tuple[Any, Any]:
    """A number per row from a sum over the row, and terms that need it."""
    scale = (x * x).sum(axis=1, keepdims=True)
    return scale, y * scale + x


def sum_alone(x: Any, y: Any) -> Any:
    return late(x, y)[1].sum(axis=1)


def sum_returned(x: Any, y: Any) -> Any:
    t = late(x, y)[1]
    mean = t.mean(axis=1, keepdims=True)
    return t - mean, mean


def sum_scaled_by_elements(x: Any, y: Any) -> Any:
    t = late(x, y)[1]
    return t - t.mean(axis=1, keepdims=True) * x


def sum_subtracted_elsewhere(x: Any, y: Any) -> Any:
    t = late(x, y)[1]
    return y - t.mean(axis=1, keepdims=True), t


def factors_not_of_rows(x: Any, y: Any) -> Any:
    t = y * (x * x).sum(axis=0) + x
    return t - t.mean(axis=1, keepdims=True)


def nothing_sooner(x: Any, y: Any) -> Any:
    t = y * 2.0 + x
    return t - t.mean(axis=1, keepdims=True)


def other_dtype(x: Any, y: Any) -> Any:
    t = late(x, y)[1]
    return t - t.sum(axis=1, keepdims=True, dtype=jg.float64) / 7


@pytest.mark.parametrize(
    "f",
    [
        sum_alone, sum_returned, sum_scaled_by_elements, sum_subtracted_elsewhere, factors_not_of_rows, nothing_sooner,
        other_dtype,
    ],
)  # fmt: skip
def test_left_alone(f: Any) -> None:
    assert not changed(f, random(5, 5), random(5, 5))


def test_changed_where_the_mean_is_subtracted_from_its_terms() -> None:
    def f(x: Any, y: Any) -> Any:
        t = late(x, y)[1]
        return t - t.mean(axis=1, keepdims=True)

    x, y = random(5, 7), random(5, 7)

    assert changed(f, x, y)
    np.testing.assert_allclose(jit(f, check="off")(x, y).numpy(), f(x, y).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.numba
def test_no_less_accurate_where_the_terms_cancel() -> None:
    """The gradient of a layer norm along its own output: both terms are large, and their sum vanishes."""
    x = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32) + 5.0
    f = jg.grad(lambda x: (jg.layer_norm(x, 512) ** 2).sum())
    exact = f(jg.tensor(x.astype(np.float64))).numpy()

    def error(g: Any) -> float:
        return float(np.abs(g(jg.tensor(x)).numpy() - exact).max())

    assert error(jit(f, check="off")) <= 1.5 * error(f)


def test_infinite_and_missing_numbers_stay_in_their_rows() -> None:
    norm, shape = NORMS["layer_norm"]
    x, g = random(*shape).numpy(), random(*shape)
    x[1, 3], x[2, 4] = np.nan, np.inf

    with np.errstate(invalid="ignore"):
        expected = gradients(norm)(jg.tensor(x), g)[1].numpy()
        found = jit(gradients(norm), check="off")(jg.tensor(x), g)[1].numpy()

    np.testing.assert_array_equal(np.isnan(found).any(axis=1), [False, True, True, False, False, False])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
