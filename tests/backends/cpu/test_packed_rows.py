"""Reductions of inner axes with few elements behind them: one kernel, with several groups of rows in the lanes of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.lowering.kernel_ir import KernelForm
from jitgrad.jit.decorator import jit
from tests.backends.cpu.inner_axes import CLOSE, normalise, schedules

RNG = np.random.default_rng(0)


def array(*shape: int, dtype: str = "d") -> Any:
    return jg.tensor((RNG.normal(size=shape) * 3).astype(dtype))


def everything(x: Any, channel: Any, pixel: Any, image: Any) -> Any:
    """Sweeps over the channels of every pixel; numbers of channels, of pixels, of images, and of channels of images in."""
    p = jg.softmax(x * channel[:, None] + pixel[:, None] + image[:, None, None], axis=1)
    return (
        p,
        p.max(axis=1) * pixel,
        normalise(p),
        (x > channel[:, None]).any(axis=1),
        (p * p).sum(),
        p.sum(axis=1).min(),
    )


def arguments(shape: tuple[int, ...], dtype: str = "d") -> tuple[Any, ...]:
    n, c, w = shape
    return array(*shape, dtype=dtype), array(c, dtype=dtype), array(n, w, dtype=dtype), array(n, dtype=dtype)


SHAPES = [(3, 5, 7), (40, 23, 4), (2, 17, 15), (29, 26, 6), (65, 3, 9)]


@pytest.mark.parametrize("shape", [(3, 5, 7), (18, 23, 4), (2, 17, 15), (12, 5, 6), (9, 3, 9)])
def test_step_by_step(shape: tuple[int, ...], same: Any) -> None:
    args = arguments(shape)

    assert any(s.form is KernelForm.PACKED_ROWS for s in schedules(everything, *args))
    same(everything, *args, **CLOSE)


@pytest.mark.numba
@pytest.mark.parametrize(("dtype", "shape"), [*zip("fdfdfdf", [*SHAPES, (1000, 20, 5), (300, 27, 11)])])
def test_machine_code(shape: tuple[int, ...], dtype: str, same: Any) -> None:
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == "d" else {"rtol": 2e-3, "atol": 2e-4}

    same(everything, *arguments(shape, dtype), **tolerance)


@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["?", "h", "l", "e"])
def test_every_reduction_of_every_dtype(dtype: str, same: Any) -> None:
    x = jg.tensor(RNG.integers(0, 2 if dtype == "?" else 4, (23, 7, 5)).astype(dtype))

    def f(x: Any) -> Any:
        return [getattr(x, name)(axis=1) for name in ("sum", "prod", "max", "min", "any", "all")], x == x.max(
            axis=1, keepdims=True
        )

    same(f, x)


@pytest.mark.numba
@pytest.mark.parametrize(("shape", "axes"), [((5, 6, 7, 8, 9), (1, 3)), ((4, 3, 8, 5, 6), (1, 2)), ((7, 30, 4, 6), (0, 2))])
def test_several_axes_of_rows_and_of_elements(shape: tuple[int, ...], axes: tuple[int, ...], same: Any) -> None:
    def f(x: Any) -> Any:
        p = jg.exp(x - x.max(axes, keepdims=True))
        return p / p.sum(axes, keepdims=True), x.var(axes), (p * x).sum()

    same(f, array(*shape), **CLOSE)


PIECES = [(5, 30, 8, 3), (3, 20, 70, 5), (2, 15, 130, 2), (4, 7, 64, 7), (30, 17, 2, 12)]


@pytest.mark.numba
@pytest.mark.parametrize(("dtype", "shape"), [*zip("fdfdf", PIECES)])
def test_rows_of_short_pieces_of_memory(shape: tuple[int, ...], dtype: str, same: Any) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        p = jg.exp(x * y + z - x.max((1, 3), keepdims=True))
        return p / p.sum((1, 3), keepdims=True), x.std((1, 3)), (p * x).sum(), (x > y).any((1, 3))

    args = array(*shape, dtype=dtype), array(*shape[1:], dtype=dtype), array(shape[0], 1, shape[2], 1, dtype=dtype)
    assert KernelForm.PACKED_ROWS in [s.form for s in schedules(f, *args)]
    same(f, *args, **({"rtol": 1e-9, "atol": 1e-9} if dtype == "d" else {"rtol": 2e-3, "atol": 2e-4}))


def test_rows_of_short_pieces_step_by_step(same: Any) -> None:
    def f(x: Any) -> Any:
        centred = x - x.mean((1, 3), keepdims=True)
        return jg.tanh(centred), x.max((1, 3)), (centred * centred).sum((1, 3))

    x = array(6, 7, 5, 5)
    assert [s.form for s in schedules(f, x)] == [KernelForm.PACKED_ROWS]
    same(f, x, **CLOSE)


@pytest.mark.numba
def test_operands_with_other_strides(same: Any) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return (x - y * z).max(axis=1), jg.softmax(x * z + y, axis=1)

    turned = jg.from_numpy(RNG.normal(size=(6, 20, 30)).transpose(2, 1, 0))
    backwards = jg.from_numpy(RNG.normal(size=(30, 20, 6))[::-1, ::-1, ::-1])
    same(f, array(30, 20, 6), turned, backwards, **CLOSE)


@pytest.mark.numba
def test_the_same_bits_with_any_number_of_threads() -> None:
    x = array(500, 40, 6, dtype="f")
    step = jit(jg.value_and_grad(lambda x: (jg.softmax(x, axis=1) * x).sum()), check="off")
    before = jg.get_num_threads()
    try:
        jg.set_num_threads(1)
        one = [part.numpy().copy() for part in step(x)]
        jg.set_num_threads(2)
        two = [part.numpy().copy() for part in step(x)]
    finally:
        jg.set_num_threads(before)

    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.numba
@pytest.mark.parametrize("shape", [(40, 33, 6), (4, 33, 40), (40, 700, 6)])
def test_sweeps_keep_functions_for_each_other_if_rows_are_short(shape: tuple[int, ...]) -> None:
    f = jit(lambda x: (jg.softmax(x, axis=1) * x).sum(), check="off", passes={"unroll_axes": False})
    x = array(*shape, dtype="f")

    np.testing.assert_allclose(f(x).numpy(), f.eager(x).numpy(), rtol=1e-5)
    (kernel,) = f.kernels(x)
    assert kernel.source.count("= exp(") == (1 if shape[1] < 512 else 2)
