"""Complex numbers are on the host only: everything that would put them on a device says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import DeviceError
from jitgrad.device.driver import Driver

Z = np.array([1 + 2j, 3j])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jg.tensor(Z, device="cuda"),
        lambda x: jg.tensor([1j], device="cuda"),
        lambda x: jg.tensor(Z).to("cuda"),
        lambda x: jg.full((2,), 1j, device="cuda"),
        lambda x: x * 1j,
        lambda x: jg.complex(x, x),
        lambda x: x.to(jg.complex64),
        lambda x: jg.fft.fft(x),
        lambda x: x + Z,
        jg.jit(lambda x: jg.abs(x * 1j)),
        jg.jit(lambda x: jg.abs(jg.fft.rfft(x))),
    ],
)
def test_complex_numbers_on_a_device_are_refused(cuda: Driver, call: Callable[[Any], Any]) -> None:
    x = jg.tensor([1.0, 2.0], device="cuda")

    with pytest.raises(DeviceError, match=r"complex numbers are on the host only.*cuda.*\.cpu\(\)"):
        call(x)


def test_transforms_of_a_copy_on_the_host(cuda: Driver) -> None:
    x = jg.tensor([1.0, 2.0], device="cuda", requires_grad=True)

    (jg.abs(jg.fft.fft(x.cpu())) ** 2).sum().backward()

    assert x.grad.device == "cuda"
    np.testing.assert_allclose(x.grad.cpu().numpy(), [4.0, 8.0], 1e-6)
