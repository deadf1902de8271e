"""Convolutions in blocks of windows: values and gradients at every shape, by tiles and by BLAS, and no Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.nn.functional as F
from jitgrad.compiler.convolution_ops import CONVOLUTIONS
from jitgrad.runtime.library import convolutions

pytestmark = pytest.mark.numba

R = np.random.default_rng(0)
EXACT = {np.float32: 2e-5, np.float64: 1e-11}
# images, weights, options
CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    ((2, 4, 8, 9), (6, 4, 3, 2), {}),
    ((3, 8, 5, 6), (4, 8, 3, 3), {"padding": 1}),
    ((2, 64, 20, 33), (7, 64, 3, 3), {"padding": "same"}),  # several blocks of rows and of channels
    ((2, 4, 12, 12), (6, 4, 1, 1), {}),
    ((1, 5, 40, 40), (3, 5, 1, 1), {}),  # windows are read where they are
    ((2, 4, 9, 9), (6, 4, 1, 1), {"stride": 2}),
    ((2, 4, 12, 12), (6, 2, 3, 3), {"groups": 2, "stride": 2, "dilation": 2}),
    ((70, 3, 9, 9), (5, 3, 4, 4), {"padding": "same"}),  # several images a block, the last with fewer
    ((1, 3, 50, 70), (5, 3, 7, 7), {"stride": (2, 3), "padding": (3, 1)}),
    ((1, 3, 5, 1201), (5, 3, 2, 2), {}),  # several blocks of columns
    ((2, 6, 7, 7), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
    ((3, 2, 6, 6), (4, 2, 2, 2), {"stride": 3, "padding": 4}),
    ((2, 3, 8, 40), (6, 1, 3, 2), {"groups": 3, "padding": 2}),  # one channel a group: no product of matrices
    ((2, 3, 9, 9), (3, 1, 3, 3), {"groups": 3, "stride": (2, 3), "dilation": (1, 2), "padding": 3}),
]


def tensors(dtype: Any, *shapes: Any) -> list[jg.Tensor]:
    return [jg.tensor(R.standard_normal(shape).astype(dtype)) for shape in shapes]


def gradients(function: Any, *args: Any) -> tuple[Any, list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]:
    """The compiled function, and its gradients by itself and by eager execution."""
    f = jg.jit(jg.grad(lambda *args: jg.mean(jg.tanh(function(*args)) ** 2), argnums=tuple(range(len(args)))))
    f(*args)  # the first call gives what eager execution does
    return f, [g.numpy() for g in f(*args)], [g.numpy() for g in f.eager(*args)]


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


def calls(f: Any, *args: Any) -> list[Any]:
    return [s for s in f.lookup(*args).program.steps if getattr(s, "op", None) is not None]


@pytest.fixture(params=["tiles", "BLAS"])
def product(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What multiplies a block: tiles where the CPU has AVX-512, or BLAS everywhere."""
    if request.param == "BLAS":
        monkeypatch.setattr(convolutions, "VECTOR_BITS", -1)
    return request.param


@pytest.mark.parametrize("case", range(len(CASES)), ids=[str(case) for case in CASES])
def test_gradients_of_every_shape(case: int, product: str) -> None:
    """Every shape by both products, alternately in both formats."""
    image, weight, options = CASES[case]
    dtype = (np.float32, np.float64)[(case + (product == "BLAS")) % 2]
    x, w = tensors(dtype, image, weight)

    f, found, expected = gradients(lambda x, w: jg.conv2d(x, w, **options), x, w)

    assert_close(found, expected, EXACT[dtype])
    assert {s.op for s in calls(f, x, w)} == CONVOLUTIONS
    assert all(s.instruction is not None for s in calls(f, x, w))


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "dilation": 2}], ids=str)
def test_transposed_convolutions(options: dict[str, Any], product: str) -> None:
    x, w = tensors(np.float64, (3, 6, 5, 4), (6, 4, 4, 4))

    f, found, expected = gradients(lambda x, w: F.conv_transpose2d(x, w, **options), x, w)

    assert_close(found, expected, 1e-11)
    assert {s.op for s in calls(f, x, w)} == CONVOLUTIONS
    assert all(s.instruction is not None for s in calls(f, x, w))


@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2, "padding": (3, 2), "dilation": 2}, {"groups": 2}], ids=str)
def test_second_derivatives(options: dict[str, Any]) -> None:
    x, w, b = tensors(np.float64, (2, 4, 8, 9), (6, 4 // options.get("groups", 1), 3, 2), (6,))

    def loss(x: Any, w: Any, b: Any) -> Any:
        return jg.sum(jg.tanh(jg.conv2d(x, w, b, **options)) ** 2)

    def steepness(x: Any, w: Any, b: Any) -> Any:
        return sum(jg.sum(g * g) for g in jg.grad(loss, argnums=(0, 1, 2))(x, w, b))

    f, found, expected = gradients(steepness, x, w, b)

    assert_close(found, expected, 1e-9)
    assert all(s.instruction is not None or s.products is not None for s in calls(f, x, w, b))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    x, w = tensors(np.float32, (9, 3, 24, 24), (8, 3, 3, 3))
    f = jg.jit(jg.grad(lambda x, w: jg.sum(jg.tanh(jg.conv2d(x, w))), argnums=(0, 1)))
    f(x, w)
    threads, results = jg.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            jg.set_num_threads(count)
            results.append([g.numpy() for g in f(x, w)])
    finally:
        jg.set_num_threads(threads)
    for result in results[1:]:
        for a, b in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_images_and_weights_that_are_views() -> None:
    x, w = tensors(np.float64, (9, 8, 2, 6), (3, 3, 8, 4))

    def f(x: Any, w: Any) -> Any:
        return jg.conv2d(jg.permute_dims(x, (2, 1, 0, 3))[:, ::2], jg.permute_dims(w, (2, 3, 0, 1)))

    compiled, found, expected = gradients(f, x, w)
    assert_close(found, expected, 1e-11)
    assert all(s.instruction is not None for s in calls(compiled, x, w) if s.op in CONVOLUTIONS)


def test_one_channel_a_group_needs_no_product() -> None:
    """Products of one row, with windows of 9 elements in memory, took 2 to 15 times as long."""
    x, w = tensors(np.float32, (2, 6, 9, 9), (6, 1, 3, 3))
    f = jg.jit(jg.grad(lambda x, w: jg.sum(jg.tanh(jg.conv2d(x, w, groups=6))), argnums=(0, 1)))

    f(x, w)

    sources = [s.instruction.code.source for s in calls(f, x, w)]
    assert len(sources) == 3 and not any("multiply(" in source for source in sources)


def test_windows_take_no_memory() -> None:
    """The windows of a 3 x 3 convolution took nine times the memory of its images, and their gradient as much."""
    x, w = tensors(np.float32, (4, 16, 32, 32), (16, 16, 3, 3))
    f = jg.jit(jg.grad(lambda x, w: jg.sum(jg.tanh(jg.conv2d(x, w, padding=1))), argnums=(0, 1)))

    f(x, w)

    assert f.lookup(x, w).program.plan.arena_bytes < 5 * x.nbytes


def test_an_empty_batch() -> None:
    f = jg.jit(lambda x, w: jg.conv2d(x, w))
    assert f(jg.zeros((0, 8, 5, 6)), jg.zeros((4, 8, 3, 3))).shape == (0, 4, 3, 4)
