"""torch's old name of a tensor with a history."""

from __future__ import annotations

from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A leaf over the memory of ``data``, as ``data.detach()``."""
    return detached(data).requires_grad_(requires_grad)
