"""Warnings about traces (what happens only in them, and too many of them) and lines about them in the log."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from jitgrad.core import config
from jitgrad.core.errors import EffectWarning, RetraceWarning
from jitgrad.core.origin import users_frame

# A function that is traced more often for the same arguments probably changes what it reads.
MANY_TRACES = 16


def warn_of_effects(name: str, effects: Sequence[str]) -> None:
    """The function changes what lies outside it, which compiled calls do not repeat."""
    warnings.warn(
        f"@jit function {name!r} changes what lies outside it, only when it is traced and not on later calls: "
        f"{', '.join(effects)}. Return what later calls should give, and print or keep it outside.",
        EffectWarning,
        stacklevel=users_frame(),
    )


def warn_of_retraces(name: str, what: str, reasons: Sequence[str]) -> None:
    """The function is traced again and again; ``reasons`` say why, the newest last."""
    reason = reasons[-1] if reasons else "what it reads changed"
    remedy = "Pass what changes as a tensor or a float argument, and choose by its values with jitgrad.where."
    warnings.warn(f"@jit function {name!r} {what} because {reason}. {remedy}", RetraceWarning, stacklevel=users_frame())


def warn_of_counters(name: str, values: Mapping[str, int], warned: set[Any]) -> None:
    """The function is traced for each value of an int: ``values`` says how many each argument or counter has had."""
    for place, count in values.items():
        if count == MANY_TRACES and place not in warned:
            warned.add(place)
            reason = "its value decides a branch, a shape, an index or a text"
            warn_of_retraces(name, f"is traced for each value, {count} values of {place} so far,", [reason])


def write_log(topic: str, message: str) -> None:
    """One line to stderr if JITGRAD_LOGS asks for ``topic``."""
    topics = config.read("JITGRAD_LOGS")
    if topic in topics or "all" in topics:
        print(f"jitgrad[{topic}] {message}", file=sys.stderr)
