"""torch.cuda: whether there is a device, its memory and time, and mixed precision; imports core, device, amp."""

from __future__ import annotations

from jitgrad.cuda import amp
from jitgrad.cuda.device_queries import (
    DeviceProperties,
    Event,
    get_device_capability,
    get_device_name,
    get_device_properties,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from jitgrad.device.cuda import (
    current_device,
    device_count,
    empty_cache,
    is_available,
    manual_seed,
    manual_seed_all,
    memory_stats,
    set_device,
    synchronize,
)

__all__ = [
    "DeviceProperties", "Event", "amp", "current_device", "device_count", "empty_cache", "get_device_capability",
    "get_device_name", "get_device_properties", "is_available", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats",
    "set_device", "synchronize",
]  # fmt: skip
