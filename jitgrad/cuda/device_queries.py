"""torch.cuda's questions about the device and its memory, and events that measure its time."""

from __future__ import annotations

from typing import Any, NamedTuple

from jitgrad.core.errors import ArgumentError
from jitgrad.device.cuda import cuda_device, find_device, memory_stats

_PROCESSOR_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT


class DeviceProperties(NamedTuple):
    """What torch's ``get_device_properties`` says, as far as the driver is asked."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, compute capability, bytes of memory and processors. Raises CudaError if there is no device."""
    driver = _checked(device)
    (major, minor), total = driver.capability, driver.memory_info().total
    return DeviceProperties(driver.name, major, minor, total, driver.attribute(_PROCESSOR_COUNT))


def get_device_name(device: Any = None) -> str:
    """The name that the driver gives the device. Raises CudaError if there is none."""
    name: str = _checked(device).name
    return name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability, such as (9, 0). Raises CudaError if there is no device."""
    major, minor = _checked(device).capability
    return major, minor


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and all bytes of the device, as the driver counts them. Raises CudaError if there is no device."""
    free, total = _checked(device).memory_info()
    return free, total


def memory_allocated(device: Any = None) -> int:
    """Bytes of the blocks under live tensors. Raises CudaError if there is no device."""
    _checked(device)
    return memory_stats().bytes_in_use


def memory_reserved(device: Any = None) -> int:
    """Bytes that jitgrad holds, those for later tensors included. Raises CudaError if there is no device."""
    _checked(device)
    return memory_stats().bytes_held


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that jitgrad has held. Raises CudaError if there is no device."""
    _checked(device)
    return memory_stats().peak_bytes_held


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that jitgrad has held, which no sum of live tensors was above: the pool does not count these at each
    moment. Raises CudaError if there is no device."""
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the most bytes held be those held now. Raises CudaError if there is no device."""
    _checked(device)
    cuda_device().pool.reset_peak()


def _checked(device: Any) -> Any:
    """The driver of the device. Raises ArgumentError for a device that jitgrad does not use, and for the host."""
    if device is not None and find_device(device) is None:
        raise ArgumentError(f"jitgrad.cuda: {device!r} is no CUDA device")
    return cuda_device().driver


class Event:
    """A moment in the device's work: ``start.record()``, work, ``end.record()``, ``start.elapsed_time(end)``.

    All work is in one stream, so there is none to name. Events always take the time, whatever ``enable_timing`` says.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._driver: Any = None
        self._event = 0
        if interprocess:
            raise ArgumentError("jitgrad.cuda.Event: events of other processes are not known here")

    def record(self) -> None:
        """The moment when all work so far is done. Raises CudaError if there is no device."""
        self._destroy()
        self._driver = cuda_device().driver
        self._event = self._driver.record_event()

    def synchronize(self) -> None:
        """Wait for the moment; if none was recorded, for nothing."""
        if self._driver is not None:
            self._driver.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this moment to that of ``end_event``, for which it waits.

        Raises:
            ArgumentError: one of them has not been recorded.
        """
        if not self._event or not end_event._event:
            raise ArgumentError("Event.elapsed_time: call record() of both events first")
        milliseconds: float = self._driver.milliseconds_between(self._event, end_event._event)
        return milliseconds

    def _destroy(self) -> None:
        if self._event:
            self._driver.destroy_event(self._event)
            self._event = 0

    def __del__(self) -> None:
        self._destroy()
