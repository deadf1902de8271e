"""Tables of ops and the functions over them, which Tensor has as methods; imports core, eager, vecmath."""

from jitgrad.ops import (
    activations,
    convolution,
    creation,
    einsum,
    elementwise,
    indexing,
    joining,
    linalg,
    losses,
    methods,
    movement,
    neural,
    random,
    reduce,
    sorting,
)

__all__ = [
    "activations",
    "convolution",
    "creation",
    "einsum",
    "elementwise",
    "indexing",
    "joining",
    "linalg",
    "losses",
    "methods",
    "movement",
    "neural",
    "random",
    "reduce",
    "sorting",
]
