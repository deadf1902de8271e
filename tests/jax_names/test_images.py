"""jax.image, jax.scipy.ndimage, bits of numbers and precision of products: JAX's values and dtypes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.config import set_immutable
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.numpy import unravel_index
from jitgrad.testing import check_grads

ours: Any = importlib.import_module("jitgrad.jax")
set_immutable(False)  # which that import changed, for the tests elsewhere
jax: Any = pytest.importorskip("jax")
IMAGE = np.random.default_rng(1).normal(size=(5, 6))
PLACES = np.random.default_rng(0).uniform(-9.0, 12.0, (2, 40))
PLACES[:, :8], PLACES[:, 8:12] = np.round(PLACES[:, :8]), np.floor(PLACES[:, 8:12]) + 0.5


@pytest.fixture(autouse=True)
def in_double() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"])
def test_resize_is_jaxs(method: str, dtype: Any) -> None:
    image = (9 * np.random.default_rng(0).random((2, 7, 6, 3))).astype(dtype)
    for shape, antialias in [((2, 12, 9, 3), True), ((2, 4, 3, 3), True), ((2, 4, 3, 3), False), ((2, 7, 20, 3), True)]:
        expected = np.asarray(jax.image.resize(image, shape, method, antialias=antialias))
        found = ours.image.resize(image, shape, method, antialias=antialias).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


def test_scale_and_translate_is_jaxs() -> None:
    arguments = ((8, 9), (0, 1), np.array([1.3, 0.8]), np.array([0.5, -1.0]), "linear")
    expected = np.asarray(jax.image.scale_and_translate(IMAGE, *arguments))
    np.testing.assert_allclose(ours.image.scale_and_translate(IMAGE, *arguments).numpy(), expected, atol=1e-12)
    check_grads(lambda x: ours.image.resize(x, (3, 9), "cubic"), [IMAGE])


def test_errors_of_images() -> None:
    with pytest.raises(ArgumentError, match="unknown method 'cubical'; there are nearest"):
        ours.image.resize(IMAGE, (3, 3), "cubical")
    with pytest.raises(ShapeError, match="a shape of 2 axes"):
        ours.image.resize(IMAGE, (3,), "linear")
    with pytest.raises(ArgumentError, match="order must be 0 or 1"):
        ours.scipy.ndimage.map_coordinates(IMAGE, PLACES, 3)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_map_coordinates_is_jaxs(mode: str, order: int) -> None:
    """Of "constant" and "wrap" SciPy has another meaning."""
    for image in (IMAGE, (10 * IMAGE).astype(np.int64)):
        expected = np.asarray(jax.scipy.ndimage.map_coordinates(image, PLACES, order, mode, cval=1))
        found = jg.jit(lambda x, c: ours.scipy.ndimage.map_coordinates(x, c, order, mode, cval=1))(image, PLACES)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_other_modules_of_scipy_are_jitgrads() -> None:
    from jitgrad.jax.scipy import stats

    assert stats is jg.scipy.stats is ours.scipy.stats
    with pytest.raises(AttributeError):
        _ = ours.scipy.nonsense


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_counts_of_bits_are_jaxs(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, 77, limits.max, limits.min, limits.max // 3], dtype)
    for name in ("population_count", "clz"):
        expected = np.asarray(getattr(jax.lax, name)(x))
        found = jg.jit(getattr(ours.lax, name))(jg.tensor(x)).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(jg.numpy.bitwise_count(x).numpy(), np.bitwise_count(x))
    with pytest.raises(DtypeError, match="expected integers"):
        ours.lax.clz(jg.ones(2))


@pytest.mark.parametrize("dtypes", ["f4 i4", "i8 f8", "f8 u2", "i4 u1", "u1 f4", "i2 i8"])
def test_bitcast_is_jaxs(dtypes: str) -> None:
    given, wanted = map(np.dtype, dtypes.split())
    x = np.random.default_rng(0).integers(1, 100, (3, max(wanted.itemsize // given.itemsize, 1))).astype(given)
    expected = np.asarray(jax.lax.bitcast_convert_type(x, wanted))
    found = jg.jit(lambda x: ours.lax.bitcast_convert_type(x, wanted))(jg.tensor(x)).numpy()
    assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    with pytest.raises(ShapeError):
        ours.lax.bitcast_convert_type(jg.ones((2, 3), dtype=jg.int8), np.int64)


@pytest.mark.parametrize("name", ["dot", "matmul", "inner", "vdot", "tensordot", "einsum"])
def test_products_take_precision_and_the_dtype_of_the_result(name: str) -> None:
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    for options in ({}, {"precision": jax.lax.Precision.HIGHEST}, {"preferred_element_type": np.float64}):
        given = ("ij,jk->ik", x, x) if name == "einsum" else (x, x)
        expected = np.asarray(getattr(jax.numpy, name)(*given, **options))
        found = getattr(ours.numpy, name)(*given, **options)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_unravel_index_of_a_tensor() -> None:
    x = jg.tensor([[1.0, 5.0, 2.0], [7.0, 0.0, 3.0]])
    for order in ("C", "F"):
        expected = np.unravel_index([3, 5], (2, 3), order)
        found = jg.jit(lambda k, order=order: unravel_index(k, (2, 3), order))(jg.tensor([3, 5]))
        np.testing.assert_array_equal([k.tolist() for k in found], expected)
    assert x[unravel_index(jg.argmax(x), x.shape)].item() == 7.0
    with pytest.raises(ValueError, match="out of bounds"):
        unravel_index(jg.tensor(6), (2, 3))


def test_std_has_numpys_meaning_without_a_warning(recwarn: Any) -> None:
    assert jg.ones(3).std().item() == 0.0
    assert not recwarn.list
