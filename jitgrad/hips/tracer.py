"""autograd.tracer: values without their history."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor


def getval(x: Any) -> Any:
    """``x`` without its history."""
    return x.detach() if isinstance(x, Tensor) else x
