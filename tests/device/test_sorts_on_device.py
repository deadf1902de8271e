"""sort, argsort and topk by kernels on the device: NumPy's stable order, NaN as the largest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.ptxas import assemble, find_ptxas
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.sorts import find_sorts
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY

pytestmark = pytest.mark.usefixtures("cuda")
# by ranks, by a network that is full or not, along inner and outer axes, and longer than a block holds
SHAPES = [(1,), (5, 7), (3, 4, 2), (2, 65), (128,), (70, 3), (2, 300, 2), (1000,)]


def by_kernels(f: Any, x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The results of ``f`` on the device, after a look at who computes them."""
    on_device = jg.tensor(x, device="cuda")
    compiled = jg.jit(f, check="off")
    explained = str(compiled.explain(on_device))
    assert "by the host" not in explained and "by a kernel" in explained
    results = compiled(on_device)
    assert all(y.device == "cuda" for y in results)
    return [y.cpu().numpy() for y in results]


def ordered(x: np.ndarray[Any, Any], axis: int, descending: bool) -> np.ndarray[Any, Any]:
    """NumPy's stable order; backwards twice for a falling one, so that equal elements stay in order."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Numbers of which many are equal; with NaN, infinities and both zeros where there are such."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, shape).astype(dtype)
    if x.dtype.kind == "f":
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.5, 2.5, 3.0, np.nan], x.dtype)
        x = special[x.astype(int)]
    return x


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "bool"])
def test_order_is_that_of_numpy(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    axes = range(x.ndim) if dtype in ("float32", "int8") else (x.ndim - 1,)
    for axis in axes:
        for descending in (False, True):
            def f(x: Any, axis: int = axis, descending: bool = descending) -> Any:
                how: dict[str, Any] = {"axis": axis, "descending": descending}
                return jg.sort(x, **how), jg.argsort(x, **how)

            order = ordered(x, axis, descending)
            values, found = by_kernels(f, x)
            np.testing.assert_array_equal(found, order)
            assert values.tobytes() == np.take_along_axis(x, order, axis).tobytes()


@pytest.mark.parametrize("shape", [(5, 7), (2, 300), (3, 70, 2)])
def test_the_largest_are_found_in_order(shape: tuple[int, ...]) -> None:
    x = numbers(shape, "float32")
    for axis in range(x.ndim):
        for k in {1, min(3, shape[axis]), shape[axis]}:
            for largest in (True, False):
                values, places = by_kernels(lambda x, a=axis, k=k, w=largest: tuple(jg.topk(x, k, axis=a, largest=w)), x)
                order = np.take(ordered(x, axis, largest), np.arange(k), axis)
                np.testing.assert_array_equal(places, order)
                assert values.tobytes() == np.take_along_axis(x, order, axis).tobytes()


def test_gradients_follow_the_values() -> None:
    x = np.random.default_rng(1).normal(size=(3, 70))
    weights = np.arange(70.0)
    gradient = jg.jit(jg.grad(lambda x: (jg.sort(x, axis=1) * weights).sum()))
    on_device = jg.tensor(x, device="cuda")
    expected = np.argsort(np.argsort(x, axis=1), axis=1).astype(float)
    np.testing.assert_array_equal(gradient(on_device).cpu().numpy(), expected)
    assert "by the host" not in str(gradient.explain(on_device))


def test_lines_that_no_block_holds() -> None:
    how = {"axis": 1, "descending": False, "stable": True}
    real = np.dtype(np.float32)
    sources = {n: find_sorts(REGISTRY["argsort"], [Aval((1, n), real)], how) for n in (64, 4096, 4097, 1 << 16, 1 << 17)}
    ranked = sources[64].source.text
    assert "shared_f32(4096)" in sources[4096].source.text
    assert sources[4097].source.text == sources[1 << 16].source.text == ranked
    assert sources[1 << 17] is None, "that is left to the host, which says so"
    assert find_sorts(REGISTRY["argsort"], [Aval((0, 9), real)], how) is None


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_their_kernels_need_no_local_memory(architecture: str) -> None:
    codes = []
    for dtype in (np.float64, np.float16, np.uint64):
        for length in (9, 100, 4096):
            call = find_sorts(REGISTRY["argtopk"], [Aval((length, 3), np.dtype(dtype))], {"axis": 0, "count": 4})
            assert call is not None
            code = DeviceCode(call.source, "kernel", Capability(8, 0), {})
            assert ".local" not in code.ptx
            codes.append(code._found[0])
    assert max(code.shared_bytes for code in codes) == 48 << 10
    if find_ptxas() is not None:
        for usage in assemble(codes, architecture):
            assert usage.local == 0 and usage.registers <= 96
