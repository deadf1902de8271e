"""The device of the end-to-end tests: emulated, and with ``-m cuda`` the GPU of this machine as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jitgrad.backends.cuda_target.emulated_device import emulated_device
from jitgrad.core.errors import CudaError
from jitgrad.device.cuda import using_driver
from jitgrad.device.cuda_driver import CudaDriver
from jitgrad.device.driver import Driver
from jitgrad.testing.fake_driver import FakeDriver


@pytest.fixture(params=["emulated", pytest.param("hardware", marks=pytest.mark.cuda)])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """The driver of the CUDA device that the test uses."""
    for variable in ("JITGRAD_BACKEND", "JITGRAD_CHECK", "JITGRAD_DISABLE"):
        monkeypatch.delenv(variable, raising=False)
    if request.param == "emulated":
        with emulated_device() as emulated:
            yield emulated
        return
    try:
        driver = CudaDriver()
    except CudaError as error:
        pytest.skip(f"no GPU: {error}")
    with using_driver(driver):
        yield driver


@pytest.fixture
def driver(cuda: Any) -> FakeDriver:
    """The emulated driver, for tests that count what is asked of it."""
    if not isinstance(cuda, FakeDriver):
        pytest.skip("counts work of the emulated device")
    return cuda
