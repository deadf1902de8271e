"""Operands of library calls whose elements lie apart: brought in order by a kernel of the call's own table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.device_program import DeviceProgram
from jitgrad.backends.cuda_target.ordered_copies import ordered_copy
from jitgrad.core.aval import Aval
from jitgrad.device.cuda import cuda_device
from jitgrad.testing.fake_driver import FakeDriver

BASE = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
VIEWS = {
    "whole": BASE,
    "transposed": BASE.transpose(3, 1, 0, 2),
    "steps": BASE[:, ::2, 1::3],
    "backwards": BASE[::-1, :, ::-2],
    "repeated": np.broadcast_to(BASE[:, :1], BASE.shape),
    "turned and backwards": BASE.transpose(2, 0, 3, 1)[::-1],
    "one": BASE[1, 2, 3, 4:5],
}


@pytest.mark.parametrize("dtype", ["float32", "bool", "float16", "complex64", "complex128"])
@pytest.mark.parametrize("name", VIEWS)
def test_elements_come_in_order(name: str, dtype: str, driver: FakeDriver) -> None:
    kind = np.dtype(dtype)
    base = BASE.astype(kind)
    view = VIEWS[name]
    offset = view.__array_interface__["data"][0] - BASE.__array_interface__["data"][0]
    strides = [s // BASE.itemsize for s in view.strides]
    expected = np.ndarray(view.shape, kind, base, offset // BASE.itemsize * kind.itemsize, [s * kind.itemsize for s in strides])
    lowest = offset // BASE.itemsize + sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s < 0)
    source = cuda_device().from_host(base)
    found = cuda_device().empty(view.shape, kind)

    launch = ordered_copy(Aval(view.shape, kind), strides)
    function = driver.load(DeviceCode(launch.source, "kernel", Capability(8, 0), {}))
    args = [found.address, source.address + lowest * kind.itemsize, *launch.words, launch.iterations]
    driver._run_kernel(function, launch.blocks, launch.threads, args)

    np.testing.assert_array_equal(cuda_device().to_host(found), expected)


def attend(x: Any, i: Any) -> Any:
    """Library calls that read transposed values, between kernels."""
    for _ in range(3):
        y = jg.cumsum(x.T, 0) + jg.take(x.T, i, 1)
        x = (jg.argsort(y.T, axis=1) * 0.25 + x) / 2.0
    return x


def test_a_step_with_such_operands_is_one_graph(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DeviceProgram] = []
    copies: list[Aval] = []
    add = DeviceProgram._contiguous

    def count(self: DeviceProgram, place: Any) -> Any:
        if not place.location.is_contiguous(place.aval.shape):
            copies.append(place.aval)
            made.append(self)
        return add(self, place)

    monkeypatch.setattr(DeviceProgram, "_contiguous", count)
    arrays = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32), np.array([3, 1, 0, 5, 2, 4])
    f = jg.jit(attend, check="off")
    x, i = (jg.tensor(a, device="cuda") for a in arrays)
    results = [f(x, i) for _ in range(4)]

    assert copies and all(program.has_graph for program in made)
    assert driver.counts.graph_launches >= 2
    expected = attend(*map(jg.tensor, arrays))
    for found in results:
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-6)
