"""scipy.signal's convolutions and scipy.ndimage.map_coordinates: SciPy's values, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError, ShapeError
from jitgrad.scipy import ndimage, signal
from jitgrad.testing import check_grads

own: Any = pytest.importorskip("scipy.signal")
own_ndimage: Any = pytest.importorskip("scipy.ndimage")
SHAPES = [((5, 6, 4), (2, 3, 3)), ((3, 3, 3), (4, 4, 4)), ((4, 4, 4), (4, 4, 4))]
DTYPES = {np.dtype(np.float32): 2e-4, np.dtype(np.float64): 1e-11, np.dtype(np.int64): 0.0, np.dtype(np.complex128): 1e-11}


def pair(ndim: int, shapes: Any, dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(ndim)
    arrays = [5 * rng.normal(size=s[:ndim]) + 1j * rng.normal(size=s[:ndim]) for s in shapes]
    return [(x if np.dtype(dtype).kind == "c" else x.real).astype(dtype) for x in arrays]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
def test_convolutions_are_scipys(name: str, ndim: int, shapes: Any, dtype: Any) -> None:
    x, y = pair(ndim, shapes, dtype)
    for mode in ("full", "same", "valid"):
        expected = getattr(own, "convolve" if name == "fftconvolve" else name)(x, y, mode)
        found = getattr(signal, name)(jg.tensor(x), jg.tensor(y), mode).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=DTYPES[np.dtype(dtype)] * 100)


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_convolutions_of_matrices_are_scipys(name: str, boundary: str) -> None:
    for shapes in SHAPES:
        x, y = pair(2, shapes, np.float64)
        for mode in ("full", "same", "valid"):
            expected = getattr(own, name)(x, y, mode, boundary, 2.0)
            np.testing.assert_allclose(getattr(signal, name)(x, y, mode, boundary, 2.0).numpy(), expected, rtol=1e-10)


def test_gradients_of_convolutions() -> None:
    x, y = pair(2, SHAPES[0], np.float64)
    check_grads(lambda x, y: signal.convolve(x, y, "same"), [x, y])
    check_grads(lambda x, y: signal.correlate2d(x, y, "same", "symm"), [x, y])
    check_grads(signal.fftconvolve, pair(3, SHAPES[0], np.float64))


def test_errors_of_convolutions() -> None:
    with pytest.raises(ArgumentError, match="mode must be"):
        signal.convolve(np.ones(3), np.ones(2), "most")
    with pytest.raises(ShapeError, match="room for the other"):
        signal.convolve(np.ones((3, 2)), np.ones((2, 3)), "valid")
    with pytest.raises(ArgumentError, match="boundary must be"):
        signal.convolve2d(np.ones((3, 2)), np.ones((2, 3)), boundary="none")


def test_filters_are_scipys_own() -> None:
    b, a = signal.butter(2, 0.3)
    x = np.sin(np.arange(9.0))
    np.testing.assert_array_equal(signal.lfilter(b, a, jg.tensor(x)).numpy(), own.lfilter(b, a, x))
    with pytest.raises(AutogradError, match="lfilter is SciPy's own"):
        signal.lfilter(b, a, jg.tensor(x, requires_grad=True))


PLACES = np.random.default_rng(0).uniform(-9.0, 12.0, (2, 40))
PLACES[:, :8], PLACES[:, 8:12] = np.round(PLACES[:, :8]), np.floor(PLACES[:, 8:12]) + 0.5
IMAGE = np.random.default_rng(1).normal(size=(5, 6))
MODES = ["constant", "nearest", "wrap", "mirror", "reflect", "grid-wrap", "grid-constant", "grid-mirror"]


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_map_coordinates_is_scipys(mode: str, order: int) -> None:
    for image in (IMAGE, (10 * IMAGE).astype(np.int64)):
        expected = own_ndimage.map_coordinates(image, PLACES, order=order, mode=mode, cval=0.7)
        found = ndimage.map_coordinates(jg.tensor(image), PLACES, order=order, mode=mode, cval=0.7)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_gradients_of_map_coordinates() -> None:
    places = np.random.default_rng(2).integers(-3, 8, (2, 6)) + np.random.default_rng(3).uniform(0.1, 0.9, (2, 6))
    for mode in MODES:
        check_grads(lambda x, c, mode=mode: ndimage.map_coordinates(x, c, order=1, mode=mode), [IMAGE, places])
