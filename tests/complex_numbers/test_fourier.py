"""jitgrad.numpy.fft and jg.fft: values as NumPy's, gradients as finite differences and torch's, and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)
LINES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
PLANES = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
TAKES_REAL = {"rfft", "ihfft", "rfft2", "rfftn"}
NORMS = [None, "backward", "ortho", "forward"]


def operand(name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    x = RNG.normal(0, 1, shape)
    if name in TAKES_REAL:
        return x.astype(dtype)
    return (x + 1j * RNG.normal(0, 1, shape)).astype(np.result_type(dtype, 1j))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("n", "axis"), [(None, -1), (None, 0), (3, 0), (4, -1), (7, 1), (8, 1), (1, 0)])
def test_lines_equal_numpy(name: str, n: int | None, axis: int, norm: str | None) -> None:
    x = operand(name, (5, 6))

    found = getattr(jnp.fft, name)(x, n, axis, norm)

    expected = getattr(np.fft, name)(x, n, axis, norm)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected, 1e-12, 1e-12)


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize(("s", "axes"), [(None, (-2, -1)), (None, (2, 0)), ((3, 8), (0, 2)), ((7, 5), (1, 2)), (None, (1,))])
def test_planes_equal_numpy(name: str, s: Any, axes: Any) -> None:
    x = operand(name, (4, 5, 6))

    found = getattr(jnp.fft, name)(x, s, axes)

    np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(x, s, axes), 1e-12, 1e-12)


@pytest.mark.parametrize(("name", "norm"), list(itertools.product([*LINES, *PLANES], NORMS[1:])))
def test_gradients_of_both_orders(name: str, norm: str) -> None:
    x = operand(name, (4, 5))
    function = getattr(jnp.fft, name)

    check_grads(lambda x: function(x, norm=norm), [x])
    check_grads(lambda x: jnp.abs(function(x * x, norm=norm)) ** 2, [x], rtol=1e-5)


@pytest.mark.parametrize(("name", "n"), list(itertools.product(LINES, [2, 3, 6, 7, 9])))
def test_gradients_of_cropped_and_padded_lines(name: str, n: int) -> None:
    function = getattr(jnp.fft, name)

    check_grads(lambda x: function(x, n, 0), [operand(name, (5, 2))])


@pytest.mark.parametrize("name", [*LINES, *PLANES])
def test_single_precision_stays(name: str) -> None:
    x = operand(name, (4, 6), np.float32)

    found = getattr(jnp.fft, name)(x)

    assert found.dtype == getattr(np.fft, name)(x).dtype
    assert found.dtype in (np.complex64, np.float32)


@pytest.mark.parametrize("dtype", ["float16", "int32", "bool"])
def test_other_dtypes_become_numpys(dtype: str) -> None:
    x = (RNG.uniform(0, 9, 6) > 4).astype(dtype)

    assert jnp.fft.fft(x).dtype == np.fft.fft(x).dtype
    assert jnp.fft.rfft(x).dtype == np.fft.rfft(x).dtype


@pytest.mark.parametrize("name", LINES)
def test_gradients_equal_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, n = operand(name, (3, 6)), 8
    ours, theirs = jg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    mine, other = getattr(jg.fft, name)(ours, n=n, dim=-1), getattr(torch.fft, name)(theirs, n=n, dim=-1)
    weight = RNG.normal(0, 1, mine.shape) + 1j * RNG.normal(0, 1, mine.shape)
    weight = weight if mine.is_complex() else weight.real

    mine.backward(jg.tensor(weight))
    other.backward(torch.tensor(weight))

    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-12, 1e-12)


def test_a_real_operand_of_fft_has_a_real_gradient() -> None:
    x = jg.tensor([1.0, 2.0, 3.0], requires_grad=True)

    (jg.abs(jg.fft.fft(x)) ** 2).sum().backward()

    assert x.grad.dtype == jg.float32
    np.testing.assert_allclose(x.grad.numpy(), [6.0, 12.0, 18.0], 1e-6)


@pytest.mark.parametrize("shape", [(5,), (6,), (3, 4)])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name: str, shape: tuple[int, ...]) -> None:
    x = RNG.normal(0, 1, shape)

    np.testing.assert_array_equal(getattr(jnp.fft, name)(x).numpy(), getattr(np.fft, name)(x))
    np.testing.assert_array_equal(getattr(jnp.fft, name)(x, axes=-1).numpy(), getattr(np.fft, name)(x, axes=-1))


def test_frequencies() -> None:
    np.testing.assert_array_equal(jnp.fft.fftfreq(7, 0.5).numpy(), np.fft.fftfreq(7, 0.5))
    np.testing.assert_array_equal(jnp.fft.rfftfreq(8).numpy(), np.fft.rfftfreq(8))
    assert jnp.fft.fftfreq(7).dtype == np.float64
    assert jg.fft.fftfreq(7).dtype == jg.float32


def test_numpys_functions_on_tensors_and_lists() -> None:
    x = jg.tensor(RNG.normal(0, 1, 6))

    assert isinstance(np.fft.rfft(x), jg.Tensor)
    np.testing.assert_allclose(jnp.fft.fft([1.0, 2.0, 3.0]).numpy(), np.fft.fft([1.0, 2.0, 3.0]))


def test_errors_say_what_was_asked() -> None:
    x = jg.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="0 points"):
        jg.fft.fft(x, 0)
    with pytest.raises(ShapeError, match="0 points"):
        jg.fft.irfft(x[:1])
    with pytest.raises(ArgumentError, match="norm must be one of backward, ortho, forward"):
        jg.fft.fft(x, norm="full")
    with pytest.raises(DtypeError, match="takes real numbers"):
        jg.fft.rfft(x * 1j)
    with pytest.raises(ArgumentError, match="names an axis twice"):
        jg.fft.fftn(jg.zeros((2, 2)), axes=(0, 0))
    with pytest.raises(ArgumentError, match="2 lengths for 1 axes"):
        jg.fft.fftn(jg.zeros((2, 2)), s=(2, 2), axes=(0,))
    with pytest.raises(AttributeError, match="did you mean 'fftfreq'"):
        jnp.fft.fftfreqs
