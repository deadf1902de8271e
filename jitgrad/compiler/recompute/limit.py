"""What `jit(memory_budget=...)` takes: bytes, as a number or as text with a unit, or a part of what is needed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from jitgrad.core.errors import ArgumentError, shown

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """At most so many bytes of temporaries, or so large a part of what a program takes without a budget."""

    nbytes: int | None = None
    part: float | None = None

    def allowed(self, needed: int) -> int:
        """The bytes allowed to a program that takes ``needed`` bytes without a budget."""
        return self.nbytes if self.nbytes is not None else int((self.part or 0.0) * needed)


def parse_budget(given: Any) -> MemoryBudget:
    """The budget that a user means: an int is bytes, text is bytes with a unit, a float is a part between 0 and 1.

    Raises:
        ArgumentError: for anything else.
    """
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return MemoryBudget(nbytes=given)
    if isinstance(given, float) and math.isfinite(given) and 0.0 <= given <= 1.0:
        return MemoryBudget(part=given)
    if isinstance(given, str) and (match := _TEXT.fullmatch(given)) and match[2].lower() in _UNITS:
        return MemoryBudget(nbytes=int(float(match[1]) * _UNITS[match[2].lower()]))
    units = "B, kB, MB, GB, KiB, MiB, GiB"
    raise ArgumentError(
        f"@jit(memory_budget={shown(given)}): expected bytes as an int of at least 0, or as text with a unit ({units}), "
        'such as "512 MB"; or, as a float, a part between 0.0 and 1.0 of what the program takes without a budget'
    )
