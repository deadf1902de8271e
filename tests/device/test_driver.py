"""The CUDA driver by ctypes: what it calls, how its errors read, and what a fake library shows of it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from jitgrad.core.errors import CudaError, OutOfMemoryError
from jitgrad.device.cuda_driver import CudaDriver, load_library


class Library:
    """Functions with the names of the driver's; they return CUresult codes and note their arguments."""

    def __init__(self, devices: int = 1, capability: tuple[int, int] = (9, 0), **failing: int) -> None:
        self.devices, self.capability, self.failing = devices, capability, failing
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> int:
            self.calls.append((name, *args))
            if name in self.failing:
                return self.failing[name]
            if (special := getattr(type(self), f"do_{name}", None)) is not None:
                special(self, *args)
            return 0

        return call

    def do_cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = self.devices

    def do_cuDeviceGetName(self, name: Any, *_: Any) -> None:
        name.value = b"Test GPU"

    def do_cuDeviceGetAttribute(self, value: Any, number: int, _device: int) -> None:
        value._obj.value = self.capability[number - 75]

    def do_cuMemAlloc_v2(self, address: Any, _nbytes: int) -> None:
        address._obj.value = 4096

    def do_cuGetErrorName(self, status: int, text: Any) -> None:
        text._obj.value = b"CUDA_ERROR_OUT_OF_MEMORY" if status == 2 else b"CUDA_ERROR_INVALID_PTX"

    def do_cuGetErrorString(self, _status: int, text: Any) -> None:
        text._obj.value = b"the driver's words"

    def do_cuModuleGetFunction(self, function: Any, *_: Any) -> None:
        function._obj.value = 77

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == name]


class Code:
    ptx, entry = "// ptx", "kernel"


def test_a_machine_without_a_driver_says_what_is_missing() -> None:
    with pytest.raises(CudaError, match=r"no CUDA driver was found .*jitgrad\[cuda12\]"):
        load_library("libno_such_driver.so.1")


def test_a_driver_without_a_device_says_so() -> None:
    with pytest.raises(CudaError, match="sees no device"):
        CudaDriver(Library(devices=0))


def test_a_device_that_is_too_old_is_named() -> None:
    with pytest.raises(CudaError, match=r"Test GPU has compute capability 7\.5; jitgrad needs 8\.0"):
        CudaDriver(Library(capability=(7, 5)))


def test_the_context_is_made_current_once_in_a_thread() -> None:
    library = Library()
    driver = CudaDriver(library)

    assert (driver.name, driver.capability) == ("Test GPU", (9, 0))
    assert driver.allocate(16) == 4096
    driver.free(4096)
    assert len(library.named("cuCtxSetCurrent")) == 1


def test_errors_have_the_drivers_name_and_text() -> None:
    library = Library(cuMemFree_v2=218, cuMemAlloc_v2=2)
    driver = CudaDriver(library)

    with pytest.raises(CudaError, match=r"cuMemFree_v2 failed: CUDA_ERROR_INVALID_PTX \(218\): the driver's words"):
        driver.free(4096)
    with pytest.raises(OutOfMemoryError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        driver.allocate(16)


def test_a_refused_module_shows_what_the_compiler_says() -> None:
    with pytest.raises(CudaError, match="The driver's compiler says"):
        CudaDriver(Library(cuModuleLoadDataEx=218)).load(Code())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_cannot_use_the_driver() -> None:
    driver = CudaDriver(Library())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            driver.synchronize()
            message = "no error"
        except CudaError as error:
            message = str(error)
        os.write(writing, message.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        message = pipe.read()
    os.waitpid(child, 0)

    assert "was used before this process was forked" in message
    assert "spawn" in message


def test_importing_jitgrad_touches_no_cuda() -> None:
    script = (
        "import ctypes; real = ctypes.CDLL.__init__\n"
        "def watched(self, name, *args, **keywords):\n"
        "    assert 'cuda' not in str(name) and 'cublas' not in str(name), name\n"
        "    real(self, name, *args, **keywords)\n"
        "ctypes.CDLL.__init__ = watched\n"
        "import jitgrad as jg; jg.jit(lambda x: x + 1)(jg.zeros(3))\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
