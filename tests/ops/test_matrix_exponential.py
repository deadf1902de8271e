"""matrix_exp is SciPy's expm, for norms of any size, with gradients of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import DtypeError, ShapeError

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_against_scipy(wrap: Any, scale: float, dtype: Any) -> None:
    expm = pytest.importorskip("scipy.linalg").expm
    a = RNG.normal(size=(2, 3, 4, 4)) * scale
    a = (a + 1j * RNG.normal(size=a.shape) * scale if np.dtype(dtype).kind == "c" else a).astype(dtype)
    found = wrap(jg.matrix_exp)(jg.tensor(a)).numpy()
    expected = expm(a.astype(np.result_type(dtype, np.float64)))
    assert found.dtype == dtype
    largest = np.abs(expected).max(axis=(-1, -2), keepdims=True)
    np.testing.assert_allclose(found / largest, expected / largest, atol=30 * np.finfo(dtype).eps)


def test_rotations_and_decay_of_large_norm() -> None:
    turn = jg.tensor([[0.0, -300.0], [300.0, 0.0]], dtype=jg.float64).matrix_exp().numpy()
    np.testing.assert_allclose(turn, [[np.cos(300), -np.sin(300)], [np.sin(300), np.cos(300)]], atol=1e-11)
    assert jg.linalg.matrix_exp(jg.tensor(np.diag([-1e4, 1.0]))).tolist() == [
        [0.0, 0.0],
        [0.0, pytest.approx(np.e)],
    ]


def test_gradients_of_first_and_second_order() -> None:
    a = jg.tensor(RNG.normal(size=(2, 3, 3)))
    jg.gradcheck(jg.matrix_exp, (a,))
    jg.gradgradcheck(jg.matrix_exp, (a,))


def test_complex_gradient_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    a = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    x, theirs = jg.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    (jg.matrix_exp(x).abs() ** 2).sum().backward()
    (torch.matrix_exp(theirs).abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-9)


def test_no_elements_and_no_numbers() -> None:
    assert jg.matrix_exp(jg.zeros(2, 0, 0)).shape == (2, 0, 0) and jg.matrix_exp(jg.zeros(0, 3, 3)).shape == (0, 3, 3)
    both = jg.matrix_exp(jg.stack([jg.full((2, 2), jg.nan), jg.zeros(2, 2), jg.full((2, 2), jg.inf)]))
    assert both.isnan().tolist() == [[[True] * 2] * 2, [[False] * 2] * 2, [[True] * 2] * 2]
    assert both[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ShapeError, match=r"matrix_exp of f32\[2,3\]: the last two axes must be those of square matrices"):
        jg.matrix_exp(jg.zeros(2, 3))
    with pytest.raises(DtypeError, match="matrix_exp of i64"):
        jg.matrix_exp(jg.zeros(2, 2, dtype=jg.int64))
