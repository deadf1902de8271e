"""The in-place form of a function of tensors, as a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.core.context import grad_enabled
from jitgrad.core.plan import OpPlan
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import clone
from jitgrad.ops.inplace import assign
from jitgrad.ops.quick_writes import computed


def in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``x = function(x, ...)`` in place; where backward may read the old ``x``, the function gets a copy."""
    plans: dict[int, OpPlan | None] = {}

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not args and not kwargs and computed(plans, function, self):
            return self
        tracked = grad_enabled.get() and self._requires_grad
        return assign(self, function(clone(self) if tracked else self, *args, **kwargs))

    method.__doc__ = f"``{function.__name__}`` in place."
    return method
