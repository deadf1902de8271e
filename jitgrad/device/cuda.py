"""`jg.cuda`: whether there is a device, and its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jitgrad.core.errors import ArgumentError, CudaError
from jitgrad.core.fork import fork_safe_lock
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.device.cuda_driver import CudaDriver
from jitgrad.device.driver import Driver
from jitgrad.device.pool import MemoryStats

NAMES = ("cuda", "cuda:0")


class _Current:
    """The device of this process, once it was asked for."""

    device: CudaDevice | None = None
    lock = fork_safe_lock()
    make_driver: Callable[[], Driver] = CudaDriver
    seed: Callable[[int], Any]  # of random numbers, which are above this room


def cuda_device() -> CudaDevice:
    """The CUDA device; the driver starts at the first use.

    Raises:
        CudaError: there is none; says what is missing and how to get it.
    """
    device = _Current.device
    if device is None:
        with _Current.lock:
            device = _Current.device = _Current.device or CudaDevice(_Current.make_driver())
    return device


@contextmanager
def using_driver(driver: Driver) -> Iterator[CudaDevice]:
    """Within it, ``driver`` runs the CUDA device: for tests without a GPU.

    Tensors of the device must not be used afterwards.
    """
    before = _Current.device
    _Current.device = device = CudaDevice(driver)
    try:
        yield device
    finally:
        _Current.device = before


def find_device(name: Any) -> CudaDevice | None:
    """The device called ``name``; None for the host.

    Raises:
        ArgumentError: there is none of that name.
        CudaError: it is a CUDA device, and this machine has none.
    """
    if name is None or str(name) == "cpu":
        return None
    if (f"cuda:{name}" if type(name) is int else str(name)) in NAMES:
        return cuda_device()
    raise ArgumentError(
        f"device {name!r}: expected 'cpu' or 'cuda' (one CUDA device is used, 'cuda:0'; CUDA_VISIBLE_DEVICES chooses which)"
    )


def is_available() -> bool:
    """Whether tensors can be on a CUDA device here."""
    try:
        cuda_device()
    except CudaError:
        return False
    return True


def device_count() -> int:
    """How many CUDA devices jitgrad can use: 1 or 0. CUDA_VISIBLE_DEVICES chooses which."""
    return int(is_available())


def synchronize() -> None:
    """Wait until the CUDA device has done all work. Raises CudaError if a kernel failed."""
    cuda_device().synchronize()


def memory_stats() -> MemoryStats:
    """Allocations and bytes of the CUDA device's memory pool."""
    return cuda_device().pool.stats()


def seed_by(function: Callable[[int], Any]) -> None:
    """Let ``function`` restart the default generator at a seed."""
    _Current.seed = staticmethod(function)


def manual_seed(seed: int) -> None:
    """Restart the default generator, which serves host and device, at ``seed``; without a device, nothing."""
    if is_available():
        _Current.seed(seed)


manual_seed_all: Callable[[int], None] = manual_seed  # torch's name for all devices, of which there is one


def current_device() -> int:
    """0, the number of the device."""
    return 0


def set_device(device: Any) -> None:
    """Nothing, as one device is used. Raises ArgumentError for another, CudaError if there is none."""
    find_device(device)


def empty_cache() -> None:
    """Give memory of the pool that no tensor uses back to the driver; without a device, nothing."""
    if is_available():
        cuda_device().pool.trim()
