"""autograd.misc.flatten: pytrees as vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.autograd.flattening import flatten_params
from jitgrad.core.tensor import Tensor


def flatten(value: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """The numbers of the pytree ``value`` as a vector, and the function that makes such a pytree of a vector."""
    return flatten_params(value)


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Tensor]:
    """``func`` as a function of a vector in place of a pytree like ``example``, how to make a pytree of one, and that of
    ``example``."""
    vector, unflatten = flatten_params(example)

    def of_vector(x: Any, *args: Any) -> Tensor:
        return flatten_params(func(unflatten(x), *args))[0]

    return of_vector, unflatten, vector
