"""Reductions around a kept axis in two steps: along each row, then over the rows."""

from __future__ import annotations

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)
X = R.standard_normal((5, 3, 4, 6))

AROUND = {
    "batch norm": (X, (0, 2, 3)),
    "a row of ones": (X[:, :, :1], (0, 2, 3)),
    "three axes": (X[0], (0, 2)),
    "two kept": (R.standard_normal((3, 4, 2, 5)), (0, 3)),
    "negative strides": (X[::-1, :, ::-1], (0, 2, 3)),
    "empty": (X[:0], (0, 2, 3)),
}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", AROUND)
def test_sums_around_an_axis_are_kernels_and_right(name: str, keepdims: bool):
    x, axes = AROUND[name]
    fused = jit(lambda x: jg.sum(x * x, axis=axes, keepdims=keepdims), check="off")

    found = fused(x).numpy()

    np.testing.assert_allclose(found, np.sum(x * x, axis=axes, keepdims=keepdims), rtol=1e-13)
    assert fused.explain(x).unfused_ops == []


@pytest.mark.parametrize("dtype", ["f4", "i1", "i8", "u2", "?"])
@pytest.mark.parametrize("reduction", ["sum", "prod", "max", "min", "any", "all"])
def test_every_reduction_and_dtype_around_an_axis(reduction: str, dtype: str):
    x = (R.standard_normal((3, 2, 4)) * 2).astype(dtype)
    if dtype == "f4":
        x[1, 0, 2] = np.nan
    found = jit(getattr(jg, reduction), check="off", static_argnames=("axis",))(x, axis=(0, 2)).numpy()

    expected = getattr(jg, reduction)(x, axis=(0, 2)).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_small_sum_over_the_middle_is_left_whole():
    graph = jit(lambda x: jg.sum(x, axis=1), check="off").graph(jg.ones((2, 3, 4)), stage="canonicalize_reductions")

    assert [node.op.name for node in graph.nodes] == ["sum"]


@pytest.mark.numba
def test_batch_norm_and_its_gradient_are_fused():
    def loss(x, scale, shift):
        y = jg.batch_norm(x, None, None, scale, shift, training=True)
        return jg.sum(jg.square(jg.relu(y)))

    step = jg.value_and_grad(loss, argnums=(0, 1, 2))
    fused = jit(step, check="off")
    arguments = (X, R.standard_normal(3), R.standard_normal(3))

    for found, expected in zip(*map(optree.tree_leaves, (fused(*arguments), step(*arguments))), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)
    assert fused.explain(*arguments).unfused_ops == []
