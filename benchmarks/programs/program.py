"""A program of the corpus as a workload: the value and gradients of a function, or the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers import Peer
from benchmarks.workload import Arrays, Sizes, Workload


def gradient_of(loss: Callable[..., Any], argnums: Any = 0) -> Callable[[Peer], Callable[..., Any]]:
    """The value and gradients of ``loss(xp, *inputs)``; ``argnums`` counts the inputs."""

    def build(peer: Peer) -> Callable[..., Any]:
        assert peer.value_and_grad
        return peer.value_and_grad(lambda *inputs: loss(peer.xp, *inputs), argnums=argnums)

    return build


def value_of(function: Callable[..., Any]) -> Callable[[Peer], Callable[..., Any]]:
    """``function(xp, *inputs)``."""
    return lambda peer: lambda *inputs: function(peer.xp, *inputs)


def program(
    name: str,
    title: str,
    inputs: Callable[..., Arrays],
    function: Callable[[Peer], Callable[..., Any]],
    sizes: Sizes,
    quick: Sizes,
    limits: str,
    **options: Any,
) -> Workload:
    """A workload whose name says that it belongs to the corpus."""
    return Workload(f"program_{name}", title, inputs, function, sizes, quick, limits=limits, **options)
