"""torch's memory formats, which programs name where they convert or copy: accepted, and without effect.

A tensor lies row after row, in the order of its axes; the layout of images inside a convolution is the library's choice.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from jitgrad.core.errors import ArgumentError, shown


class MemoryFormat(Enum):
    """What torch calls the order of the axes in memory. The values of a tensor do not depend on it."""

    contiguous_format = "contiguous_format"
    preserve_format = "preserve_format"
    channels_last = "channels_last"
    channels_last_3d = "channels_last_3d"


def check_memory_format(called: str, given: Any) -> None:
    """Raises ArgumentError unless ``given`` is None or one of `MemoryFormat`."""
    if given is not None and not isinstance(given, MemoryFormat):
        names = ", ".join(f"jg.{one.name}" for one in MemoryFormat)
        raise ArgumentError(f"{called}: memory_format={shown(given)} is no memory format: expected one of {names}")
