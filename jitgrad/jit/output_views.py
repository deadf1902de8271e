"""Results that are views of the caller's tensors or of other results, which every call makes as eager does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.reshape_views import View
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import grad_enabled
from jitgrad.core.device_array import VIEWS, DeviceArray
from jitgrad.core.ir import Value
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached
from jitgrad.ops.identity import ALIAS, STOP_GRADIENT
from jitgrad.ops.movement import RESHAPE

_MOST_PAIRED = 64  # views of which each pair is compared; more count as if some had elements in common

ViewStep = tuple[OpDef, Mapping[str, Any], Aval]


@dataclass(frozen=True, eq=False, slots=True)
class ResultView:
    """The view ops that lead from a tensor of the caller, or a new one, to a result, with the aval after each op.

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

    def array_of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same view of a NumPy array."""
        for op, attrs, _ in self.steps:
            if op not in (STOP_GRADIENT, ALIAS):
                array = op.eager(array, **attrs)
        return array


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
    return not np.may_share_memory(ResultView(tuple(steps), False).array_of(array), array)


@dataclass(frozen=True, eq=False, slots=True)
class SharedMemory:
    """A new tensor that is a view of ``owner``, another new tensor.

    ``layout_of``: the inputs of which eager's layout of ``owner`` comes; if one is not C-contiguous, eager copies.
    """

    owner: Tensor
    view: ResultView
    layout_of: tuple[InputSource, ...]


def shared_memory(trace: Trace, leaves: Iterable[Any]) -> dict[int, SharedMemory]:
    """The new tensors among ``leaves`` that share memory with others of them, by id."""
    families: dict[int, tuple[Tensor, dict[int, Tensor]]] = {}
    for x in leaves:
        if isinstance(x, Tensor) and type(x._data) is Value and id(x) not in trace.lifted:
            views = trace.views_above(x)
            owner = views[0].parent if views else x
            families.setdefault(id(owner), (owner, {}))[1][id(x)] = x
    found: dict[int, SharedMemory] = {}
    for owner, members in families.values():
        if len(members) > 1 and type(owner._data) is Value and id(owner) not in trace.lifted:
            found.update(_views_of_owner(trace, owner, members))
    return found


def _views_of_owner(trace: Trace, owner: Tensor, members: Mapping[int, Tensor]) -> dict[int, SharedMemory]:
    """How ``members``, of which one may be ``owner``, are views of it; none if they have no memory in common."""
    found: dict[int, SharedMemory] = {}
    for key, x in members.items():
        if x is owner or (flows(x) and not (flows(owner) and grad_enabled.get())):
            continue
        steps = _steps(views := trace.views_above(x), x)
        layout = _layout_of(trace, owner) if any(view.op is RESHAPE for view in views) else ()
        if layout is not None and not _copies_in_eager(owner, steps):
            found[key] = SharedMemory(owner, ResultView(steps, flows(x)), layout)
    return found if id(owner) in members or _overlap(owner, [shared.view for shared in found.values()]) else {}


def _layout_of(trace: Trace, tensor: Tensor) -> tuple[InputSource, ...] | None:
    """The inputs that decide the layout of ``tensor`` in eager execution; None if it need not be C-contiguous."""
    found = trace.reshapes.layout_sources(trace.current(tensor), trace.nodes)
    pairs = zip(trace.inputs, trace.sources, strict=True)
    return None if found is None else tuple([source for value, source in pairs if value in found])


def _overlap(owner: Tensor, views: Sequence[ResultView]) -> bool:
    """Whether two of the ``views`` of ``owner`` have elements in common."""
    array = np.empty(owner.shape, np.uint8)  # of which no element is touched
    shown = [view.array_of(array) for view in views]
    return len(shown) > _MOST_PAIRED or any(np.shares_memory(a, b) for k, a in enumerate(shown) for b in shown[:k])


def flows(x: Tensor) -> bool:
    """Whether gradients flow from the traced ``x``; a history that was freed inside the function leads nowhere."""
    return x._requires_grad and x.grad_fn is not None and not x.grad_fn.is_used_up


def _steps(views: Sequence[View], x: Tensor) -> tuple[ViewStep, ...]:
    results = [*[view.parent for view in views[1:]], x]
    return tuple([(v.op, v.attrs, Aval(r.shape, r.dtype)) for v, r in zip(views, results, strict=True)])


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
    steps = _steps(views, x) if views else ()
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
    return (source, ResultView(steps, x._requires_grad)) if shared else None
