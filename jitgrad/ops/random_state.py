"""The state of the default generator."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.ops.random import default_generator


def get_rng_state() -> Tensor:
    """A copy of the default generator's state."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Continue the default generator's numbers from a state that :func:`jitgrad.get_rng_state` gave."""
    default_generator.set_state(state)
