"""Gradients with the value of the function, in torch's order."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from jitgrad.autograd.functional import Argnums, value_and_grad


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns ``(gradient, value)``; with ``has_aux``, ``(gradient, (value, aux))``.

    See :func:`jitgrad.value_and_grad`, which returns the value first.
    """
    both = value_and_grad(func, argnums, has_aux)

    @wraps(func)
    def with_value(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return with_value
