"""Divisors and powers of integers, and the exponents of floats, are kernels with the host's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.ptxas import assemble, find_ptxas
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.core.errors import ArgumentError
from jitgrad.testing.fake_driver import FakeDriver


def check(f: Callable[..., Any], *arrays: Any, by: str = "a kernel") -> None:
    """``f`` gives on the device what it gives on the host, bit by bit, op by op and compiled."""
    compiled, given = jg.jit(f, check="off"), [jg.tensor(x, device="cuda") for x in arrays]
    expected = f(*map(jg.tensor, arrays))

    assert {step.by for step in compiled.explain(*given).steps if step.kind == "unfused"} == {by}
    for found in (f(*given), compiled(*given)):
        for x, y in zip(found, expected, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x.cpu().numpy(), y.numpy())


def integers(dtype: str) -> tuple[Any, Any]:
    """Any integers, small ones, and the ends of the range with what remainders of them may overflow."""
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    pairs = rng.integers(info.min, info.max, (2, 20), dtype=dtype, endpoint=True), rng.integers(0, 20, (2, 20)).astype(dtype)
    ends = [(info.min, max(info.min, -1)), (info.min, info.min), (info.max, info.min), (0, info.max), (6, 0), (0, 0)]
    return tuple(np.concatenate([*[p[k] for p in pairs], np.array([e[k] for e in ends], dtype)]) for k in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("dtype", "bBhHiIlL")
def test_divisors_and_powers(dtype: str, driver: FakeDriver) -> None:
    x, y = integers(dtype)

    check(lambda x, y: (jg.gcd(x, y),), x, y, by="the host" if dtype == "L" else "a kernel")
    check(lambda x, y: (x**y,), x, np.arange(9, dtype=dtype)[:, None])


def test_operands_of_other_shapes_dtypes_and_strides(driver: FakeDriver) -> None:
    x = np.arange(-6, 18, dtype=np.int16).reshape(2, 3, 4)

    check(lambda x, y: (jg.gcd(x, y), jg.gcd(x, 12), jg.gcd(x.T[::-1], y.T)), x, np.arange(4)[None, None])
    check(lambda n: (2**n, n ** (n > 3)), np.arange(40))


@pytest.mark.parametrize("dtype", "efd")
def test_exponents_of_floats(dtype: str, driver: FakeDriver) -> None:
    info = np.finfo(dtype)
    few, least = [0.0, -0.0, 1.0, -1.0, 0.75, 123.5, 1e-3, np.inf, -np.inf, np.nan, info.max], info.smallest_subnormal
    x = np.array([*few, info.tiny, info.tiny / 2, least, -3 * least, -info.max], dtype)

    check(jg.frexp, x)
    check(lambda x: jg.frexp(x.T[1:]), x.reshape(4, 4))


def test_a_negative_power_is_an_error_when_a_value_is_read(driver: FakeDriver) -> None:
    power = jg.tensor([2, 3], device="cuda") ** jg.tensor([1, -1], device="cuda")

    with pytest.raises(ArgumentError, match="integers to negative integer powers are no integers"):
        power.tolist()


def test_their_kernels_need_no_local_memory(driver: FakeDriver) -> None:
    x, y = jg.tensor(np.arange(6), device="cuda"), jg.tensor(np.arange(6, dtype=np.uint8), device="cuda")
    for _ in (jg.gcd(x, y), x**x, y**y, *jg.frexp(x), *jg.frexp(x.half())):
        pass
    codes = [code._found[0] for code in driver._codes if isinstance(code, DeviceCode)]
    assert len(codes) >= 5
    for architecture in ("sm_80", "sm_90", "sm_100") if find_ptxas() is not None else ():
        for usage in assemble(codes, architecture):
            assert usage.local == 0 and usage.registers <= 64
