"""The device of the end-to-end tests: emulated, and with ``-m cuda`` the GPU of this machine as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jitgrad.backends.cuda_target.emulated_device import emulated_device
from jitgrad.core.errors import CudaError
from jitgrad.device.cuda import _Current, using_driver
from jitgrad.device.cuda_driver import CudaDriver, load_library
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
def no_driver() -> Iterator[None]:
    """No CUDA driver is found. Unlike one of ``monkeypatch``, its changes end before those of ``cuda``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Current, "device", None)
        patch.setattr(_Current, "make_driver", lambda: CudaDriver(load_library("libno_such_driver.so.1")))
        yield


@pytest.fixture
def driver(cuda: Any) -> FakeDriver:
    """The emulated driver, for tests that count what is asked of it."""
    if not isinstance(cuda, FakeDriver):
        pytest.skip("counts work of the emulated device")
    return cuda
