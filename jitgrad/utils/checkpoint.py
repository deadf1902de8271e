"""torch.utils.checkpoint: computes the forward pass again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jitgrad.autograd.checkpoint import checkpoint as checkpointed
from jitgrad.core.errors import ArgumentError

__all__ = ["checkpoint", "checkpoint_sequential"]


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


def checkpoint_sequential(functions: Iterable[Callable[..., Any]], segments: int, input: Any, **options: Any) -> Any:
    """``input`` through all ``functions``, such as an nn.Sequential, in so many ``segments``: each but the last a `checkpoint`.

    Raises ArgumentError if there are more segments than functions, or none.
    """
    layers = list(functions)
    if not 1 <= segments <= max(len(layers), 1):
        raise ArgumentError(f"checkpoint_sequential: {len(layers)} functions cannot make {segments} segments")
    size = len(layers) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        input = checkpoint(_in_turn(layers[start : start + size]), input, **options)
    return _in_turn(layers[last:])(input)


def _in_turn(functions: list[Callable[..., Any]]) -> Callable[[Any], Any]:
    def segment(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return segment
