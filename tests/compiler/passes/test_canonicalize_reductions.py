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


@pytest.mark.parametrize("reduction", ["sum", "max"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((5, 3, 4, 1), (0, 2, 3)), ((5, 3, 1, 4), (0, 2, 3)), ((1, 5, 3, 4, 1), (0, 1, 3, 4)), ((5, 3, 4, 1), (0, 2))],
)
def test_axes_of_length_one_behind_kept_ones(shape, axes, reduction):
    x = R.standard_normal(shape)
    found = jit(lambda x: getattr(jg, reduction)(jg.square(x), axis=axes), check="off")(x)

    np.testing.assert_allclose(found.numpy(), getattr(np, reduction)(np.square(x), axis=axes), rtol=1e-13)


def test_a_small_sum_over_the_middle_is_one_sum_of_rows():
    graph = jit(lambda x: jg.sum(x, axis=1), check="off").graph(jg.ones((2, 3, 4)), stage="canonicalize_reductions")

    assert [node.op.name for node in graph.nodes] == ["permute_dims", "sum"]


def spread(x, axes):
    centred = x - x.mean(axes, keepdims=True)
    return jg.tanh(centred / jg.sqrt(x.var(axes, keepdims=True) + 1e-3)).sum()


def shares(x, axes):
    p = jg.exp(x - x.max(axes, keepdims=True))
    return (p / p.sum(axes, keepdims=True) * x).sum()


def scores(x, axes):
    return jg.square(jg.logsumexp(x, axes)).sum()


# more than the 64 rows that are lanes of one tile, and no multiple of it
ALTERNATING = {
    "every other axis": (R.standard_normal((5, 4, 30, 3)), (1, 3)),
    "the others": (R.standard_normal((11, 4, 3, 29)), (0, 2)),
    "of five": (R.standard_normal((3, 2, 5, 4, 6)), (0, 2, 4)),
    "two pairs": (R.standard_normal((3, 2, 5, 4, 2)), (1, 2, 4)),
    "a long last one": (R.standard_normal((3, 5, 2, 40)), (1, 3)),
    "backwards": (R.standard_normal((9, 4, 9, 3))[::-1, :, ::-1, ::-1], (1, 3)),
    "in another order": (R.standard_normal((4, 9, 3, 9)).transpose(3, 2, 1, 0), (1, 3)),
    "repeated": (np.broadcast_to(R.standard_normal((9, 1, 9, 3)), (9, 4, 9, 3)), (1, 3)),
}


@pytest.mark.parametrize("loss", [spread, shares, scores])
@pytest.mark.parametrize("name", ALTERNATING)
def test_reductions_of_axes_between_kept_ones_are_one_kernel_with_their_gradient(name, loss):
    x, axes = ALTERNATING[name]
    step = jg.value_and_grad(lambda x: loss(x, axes))
    fused = jit(step, check="off", passes={"unroll_axes": False})
    x = jg.from_numpy(x)

    for found, expected in zip(fused(x), step(x), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-11)
    assert fused.explain(x).unfused_ops == []
    assert len(fused.kernels(x)) == 1


@pytest.mark.parametrize("axes", [(1, 3), (0, 2), (1,)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "u8", "?", "c8"])
@pytest.mark.parametrize("reduction", ["sum", "prod", "max", "any"])
def test_every_reduction_and_dtype_of_alternating_axes(reduction, dtype, axes):
    if dtype == "c8" and reduction == "max":
        pytest.skip("complex numbers have no order")
    x = (R.standard_normal((3, 4, 2, 5)) * 2).astype(dtype)
    if dtype == "f4":
        x[1, 0, 1, 2] = np.nan
    found = jit(getattr(jg, reduction), check="off", static_argnames=("axis",))(x, axis=axes).numpy()

    expected = getattr(jg, reduction)(x, axis=axes).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "f2" else 1e-5)


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
