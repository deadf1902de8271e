"""One op to be applied to whole arrays: its operands, and which of them hold a value for every example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import aval_of
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops.movement import broadcast_to, expand_dims, reshape


@dataclass(frozen=True, slots=True)
class Application:
    """``op(*operands, **attrs)`` for ``size`` examples.

    A mapped operand is a tensor with the examples along axis 0, before the axes of one example.
    Other operands are the same for all examples.
    """

    op: OpDef
    operands: tuple[Any, ...]
    mapped: tuple[bool, ...]
    attrs: Mapping[str, Any]
    size: int

    def aval(self, k: int) -> Aval:
        """The aval of operand ``k`` of one example."""
        aval = aval_of(self.op, self.operands[k])
        return Aval(aval.shape[1:], aval.dtype) if self.mapped[k] else aval

    @property
    def avals(self) -> tuple[Aval, ...]:
        return tuple(map(self.aval, range(len(self.operands))))

    def aligned(self, k: int, ndim: int) -> Any:
        """Operand ``k`` for broadcasting with others whose examples have ``ndim`` axes."""
        missing = ndim - self.aval(k).ndim
        if not self.mapped[k] or missing <= 0:
            return self.operands[k]
        return expand_dims(self.operands[k], tuple(range(1, 1 + missing)))

    def whole(self, k: int) -> Tensor:
        """Operand ``k`` with the axis of examples, repeated along it if it has none."""
        x = self.operands[k]
        return x if self.mapped[k] else broadcast_to(x, (self.size, *self.aval(k).shape))

    def column(self, k: int, ndim: int) -> Tensor:
        """Operand ``k``, of one number for each example, with ``ndim`` more axes of length 1."""
        return reshape(self.operands[k], (self.size, *[1] * ndim))
