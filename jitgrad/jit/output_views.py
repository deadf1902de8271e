"""Results that are views of the caller's tensors: found in the trace, and made again by every call, as eager makes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.compiler.tracer import InputSource, Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import grad_enabled
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached
from jitgrad.ops.identity import STOP_GRADIENT

ViewStep = tuple[OpDef, Mapping[str, Any], Aval]


@dataclass(frozen=True, eq=False, slots=True)
class ResultView:
    """The view ops that lead from a tensor of the caller's to a result, with what each of them makes looks like.

    ``differentiable``: whether the result has a history where the tensor requires grad (not so under ``no_grad``).
    """

    steps: tuple[ViewStep, ...]
    differentiable: bool

    def of(self, x: Tensor) -> Tensor:
        """The result for ``x``: over the same memory, with the history and the storage that eager would give it."""
        for op, attrs, aval in self.steps:
            if op is STOP_GRADIENT:
                x = detached(x)
                continue
            out = _seen(x, op, attrs, aval)
            if self.differentiable:
                record(op, (x,), attrs, out)
            x = out
        return x


def _seen(x: Tensor, op: OpDef, attrs: Mapping[str, Any], aval: Aval) -> Tensor:
    """``op`` of ``x`` without a history; shapes and dtypes were checked when it was traced."""
    array = op.eager(x._data, **attrs)
    out = Tensor.of_result(array, aval)
    if np.may_share_memory(array, x._data):  # a reshape of what does not lie in order is a copy
        storage = out._memory = x._storage
        storage.share(x, out, op, attrs)
    return out


def _repeats(tensor: Tensor, steps: Sequence[ViewStep]) -> bool:
    """Whether ``steps`` write elements out more than once: kernels are faster at that, and eager makes no view either."""
    if all(op.name != "broadcast_to" for op, _, _ in steps):
        return False
    array = np.empty(tensor.shape, tensor.dtype)
    seen = array
    for op, attrs, _ in steps:
        if op is not STOP_GRADIENT:
            seen = op.eager(seen, **attrs)
    return not np.may_share_memory(seen, array)


def find_view(trace: Trace, x: Tensor, copied: Collection[int]) -> tuple[InputSource, ResultView] | None:
    """Where the memory lies that the result ``x`` shows, and how; None if the program has to make the result.

    That is so for what repeats elements in memory, for views of arrays that are not Tensors, of the arguments at the
    positions ``copied``, and for those with a history that a call could not repeat: of what the function changes, or other
    than the caller's grad mode says.
    """
    steps: list[ViewStep] = []
    tensor = x
    while (view := trace.view_of(tensor)) is not None:
        steps.insert(0, (view.op, view.attrs, Aval(tensor.shape, tensor.dtype)))
        tensor = view.parent
    found = trace.outside(tensor)
    if found is None:
        return None
    source, changed = found
    if x._requires_grad and (changed or not grad_enabled.get()):
        return None
    if _repeats(tensor, steps):
        return None
    shared = source.kind == "tensor" or (source.kind == "argument" and source.key not in copied)
    return (source, ResultView(tuple(steps), x._requires_grad)) if shared else None
