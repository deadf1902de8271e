"""The public elementwise functions by name, read from the modules that define them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from jitgrad.core.tensor import Tensor
from jitgrad.ops import (
    activations,
    arithmetic,
    comparison,
    interpolation,
    rounding,
    special,
    transcendental,
    trigonometric,
)


def functions_of(module: ModuleType) -> Iterator[tuple[str, Callable[..., Tensor]]]:
    """Names (aliases, too) and functions of ``module`` that take an Operand first and return a Tensor."""
    for name, function in vars(module).items():
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
            types = [*function.__annotations__.values()]
            if types[0] == "Operand" and types[-1] == "Tensor":
                yield name, function


# Each is a function of jitgrad, a method of Tensor, and what NumPy's function of that name calls.
ELEMENTWISE: Mapping[str, Callable[..., Tensor]] = {
    name: function
    for module in (arithmetic, comparison, interpolation, rounding, transcendental, special, trigonometric, activations)
    for name, function in functions_of(module)
}
