"""Faults that torch's op database showed, each as a test that doesn't need torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AxisError
from jitgrad.nn import functional as F

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
SPREAD = RNG.uniform(0.5, 2.0, 4)
ASYMMETRIC = RNG.normal(size=(4, 4)) + 4.0 * np.eye(4)
MIRRORED = np.tril(ASYMMETRIC) + np.tril(ASYMMETRIC, -1).T


def values(x: Any) -> Any:
    return x.detach().numpy()


def test_gaussian_nll_loss_of_a_variance_per_row() -> None:
    found = F.gaussian_nll_loss(jg.tensor(X), jg.tensor(Y), jg.tensor(SPREAD), reduction="none")

    rows = SPREAD[:, None]
    np.testing.assert_allclose(values(found), 0.5 * (np.log(rows) + (X - Y) ** 2 / rows))


def test_cosine_similarity_broadcasts_before_it_measures() -> None:
    x, y = X[None, :2, :3], X[2:, None, :3]

    found = F.cosine_similarity(jg.tensor(x), jg.tensor(y), dim=-2)

    a, b = np.broadcast_arrays(x, y)
    expected = (a * b).sum(-2) / np.sqrt((a * a).sum(-2) * (b * b).sum(-2))
    np.testing.assert_allclose(values(found), expected)


@pytest.mark.parametrize("order", [-2.0, -0.5, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_of_norms_at_zeros_is_finite(order: float, compiled: bool) -> None:
    def slope(x: Any) -> Any:
        return jg.grad(lambda v: jg.linalg.vector_norm(v, ord=order))(x)

    run = jg.jit(backend="python")(slope) if compiled else slope
    for x in (np.zeros(3), np.array([0.0, 3.0, 1.0])):
        assert np.isfinite(values(run(jg.tensor(x)))).all()


def test_norm_of_negative_order_off_zero() -> None:
    x = np.array([1.0, 2.0])

    t = jg.tensor(x, requires_grad=True)
    jg.norm(t, -1).backward()

    np.testing.assert_allclose(values(t.grad), (1 / x) ** 2 / (1 / x).sum() ** 2)


@pytest.mark.parametrize("name", ["pinv", "matrix_rank"])
def test_hermitian_reads_the_lower_triangle(name: str) -> None:
    found = getattr(jg.linalg, name)(jg.tensor(ASYMMETRIC), hermitian=True)

    np.testing.assert_allclose(values(found), getattr(np.linalg, name)(MIRRORED), rtol=1e-9, atol=1e-12)


def test_svd_of_a_hermitian_matrix_reads_the_lower_triangle() -> None:
    found = jg.linalg.svd(jg.tensor(ASYMMETRIC), compute_uv=False, hermitian=True)

    np.testing.assert_allclose(values(found), np.linalg.svd(MIRRORED, compute_uv=False))


def test_pinv_of_float32_leaves_out_rounding_errors() -> None:
    u, v = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.7])
    x = np.outer(u, v).astype(np.float32)

    np.testing.assert_allclose(values(jg.linalg.pinv(jg.tensor(x))), np.outer(v, u) / (u @ u) / (v @ v), rtol=1e-4)


def test_matrix_rank_with_limits_per_matrix_and_of_nothing() -> None:
    pair = np.stack([np.diag([3.0, 1.0, 0.1]), np.diag([30.0, 1.0, 0.1])])

    assert values(jg.linalg.matrix_rank(jg.tensor(pair), rtol=0.2)).tolist() == [2, 1]
    assert values(jg.linalg.matrix_rank(jg.tensor(pair), atol=jg.tensor([0.5, 2.0]))).tolist() == [2, 1]
    assert jg.linalg.matrix_rank(jg.tensor(np.empty((0, 0)))).item() == 0


def test_norms_of_empty_matrices() -> None:
    empty = jg.tensor(np.empty((5, 0)))

    assert [jg.linalg.matrix_norm(empty, ord).item() for ord in ("fro", "nuc", 1, 2, np.inf)] == [0.0] * 5


def test_diff_of_order_zero_leaves_out_prepend() -> None:
    np.testing.assert_array_equal(values(jg.diff(jg.tensor(X), n=0, prepend=jg.tensor(Y))), X)


def test_take_along_dim_flattens_without_an_axis() -> None:
    index = np.array([[3, 15], [0, 7]])

    np.testing.assert_array_equal(values(jg.take_along_dim(jg.tensor(X), jg.tensor(index))), X.ravel()[index.ravel()])
    by_rows = np.argsort(X, 1)
    np.testing.assert_array_equal(values(jg.tensor(X).take_along_dim(jg.tensor(by_rows), dim=1)), np.sort(X, 1))


@pytest.mark.parametrize("call", [lambda x: x.sum(True), lambda x: x.var(True), lambda x: jg.squeeze(x, False)])
def test_a_flag_is_no_axis(call: Callable[[Any], Any]) -> None:
    with pytest.raises(AxisError, match=r"axis must be an int, got (True|False)"):
        call(jg.tensor(X))


def test_largest_of_two_tensors() -> None:
    x, y = jg.tensor(X), jg.tensor(Y[0])

    np.testing.assert_array_equal(values(jg.max(x, y)), np.maximum(X, Y[0]))
    np.testing.assert_array_equal(values(x.min(y)), np.minimum(X, Y[0]))


def test_ctc_loss_keeps_float32() -> None:
    scores = jg.log_softmax(jg.tensor(RNG.normal(size=(6, 2, 4)).astype(np.float32)), -1)
    lengths = jg.tensor([6, 6]), jg.tensor([2, 1])

    assert F.ctc_loss(scores, jg.tensor([[1, 2], [3, 3]]), *lengths).dtype == np.float32


def test_mean_of_scattered_integers_rounds_down() -> None:
    found = jg.scatter_reduce(jg.tensor([-1, 4]), 0, jg.tensor([0, 1]), jg.tensor([0, 3]), "mean")

    assert values(found).tolist() == [-1, 3]


def test_errors_are_not_bare() -> None:
    with pytest.raises(AxisError, match="median"):
        jg.median(jg.tensor(X), dim=7)
    with pytest.raises(ArgumentError, match="output_size"):
        F.adaptive_avg_pool1d(jg.tensor(X), (2, 2))
    with pytest.raises(ArgumentError, match="contradict"):
        jg.searchsorted(jg.tensor([1.0]), jg.tensor([1.0]), "left", right=True)
    with pytest.raises(ArgumentError, match="output_size=5"):
        jg.repeat_interleave(jg.tensor(X), 2, dim=0, output_size=5)


def test_weighted_covariances() -> None:
    counts, weights = np.array([1, 3, 2, 1]), SPREAD

    for options in ({"fweights": counts}, {"fweights": counts, "aweights": weights, "ddof": 0}, {"aweights": weights}):
        np.testing.assert_allclose(values(jg.numpy.cov(X, **options)), np.cov(X, **options))


def test_nanmedian_with_positions() -> None:
    x = np.array([[3.0, np.nan, 1.0, 2.0], [np.nan, 5.0, np.nan, 4.0]])

    found, places = jg.nanmedian(jg.tensor(x), dim=1)

    assert values(found).tolist() == [2.0, 4.0] and values(places).tolist() == [3, 3]


def test_adaptive_max_pool_with_positions() -> None:
    x = RNG.normal(size=(2, 3, 5, 7))

    found, places = F.adaptive_max_pool2d(jg.tensor(x), (2, 3), return_indices=True)

    np.testing.assert_array_equal(values(found), values(F.adaptive_max_pool2d(jg.tensor(x), (2, 3))))
    flat = np.take_along_axis(x.reshape(2, 3, 35), values(places).reshape(2, 3, 6), -1)
    np.testing.assert_array_equal(flat.reshape(2, 3, 2, 3), values(found))


def test_instance_norm_moves_running_statistics() -> None:
    x, mean, var = RNG.normal(2.0, 3.0, (5, 3, 20)), jg.tensor(np.zeros(3)), jg.tensor(np.ones(3))

    F.instance_norm(jg.tensor(x), mean, var, momentum=0.25)

    np.testing.assert_allclose(values(mean), 0.25 * x.mean((0, 2)))
    np.testing.assert_allclose(values(var), 0.75 + 0.25 * x.var(2, ddof=1).mean(0))
    found = F.instance_norm(jg.tensor(x), mean, var, use_input_stats=False, eps=0.0)
    np.testing.assert_allclose(values(found), (x - values(mean)[:, None]) / np.sqrt(values(var))[:, None])


def test_resizing_with_means_keeps_a_ramp() -> None:
    ramp = np.broadcast_to(np.arange(24.0), (1, 1, 24, 24))

    for mode in ("bilinear", "bicubic"):
        found = values(F.interpolate(jg.tensor(ramp), size=(6, 6), mode=mode, antialias=True))
        np.testing.assert_allclose(found[0, 0, 1, 2:4], [9.5, 13.5], rtol=1e-12)
    with pytest.raises(ArgumentError, match="antialias"):
        F.interpolate(jg.tensor(ramp), size=(4, 4), antialias=True)


def test_floats_from_randint_are_whole() -> None:
    found = values(jg.randint(0, 7, (50,), dtype=np.float32))

    assert found.dtype == np.float32 and np.array_equal(found, np.floor(found)) and found.max() < 7
