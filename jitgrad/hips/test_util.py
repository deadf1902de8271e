"""autograd.test_util: gradients compared with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitgrad.testing import gradients as _gradients


def check_grads(f: Callable[..., Any], modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> Callable[..., None]:
    """A function of the arguments that raises unless gradients of ``f``, up to ``order``, agree with finite differences."""

    def check(*args: Any) -> None:
        _gradients.check_grads(f, args, order=order)

    return check
