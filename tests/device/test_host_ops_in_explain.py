"""``explain`` says what the host computes for a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.testing.fake_driver import FakeDriver

Z = (np.arange(1, 10).reshape(3, 3) + 5j * np.eye(3)).astype(np.complex64)
ON_HOST: dict[str, Callable[[Any], Any]] = {
    "tan": jg.tan,
    "asin": jg.asin,
    "atan": jg.atan,
    "acosh": jg.acosh,
    "power": lambda z: z ** (1 + 1j),
    "prod": lambda z: jg.prod(z, axis=0),
    "inv": jg.linalg.inv,
    "det": jg.linalg.det,
}


@pytest.mark.parametrize("name", ON_HOST)
def test_complex_ops_without_a_kernel(name: str, driver: FakeDriver) -> None:
    f = jg.jit(ON_HOST[name])
    x = jg.tensor(Z, device="cuda")

    assert [step.by for step in f.explain(x).steps] == ["the host"]
    assert "by the host" in str(f.explain(x))
    np.testing.assert_array_equal(f(x).cpu().numpy(), ON_HOST[name](jg.tensor(Z)).numpy())


def test_large_matrices(driver: FakeDriver) -> None:
    f = jg.jit(jg.linalg.inv)

    assert "by the host" in str(f.explain(2.0 * jg.eye(65, device="cuda")))
    assert "by the host" not in str(f.explain(2.0 * jg.eye(64, device="cuda")))
