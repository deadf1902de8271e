"""torch.cuda: whether there is a device, its memory, and mixed precision; imports device, amp."""

from __future__ import annotations

from jitgrad.cuda import amp
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
    "amp", "current_device", "device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all",
    "memory_stats", "set_device", "synchronize",
]  # fmt: skip
