"""torch's questions about Metal, which programs ask to choose a device."""

from __future__ import annotations


def is_available() -> bool:
    """False: devices are the host and CUDA."""
    return False


def is_built() -> bool:
    """False, as `is_available`."""
    return False
