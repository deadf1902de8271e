"""torch's first arguments for the reduction of a loss, ``size_average`` and ``reduce``, by keyword and by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from jitgrad.core.parameters import parameters_of

_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_old_reduction(loss: Callable[_P, _R]) -> Callable[_P, _R]:
    """``loss``, a function with the keyword ``reduction``, which takes torch's deprecated arguments as well.

    ``reduce=False`` is "none"; else ``size_average=False`` is "sum", and anything else "mean". One of them that is not
    None overrides ``reduction``, as in torch. Arguments by position are in torch's order if there is None or a bool where
    torch has ``size_average``.
    """
    own = parameters_of(loss).names
    cut, later = _torch_order(own)

    @wraps(loss)
    def taking_old(*args: Any, **keywords: Any) -> Any:
        if len(args) > cut and (args[cut] is None or isinstance(args[cut], bool)) and len(args) <= cut + len(later):
            args = _named(later, args, cut, keywords)
        if "size_average" in keywords or "reduce" in keywords:
            average, reduce = keywords.pop("size_average", None), keywords.pop("reduce", None)
            if average is not None or reduce is not None:
                keywords["reduction"] = "none" if reduce is False else "sum" if average is False else "mean"
        return loss(*args, **keywords)

    return taking_old


def _torch_order(own: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The position of torch's ``size_average`` in a loss of the parameters ``own``, and its parameters from there on."""
    at = own.index("reduction")
    leading, rest = own[:at], own[at + 1 :]
    late = [name for name in leading if name == "ignore_index" or (name == "eps" and "log_input" in leading)]
    return len(leading) - len(late), ("size_average", *late, "reduce", "reduction", *rest)


def _named(later: Sequence[str], args: tuple[Any, ...], cut: int, keywords: dict[str, Any]) -> tuple[Any, ...]:
    """Move the arguments from position ``cut`` on into ``keywords``, and return those before."""
    for name, value in zip(later, args[cut:], strict=False):
        if name in keywords:
            raise TypeError(f"got multiple values for argument {name!r}")
        keywords[name] = value
    return args[:cut]
