"""An op that a function applied while it was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jitgrad.core.aval import Aval
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor


class AppliedOp(NamedTuple):
    """One applied op: its operands as they were given, tensors and numbers, and its result."""

    op: OpDef
    operands: tuple[Any, ...]
    avals: list[Aval]
    attrs: Mapping[str, Any]
    out: Tensor
