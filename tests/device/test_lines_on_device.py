"""Cumulative sums, argmax and argmin along lines, by kernels on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.ptxas import assemble, find_ptxas
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.lines import find_lines
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY

pytestmark = pytest.mark.usefixtures("cuda")
SHAPES = [(5, 40), (3, 100, 2), (2, 7, 3), (300,), (1, 1)]


def same_as_numpy(f: Any, expected: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    on_device = jg.tensor(x, device="cuda")
    compiled = jg.jit(f, check="off")
    assert "by the host" not in str(compiled.explain(on_device))
    for result in (compiled(on_device), f(on_device)):
        assert result.device == "cuda"
        found = result.cpu().numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Numbers of which many are equal."""
    return np.random.default_rng(0).integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "bool"])
def test_places_of_extrema_are_the_first_ones(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    for axis in range(-1, x.ndim - 1):
        same_as_numpy(lambda x, axis=axis: jg.argmax(x, axis=axis), np.argmax(x, axis=axis), x)
        same_as_numpy(lambda x, axis=axis: jg.argmin(x, axis=axis), np.argmin(x, axis=axis), x)
    same_as_numpy(jg.argmax, np.asarray(np.argmax(x)), x)


@pytest.mark.parametrize("length", [3, 33, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_nan_is_the_largest_and_the_smallest(length: int, axis: int) -> None:
    x = np.random.default_rng(1).normal(size=(4, length)).astype(np.float32)
    x[1, length // 2 :], x[2, 1], x[3] = np.nan, -np.inf, np.nan
    x = x if axis else np.ascontiguousarray(x.T)
    same_as_numpy(lambda x: jg.argmax(x, axis=axis), np.argmax(x, axis=axis), x)
    same_as_numpy(lambda x: jg.argmin(x, axis=axis), np.argmin(x, axis=axis), x)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool"])
def test_cumulative_sums_have_the_bits_of_numpy(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    if x.dtype.kind == "f":
        x = x / x.dtype.type(7)
    for axis in range(x.ndim):
        same_as_numpy(lambda x, axis=axis: jg.cumulative_sum(x, axis=axis), np.cumsum(x, axis=axis), x)


def test_the_gradient_of_a_cumulative_sum_needs_no_op_of_the_host() -> None:
    x = np.random.default_rng(2).normal(size=(3, 6))
    gradient = jg.jit(jg.grad(lambda x: (jg.cumulative_sum(x, axis=1) ** 2).sum()))
    expected = 2 * np.flip(np.cumsum(np.flip(np.cumsum(x, 1), 1), 1), 1)
    on_device = jg.tensor(x, device="cuda")
    np.testing.assert_allclose(gradient(on_device).cpu().numpy(), expected, rtol=1e-12)
    assert "by the host" not in str(gradient.explain(on_device))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape, axis", [((2, 1500), 1), ((1300, 2), 0), ((1025,), 0)])
def test_a_block_shares_a_long_line(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """Sums of integers have NumPy's bits; those of floats are as near to the exact sums as floats are."""
    x = numbers(shape, dtype)
    if x.dtype.kind != "f":
        same_as_numpy(lambda x: jg.cumulative_sum(x, axis=axis), np.cumsum(x, axis=axis), x)
        return
    x /= x.dtype.type(7)
    exact = np.cumsum(x.astype(np.float64), axis=axis)
    same_as_numpy(lambda x: jg.cumulative_sum(x, axis=axis), exact.astype(dtype), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_a_block_finds_the_first_extremum_of_a_long_line(dtype: str) -> None:
    x = numbers((2, (1 << 15) + 77), dtype)
    if x.dtype.kind == "f":
        x[1, [700, 20_000]] = np.nan
    same_as_numpy(lambda x: jg.argmax(x, axis=1), np.argmax(x, axis=1), x)
    same_as_numpy(lambda x: jg.argmin(x, axis=1), np.argmin(x, axis=1), x)


def test_half_precision_has_the_bits_of_numpy() -> None:
    x = np.random.default_rng(4).normal(size=(5, 40)).astype(np.float16)
    x[2, 7:9] = np.nan
    same_as_numpy(lambda x: jg.cumulative_sum(x, axis=1), np.cumsum(x, axis=1), x)
    same_as_numpy(lambda x: jg.cumulative_sum(x, axis=0), np.cumsum(x, axis=0), x)
    same_as_numpy(lambda x: jg.argmax(x, axis=1), np.argmax(x, axis=1), x)


def test_very_long_lines_are_left_to_the_host() -> None:
    real = np.dtype(np.float32)
    for op, attrs in (("cumulative_sum", {"axis": 1, "reverse": False}), ("argmax", {"axis": 1})):
        threads = []
        for shape in ((1 << 11, 1 << 11), (1, 1 << 10), (1, 1 << 16), (1, (1 << 22) + 1)):
            found = find_lines(REGISTRY[op], [Aval(shape, real)], attrs)
            threads.append(None if found is None else found.iterations // shape[0])
        warp = 1 if op == "cumulative_sum" else 32
        assert threads == [warp, warp, 256, None]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_their_kernels_need_no_local_memory(architecture: str) -> None:
    for dtype in (np.float32, np.uint64):
        x = Aval((64, 64), np.dtype(dtype))
        calls = [find_lines(REGISTRY[name], [x], {"axis": 1}) for name in ("argmax", "argmin")]
        calls.append(find_lines(REGISTRY["argmax"], [Aval((9, 3), x.dtype)], {"axis": 0}))
        calls.append(find_lines(REGISTRY["cumulative_sum"], [x], {"axis": 0, "reverse": True}))
        long = Aval((2, 1 << 16), x.dtype)
        calls.append(find_lines(REGISTRY["cumulative_sum"], [long], {"axis": 1, "reverse": True}))
        calls.append(find_lines(REGISTRY["argmin"], [long], {"axis": 1}))
        for call in calls:
            assert call is not None
            code = DeviceCode(call.source, "kernel", Capability(8, 0), {})
            assert ".local" not in code.ptx
            if find_ptxas() is not None:
                (usage,) = assemble([code._found[0]], architecture)
                assert usage.local == 0 and usage.registers <= 96
