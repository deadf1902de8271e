"""@jit methods of objects, and of copies of these."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol


class Bindable(Protocol):
    """What this module needs of a @jit function."""

    eager: Callable[..., Any]
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def with_function(self, function: Callable[..., Any]) -> Any: ...


def bound_method(function: Bindable, instance: Any, owner: type | None) -> Any:
    """``function`` as a method of ``instance``, which keeps it among its attributes; a class for a class method.

    A copy of an object has the attributes of the original, whose methods are not those of the copy.
    """
    name = f"_jitgrad_bound_{id(function):x}"
    attributes = getattr(instance, "__dict__", None)
    if attributes is None:
        return functools.partial(function, instance)
    bound = attributes.get(name)
    if bound is None or getattr(bound.eager, "__self__", instance) is not instance:
        bound = function.with_function(function.eager.__get__(instance, owner))
        if isinstance(instance, type):
            type.__setattr__(instance, name, bound)
        else:
            attributes[name] = bound
    return bound


def pickled_as(function: Bindable) -> str | tuple[Any, ...]:
    """How ``function`` is pickled: by its name, as functions and methods are."""
    owner = getattr(function.eager, "__self__", None)
    name = str(getattr(function, "__name__", function.name))
    if owner is not None and hasattr(getattr(type(owner), name, None), "with_function"):
        return getattr, (owner, name)
    return str(getattr(function, "__qualname__", name))
