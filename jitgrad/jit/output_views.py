"""Results that are views of the caller's tensors, which every call makes as eager does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import grad_enabled
from jitgrad.core.device_array import VIEWS, DeviceArray
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached
from jitgrad.ops.identity import ALIAS, STOP_GRADIENT

ViewStep = tuple[OpDef, Mapping[str, Any], Aval]


@dataclass(frozen=True, eq=False, slots=True)
class ResultView:
    """The view ops that lead from a tensor of the caller to a result, with the aval after each op.

    ``differentiable``: whether the result has a history if the tensor requires grad.
    """

    steps: tuple[ViewStep, ...]
    differentiable: bool

    def of(self, x: Tensor) -> Tensor:
        """The result for ``x``, with the history and the storage that eager gives it."""
        for op, attrs, aval in self.steps:
            if op is STOP_GRADIENT:
                x = detached(x)
                continue
            out = _view(x, op, attrs, aval)
            if self.differentiable:
                record(op, (x,), attrs, out)
            x = out
        return x


def _view(x: Tensor, op: OpDef, attrs: Mapping[str, Any], aval: Aval) -> Tensor:
    """``op`` of ``x`` without a history; the trace has checked shapes and dtypes."""
    if op is ALIAS:
        array, shared = x._data, True
    elif isinstance(x._data, DeviceArray):
        array = VIEWS[op.name](x._data, **attrs)
        shared = array.owner is x._data.owner
    else:
        array = op.eager(x._data, **attrs)
        shared = np.may_share_memory(array, x._data)
    out = Tensor.of_result(array, aval)
    if shared:  # a reshape of an array that is not contiguous is a copy
        storage = out._memory = x._storage
        storage.share(x, out, None if op is ALIAS else op, attrs)
    return out


def _copies_in_eager(tensor: Tensor, steps: Sequence[ViewStep]) -> bool:
    """Whether eager copies in ``steps``, as a reshape of broadcast elements does."""
    if all(op.name != "broadcast_to" for op, _, _ in steps):
        return False
    array = np.empty(tensor.shape, tensor.dtype)
    view = array
    for op, attrs, _ in steps:
        if op not in (STOP_GRADIENT, ALIAS):
            view = op.eager(view, **attrs)
    return not np.may_share_memory(view, array)


def find_view(trace: Trace, x: Tensor, copied: Collection[int]) -> tuple[InputSource, ResultView] | None:
    """The tensor that the result ``x`` is a view of, and how; None: the program computes it.

    The program computes copies, views of arrays that are not Tensors, and views of the arguments at
    the positions ``copied``. It also computes views with a history that a call could not give them:
    those of a tensor that the function changes without moving its history, and those made in another
    grad mode.
    """
    views = trace.views_above(x)
    while (copy := trace.copy_of(views[0].parent if views else x)) is not None:
        views = [*trace.views_above(copy.parent), copy, *views]  # a view if the layout of a call allows it
    tensor = views[0].parent if views else x
    results = [*[view.parent for view in views[1:]], x]
    steps = [(v.op, v.attrs, Aval(r.shape, r.dtype)) for v, r in zip(views, results, strict=True)] if views else []
    if (lifted := trace.lifted.get(id(tensor))) is None:
        return None
    _, source, before = lifted
    changed = trace.current(tensor) is not before
    if x._requires_grad and ((changed and trace.moved.get(id(tensor)) is None) or not grad_enabled.get()):
        return None
    if _copies_in_eager(tensor, steps):
        return None
    is_argument = source.kind is SourceKind.ARGUMENT
    shared = source.key not in copied if is_argument else source.kind is SourceKind.TENSOR
    return (source, ResultView(tuple(steps), x._requires_grad)) if shared else None
