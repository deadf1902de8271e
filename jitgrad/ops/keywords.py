"""Keyword arguments under torch's names: ``dim=`` for ``axis=``, ``keepdim=`` for ``keepdims=``, and a few more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from jitgrad.core.errors import ArgumentError
from jitgrad.core.parameters import parameters_of
from jitgrad.ops.positional_axes import PAIRS_IN_TORCH, POSITIONAL_AXES, UNBIASED_IN_TORCH, warn_of_biased

_P = ParamSpec("_P")
_R = TypeVar("_R")

# torch's name -> the names that a function here may have for it
_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "dim": ("axis",),
    "dims": ("axis", "axes"),
    "keepdim": ("keepdims",),
    "dim0": ("axis1",),
    "dim1": ("axis2",),
}


def takes_dim(
    torch_meaning: Callable[..., Any] | None = None, **names: str
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator: the function takes ``dim=``, ``dims=`` and ``keepdim=`` for its own names of them.

    A call with one of torch's keywords is a call as torch understands it. Where that differs from NumPy's meaning,
    ``torch_meaning`` answers it, with the arguments under the names of the decorated function.

    Args:
        torch_meaning: what such a call computes; by default what the function itself does.
        names: more of torch's keywords, each with the function's own name for it.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        parameters = parameters_of(function).names
        spellings = {theirs: own for theirs, many in _SPELLINGS.items() for own in many if own in parameters} | names
        answer: Callable[..., Any] = torch_meaning or function
        is_pair = torch_meaning is not None and function.__name__ in PAIRS_IN_TORCH
        is_unbiased = function.__name__ in UNBIASED_IN_TORCH

        @wraps(function)
        def with_names(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if kwargs and not spellings.keys().isdisjoint(kwargs):
                taken = {*parameters[: len(args)], *kwargs}
                renamed = [(theirs, own) for theirs, own in spellings.items() if theirs in kwargs and theirs != own]
                for theirs, own in renamed:
                    if own in taken:
                        raise _given_twice(function.__name__, theirs, own)
                own_names = {spellings.get(name, name): value for name, value in kwargs.items()}
                return answer(*args, **own_names)  # type: ignore[no-any-return]
            result = function(*args, **kwargs)
            if is_pair:
                _note_pair(function.__name__, args, kwargs, result, answer)
            elif is_unbiased and not kwargs:
                warn_of_biased(function.__name__, args[0])
            return result

        return with_names

    return decorate


def _note_pair(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, answer: Callable[..., Any]) -> None:
    """Remember a result that torch's call of these arguments, ``answer``, makes a pair."""
    by_position = len(args) >= 2 and type(args[1]) is int
    unpacks = name == "sort" and len(args) == 1 and "axis" not in kwargs and result.shape[:1] == (2,)  # two rows: silently
    if by_position or unpacks:
        POSITIONAL_AXES.note(result, lambda: answer(*args, **kwargs))


def _given_twice(function: str, theirs: str, own: str) -> ArgumentError:
    return ArgumentError(
        f"{function}: {theirs}= and {own}= are two names of one argument, which got two values; give one"
    )
