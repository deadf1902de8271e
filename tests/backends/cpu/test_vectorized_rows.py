"""Reductions of inner axes: one kernel vectorised across rows, in every dtype and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.kernel_ir import KernelForm
from jitgrad.jit.decorator import jit
from tests.backends.cpu.inner_axes import CLOSE, normalise, schedules

RNG = np.random.default_rng(0)


def array(*shape: int, dtype: str = "d") -> Any:
    return jg.tensor((RNG.normal(size=shape) * 3).astype(dtype))


def everything(x: Any, channel: Any, pixel: Any) -> Any:
    """Sweeps over the channels of every pixel; numbers of channels and of pixels in, of pixels and of all out."""
    p = jg.softmax(x * channel[:, None] + pixel[:, None], axis=1)
    return (
        p,
        p.max(axis=1) * pixel,
        normalise(p),
        (x > channel[:, None]).any(axis=1),
        (p * p).sum(),
        p.sum(axis=1).min(),
    )


SHAPES = [(3, 5, 16), (2, 33, 100), (1, 4, LANES), (5, 2, LANES + 1), (2, 70, 2 * LANES - 1)]


@pytest.mark.parametrize("shape", [(2, 70, 16), (2, 5, 100), (1, 4, LANES), (5, 2, LANES + 1), (2, 3, 2 * LANES - 1)])
def test_step_by_step(shape: tuple[int, ...], same: Any) -> None:
    x, channel, pixel = array(*shape), array(shape[1]), array(shape[0], shape[2])

    assert any(s.form is KernelForm.VECTORIZED_ROWS for s in schedules(everything, x, channel, pixel)) == (shape[0] > 1)
    same(everything, x, channel, pixel, **CLOSE)


@pytest.mark.numba
@pytest.mark.parametrize(("dtype", "shape"), [*zip("fdfdfdf", [*SHAPES, (40, 300, 17), (1, 3, 20_011)])])
def test_machine_code(shape: tuple[int, ...], dtype: str, same: Any) -> None:
    args = array(*shape, dtype=dtype), array(shape[1], dtype=dtype), array(shape[0], shape[2], dtype=dtype)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == "d" else {"rtol": 2e-3, "atol": 2e-4}

    same(everything, *args, **tolerance)


@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["b", "i", "B", "f"])
def test_every_reduction_of_every_dtype(dtype: str, same: Any) -> None:
    x = jg.tensor(RNG.integers(0, 2 if dtype == "?" else 4, (3, 7, 50)).astype(dtype))

    def f(x: Any) -> Any:
        return [getattr(x, name)(axis=1) for name in ("sum", "prod", "max", "min", "any", "all")], x == x.max(
            axis=1, keepdims=True
        )

    same(f, x)


@pytest.mark.numba
@pytest.mark.parametrize("axes", [(1, 2), (2,), (1,), (0, 2), (1, 3)])
def test_other_axes_between(axes: tuple[int, ...], same: Any) -> None:
    x = array(3, 4, 5, 20)

    same(lambda x: x - x.max(axis=axes, keepdims=True), x)
    same(lambda x: jg.exp(x) / jg.exp(x).sum(axis=axes, keepdims=True), x, **CLOSE)
    same(lambda x: (x * 2.0).sum(axis=axes), x, **CLOSE)


@pytest.mark.numba
@pytest.mark.parametrize("f", [lambda x: jg.softmax(x, axis=1), normalise, lambda x: jg.logsumexp(x, axis=1)])
def test_gradients(f: Any, same: Any) -> None:
    x, g = array(4, 21, 6, 9), array(4, 21, 6, 9)

    same(jg.grad(lambda x: (f(x) * (g if f(x).ndim == 4 else g[:, 0])).sum()), x, rtol=1e-9, atol=1e-9)


@pytest.mark.numba
def test_windows_and_permuted_images(same: Any) -> None:
    base = RNG.normal(size=(4, 30, 8, 40))

    for view in (
        base[:, ::2],
        base[:, :, 1:7, 3:],
        base[::-1, :, ::-1],
        base.transpose(0, 3, 1, 2),
        base.transpose(1, 0, 3, 2),
    ):
        same(normalise, view, rtol=1e-9, atol=1e-9)
        same(lambda x: jg.softmax(x, axis=2), view, rtol=1e-9, atol=1e-9)


@pytest.mark.numba
def test_long_sums_are_exact() -> None:
    """A lane that added 5,000 numbers one after the other would be wrong in the fifth digit."""
    x = jg.tensor(np.full((2, 5000, 32), 0.1, np.float32))

    found = jit(lambda x: (x * 1.0).sum(axis=1), check="off")(x).numpy()

    np.testing.assert_allclose(found, 5000 * np.float64(np.float32(0.1)), rtol=1e-6)


@pytest.mark.numba
def test_missing_and_infinite_numbers(same: Any) -> None:
    x = RNG.normal(size=(2, 6, 40))
    x[0, 2, 3], x[1, 4, 5], x[1, 0, 7] = np.nan, np.inf, -np.inf

    same(lambda x: (x.max(axis=1), x.sum(axis=1), jg.softmax(x, axis=1)), x, **CLOSE)


def test_one_kernel_for_a_softmax_over_channels() -> None:
    (schedule,) = schedules(lambda x: jg.softmax(x, axis=1), array(4, 21, 8, 8))

    assert schedule.form is KernelForm.VECTORIZED_ROWS
    (schedule,) = schedules(lambda x: jg.abs(x * 2.0).max(axis=1), array(64, 32, 32))
    assert schedule.form is KernelForm.VECTORIZED_ROWS
    assert not any(s.form is KernelForm.VECTORIZED_ROWS for s in schedules(lambda x: jg.softmax(x, axis=2), array(4, 21, 64)))
    assert not any(s.form is KernelForm.VECTORIZED_ROWS for s in schedules(lambda x: jg.softmax(x, axis=0), array(21, 64)))
