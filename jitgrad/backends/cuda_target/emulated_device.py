"""A CUDA device without a GPU: the fake driver, whose kernels the emulator runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jitgrad.backends.cuda import emulator
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.device.cuda import using_driver
from jitgrad.testing.fake_driver import FakeDriver, FakeMemory


def emulate(code: DeviceCode, blocks: int, threads: int, args: Sequence[int], memory: FakeMemory) -> None:
    """Run a kernel as the device would."""
    source = code.source
    emulator.launch(source, code.entry, source.params, blocks, threads, args, memory.allocation, code.functions)


@contextmanager
def emulated_device(total: int = 1 << 32) -> Iterator[FakeDriver]:
    """Within it, the CUDA device is an emulated one with ``total`` bytes of memory.

    Every access of a kernel is checked, so it is slow: for tests, and to look at kernels.
    """
    driver = FakeDriver(emulate, total)
    with using_driver(driver):
        yield driver
