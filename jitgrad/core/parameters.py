"""The names of a function's parameters, which `inspect.signature` finds in twenty times the time: it is asked at each import."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple


class Parameters(NamedTuple):
    """Names of parameters: those with places, ``*rest``, those without, and ``**more``; "" where there is none of a kind."""

    positional: tuple[str, ...]
    rest: str
    keyword_only: tuple[str, ...]
    more: str

    @property
    def names(self) -> list[str]:
        """All of them, in the order of the signature."""
        return [name for name in (*self.positional, self.rest, *self.keyword_only, self.more) if name]


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """The parameters of ``function``, of what it wraps where that is known. Raises as `inspect.signature` does."""
    plain = inspect.unwrap(function)
    if type(plain) is not FunctionType or hasattr(plain, "__signature__"):
        return _by_inspection(function)
    code = plain.__code__
    count = code.co_argcount
    end = count + code.co_kwonlyargcount
    others = [*code.co_varnames[end:]]
    rest = others.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    more = others[0] if code.co_flags & inspect.CO_VARKEYWORDS else ""
    return Parameters(code.co_varnames[:count], rest, code.co_varnames[count:end], more)


def _by_inspection(function: Callable[..., Any]) -> Parameters:
    names: dict[Any, list[str]] = {}
    for p in inspect.signature(function).parameters.values():
        kind = p.POSITIONAL_ONLY if p.kind is p.POSITIONAL_OR_KEYWORD else p.kind
        names.setdefault(kind, []).append(p.name)
    kinds = inspect.Parameter
    rest, more = names.get(kinds.VAR_POSITIONAL, [""]), names.get(kinds.VAR_KEYWORD, [""])
    positional, keyword_only = names.get(kinds.POSITIONAL_ONLY, ()), names.get(kinds.KEYWORD_ONLY, ())
    return Parameters(tuple(positional), rest[0], tuple(keyword_only), more[0])
