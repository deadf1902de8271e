"""torch's names of operands as keywords, ``torch.mul(input=a, other=b)``, and its ``out=``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from jitgrad.core.parameters import parameters_of
from jitgrad.nn import functional
from jitgrad.torch.output import written_out

_FIRST = frozenset(["input", "input1", "x1", "logits", "self"])
_SECOND = frozenset(["other", "mat2", "vec", "vec2", "exponent", "end", "tensor", "input2", "x2"])
_OWN = frozenset(["x", "a"])  # what jitgrad calls the first operand
_OPS = ("jitgrad.ops.", "jitgrad.numpy.")
_FURTHER = {"threshold": {"threshold": "limit"}, "normalize": {"p": "ord"}, "pairwise_distance": {"p": "ord"}}


def takes_torch_names(name: str, function: Any) -> Any:
    """``function`` with torch's names for its operands, and with ``out=``; itself, if it is no function of operands.

    A call without keywords passes on its arguments alone.
    """
    if type(function) is not FunctionType or function.__module__.startswith("jitgrad.torch"):
        return function
    own = parameters_of(function).positional
    if not own or own[0] not in _OWN:
        return _renaming(name, function, {}) if function.__module__.startswith(_OPS) else function
    spellings = dict.fromkeys(_FIRST, own[0]) | (dict.fromkeys(_SECOND, own[1]) if own[1:] and len(own[1]) == 1 else {})
    spellings = {theirs: ours for theirs, ours in (spellings | _FURTHER.get(name, {})).items() if theirs not in own}
    return _renaming(name, function, spellings)


def _renaming(name: str, function: Callable[..., Any], spellings: dict[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def with_names(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
        out = kwargs.pop("out", None)
        result = function(*args, **{spellings.get(name, name): value for name, value in kwargs.items()})
        return result if out is None else written_out(name, out, result)

    return with_names


def install_keywords() -> None:
    """Give the functions of `jitgrad.nn.functional` torch's names for operands, in the whole process."""
    for name, function in [*vars(functional).items()]:
        if name[0] != "_":
            setattr(functional, name, takes_torch_names(name, function))
