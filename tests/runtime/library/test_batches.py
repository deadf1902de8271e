"""Transforms and decompositions shared among threads: the bits and the errors of NumPy on one thread."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jn
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY
from jitgrad.jit.decorator import jit
from jitgrad.runtime.executor.library_threads import run_shared
from jitgrad.runtime.library import batches
from jitgrad.runtime.library.registry import find_kernel

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of every size are shared."""
    monkeypatch.setattr(batches, "_MIN_TRANSFORMED", 0)
    monkeypatch.setattr(batches, "_MIN_MATRICES", 2)


def assert_eager(name: str, x: Any, **attrs: Any) -> None:
    op = REGISTRY[name]
    function = find_kernel(op, [Aval(x.shape, x.dtype)], attrs)
    assert function is not None
    found, expected = function(x, **attrs), op.eager(x, **attrs)
    for a, b in zip(found, expected, strict=True) if op.multiple else [(found, expected)]:
        assert a.dtype == b.dtype and a.flags.c_contiguous
        np.testing.assert_array_equal(a, b)


def values(shape: tuple[int, ...], dtype: str) -> Any:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype in "FD" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((7, 12), (1,)), ((7, 12), (0,)), ((6, 10), (0, 1)), ((1, 5, 9), (2, 1)), ((2, 3, 8), (0, 1, 2))]
)
def test_transforms(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], threads: int) -> None:
    x = values(shape, dtype)
    for inverse in (False, True):
        assert_eager("dft", x, axes=axes, inverse=inverse, norm="ortho")
    assert_eager("dft", np.swapaxes(x, 0, 1)[::-1], axes=axes, inverse=False, norm="backward")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_transforms_of_real_numbers(dtype: str, axis: int, threads: int) -> None:
    x = values((9, 14), dtype)
    half = np.fft.rfft(x, axis=axis)
    assert_eager("rdft", x, axis=axis, norm="backward")
    for n in (2 * half.shape[axis] - 2, 2 * half.shape[axis] - 1):
        assert_eager("irdft", half, axis=axis, n=n, norm="forward")


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("shape", [(5, 3, 3), (2, 9, 4, 4), (40, 1, 1), (3, 1, 6, 2)])
def test_decompositions(dtype: str, shape: tuple[int, ...], threads: int) -> None:
    x = values(shape, dtype)
    x[..., 0, 0] = x[..., -1, -1]
    assert_eager("svd", x, full_matrices=True)
    assert_eager("svd", np.zeros_like(x), full_matrices=False)
    assert_eager("qr", x, complete=True)
    assert_eager("lu", x, regular=False)
    if shape[-1] == shape[-2]:
        assert_eager("eigh", x)
        assert_eager("eig", x)


def test_one_matrix_and_one_transform_are_left_to_numpy() -> None:
    for name, shape, attrs in (("svd", (5, 3), {"full_matrices": False}), ("rdft", (500,), {"axis": 0, "norm": "ortho"})):
        assert find_kernel(REGISTRY[name], [Aval(shape, np.dtype("d"))], attrs) is None


def test_errors_name_the_whole(threads: int) -> None:
    x = RNG.normal(size=(6, 3, 3))
    x[4, 0, 0] = np.nan
    function = find_kernel(REGISTRY["eigh"], [Aval(x.shape, x.dtype)], {})
    assert function is not None
    messages = []
    for eigh in (function, REGISTRY["eigh"].eager):
        with np.errstate(all="ignore"):
            try:
                messages.append(str(eigh(x)[0][4]))
            except np.linalg.LinAlgError as error:
                messages.append(str(error))
    assert messages[0] == messages[1]


def test_numpy_warns_in_no_thread(threads: int) -> None:
    x = np.full((6, 8), 1e308)
    function = find_kernel(REGISTRY["rdft"], [Aval(x.shape, x.dtype)], {"axis": 1, "norm": "backward"})
    assert function is not None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert np.isinf(function(x, axis=1, norm="backward")[:, 0]).all()


def test_an_error_of_one_part_comes_after_all_parts(threads: int) -> None:
    done = []

    def function(part: slice) -> None:
        if part.start == 0:
            raise ValueError("the first")
        done.append(part)

    with pytest.raises(ValueError, match="the first"):
        run_shared(function, 3)
    assert len(done) == threads - 1


@pytest.mark.numba
def test_gradients_in_programs(threads: int) -> None:
    def f(x: Any, k: Any) -> Any:
        y = jn.fft.irfft(jn.fft.rfft(x) * jn.fft.rfft(k), n=16)
        return (jn.linalg.svd(y.reshape(8, 4, 4))[1] ** 2).sum() + jg.tanh(y).sum()

    args = [jg.tensor(RNG.normal(size=(8, 16))) for _ in range(2)]
    eager, compiled = (g(*args) for g in (jg.value_and_grad(f), jit(jg.value_and_grad(f))))
    np.testing.assert_allclose(compiled[1].numpy(), eager[1].numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (2, 3, 0), (0, 3, 3), (0, 0, 2)])
@pytest.mark.parametrize("name", ["qr", "svd"])
def test_empty_matrices(name: str, shape: tuple[int, ...], threads: int) -> None:
    def function(x: Any) -> Any:
        return jg.linalg.qr(x) if name == "qr" else jg.linalg.svd(x, full_matrices=False)

    x = jg.zeros(shape, dtype="float64")
    assert [y.shape for y in jit(function)(x)] == [y.shape for y in function(x)]
