"""Ops and the functions over them. Importing this registers every op and gives Tensor its operators and methods."""

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
