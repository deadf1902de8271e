"""torch.utils.checkpoint: computes the forward pass again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.autograd.checkpoint import checkpoint as checkpointed

__all__ = ["checkpoint"]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, of which backward keeps the arguments alone.

    The two options are torch's, and change nothing: random numbers are always the same.
    """
    return checkpointed(function)(*args, **kwargs)
