"""torch.random: seeds and states of the default generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jitgrad.ops.random import manual_seed
from jitgrad.ops.random_state import get_rng_state, set_rng_state
from jitgrad.ops.torch_queries import initial_seed, seed

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_options: Any) -> Iterator[None]:
    """Within it, random numbers are drawn that those after it do not depend on. All ``devices`` share one generator."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
