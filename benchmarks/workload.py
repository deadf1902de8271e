"""A workload: one function over a namespace, its inputs, and the accuracy it must reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.peers import Peer, tree_map

Arrays = tuple[Any, ...]  # nested tuples, lists and dicts of NumPy arrays
Sizes = Mapping[str, Any]
SCALED = ("n", "rows", "batch", "points", "images", "counts")  # names of sizes that may grow
Variant = tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any], list[Any]]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A function to measure with every library.

    ``function(peer)`` returns the function of the inputs, not compiled. With ``carries``, its last result is the first
    argument of the next call (the state of a training step), as in a real loop.

    ``variants`` are other forms of the same work, such as an optimiser that changes parameters in place:
    ``builder(inputs) -> (function, arguments, arrays)``. ``arrays(result)`` of the first call is compared with the first
    results of the reference.
    """

    name: str
    title: str
    inputs: Callable[[np.random.Generator, Sizes], Arrays]
    function: Callable[[Peer], Callable[..., Any]]
    sizes: Sizes
    quick: Sizes
    gradients: bool = True
    carries: bool = False
    tolerance: float = 1e-4
    slow_peers: tuple[str, ...] = ()
    slow: bool = False
    limits: str = ""
    variants: Mapping[str, Callable[[Arrays], Variant]] = field(default_factory=dict)

    def scaled(self, sizes: Sizes, scale: int) -> Sizes:
        """``sizes`` with ``scale`` times as many elements: more rows, not wider ones."""
        name = next((name for name in SCALED if name in sizes), None)
        if name is None or scale == 1:
            return sizes
        size = sizes[name]
        return {**sizes, name: tuple(scale * n for n in size) if isinstance(size, tuple) else scale * size}


def to_float64(tree: Any) -> Any:
    """The arrays with floats as float64, for the reference."""
    return tree_map(lambda x: x.astype(np.float64) if x.dtype.kind == "f" else x, tree)


def f32(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray[Any, Any]:
    """Normally distributed float32 numbers."""
    return np.multiply(rng.standard_normal(shape, np.float32), np.float32(scale))
