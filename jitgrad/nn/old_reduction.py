"""torch's first keywords for the reduction of a loss, ``size_average=`` and ``reduce=``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_old_reduction(loss: Callable[_P, _R]) -> Callable[_P, _R]:
    """``loss``, a function with the keyword ``reduction``, which takes torch's deprecated keywords as well.

    ``reduce=False`` is "none"; else ``size_average=False`` is "sum", and anything else "mean". One of them that is not
    None overrides ``reduction``, as in torch.
    """

    @wraps(loss)
    def taking_old(*args: Any, **keywords: Any) -> Any:
        if "size_average" in keywords or "reduce" in keywords:
            average, reduce = keywords.pop("size_average", None), keywords.pop("reduce", None)
            if average is not None or reduce is not None:
                keywords["reduction"] = "none" if reduce is False else "sum" if average is False else "mean"
        return loss(*args, **keywords)

    return taking_old
