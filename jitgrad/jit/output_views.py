"""Results that are views of the caller's tensors or of other results, which every call makes as eager does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.autograd.broken_history import broken_histories
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.reshape_views import View, may_copy
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import grad_enabled
from jitgrad.core.device_array import VIEWS, DeviceArray
from jitgrad.core.errors import UnguardableError
from jitgrad.core.ir import Value
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import Node, record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached
from jitgrad.ops.identity import ALIAS, STOP_GRADIENT
from jitgrad.ops.movement import RESHAPE

_MOST_PAIRED = 64  # views of which each pair is compared; more count as if some had elements in common

ViewStep = tuple[OpDef, Mapping[str, Any], Aval, bool]  # the last: the function has called requires_grad_() on the result


@dataclass(frozen=True, eq=False, slots=True)
class ResultView:
    """The view ops that lead from a tensor of the caller, or a new one, to a result, with the aval after each op.

    ``differentiable``: whether the result has a history if the tensor, or a new leaf between, requires grad.
    """

    steps: tuple[ViewStep, ...]
    differentiable: bool

    def of(self, x: Tensor) -> Tensor:
        """The result for ``x``, with the history and the storage that eager gives it."""
        for op, attrs, aval, leaf in self.steps:
            if op is STOP_GRADIENT:
                x = detached(x)
            else:
                out = _view(x, op, attrs, aval)
                if self.differentiable:
                    record(op, (x,), attrs, out)
                x = out
            if leaf:
                x._requires_grad = True
        return x

    def write(self, array: np.ndarray[Any, Any], values: Any) -> None:
        """Put ``values`` where the same view of ``array`` shows it, unless that repeats elements."""
        shown = self.array_of(array)
        if shown.flags.writeable:
            shown[...] = values

    def array_of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same view of a NumPy array."""
        for op, attrs, *_ in self.steps:
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
    if all(op.name != "broadcast_to" for op, *_ in steps):
        return False
    array = np.empty(tensor.shape, tensor.dtype)
    return not np.may_share_memory(ResultView(tuple(steps), False).array_of(array), array)


@dataclass(frozen=True, eq=False, slots=True)
class Reshaped:
    """How a view goes through a reshape, which copies in eager execution if an input in ``layout_of`` is not C-contiguous.

    ``made`` leads from the owner to the result of the reshape, and is one object for all views of that; ``rest`` goes on.
    """

    layout_of: tuple[InputSource, ...]
    made: ResultView
    rest: ResultView


@dataclass(frozen=True, eq=False, slots=True)
class SharedMemory:
    """A new tensor that is a view of ``owner``, another new tensor."""

    owner: Tensor
    view: ResultView
    reshaped: Reshaped | None


class _Family:
    """The tensors among the results that are views of ``owner``, or are that."""

    def __init__(self, trace: Trace, owner: Tensor) -> None:
        self.owner = owner
        self.layout_of = _layout_of(trace, owner)
        self.members: dict[int, tuple[Tensor, list[View]]] = {}  # with the views that lead to them, by id
        self._made: dict[int, ResultView] = {}  # by the tensor that a reshape made

    def views(self) -> dict[int, SharedMemory]:
        """How members are views of the owner; none if they have no memory in common."""
        found = {}
        for key, (x, views) in self.members.items():
            if x is self.owner:
                continue
            steps = _steps(views, x)
            known = not flows(x) or (flows(self.owner) and grad_enabled.get()) or any(leaf for *_, leaf in steps)
            if known and not _copies_in_eager(self.owner, steps):
                shown = ResultView(steps, flows(x))
                found[key] = SharedMemory(self.owner, shown, self._reshaped(views, steps, x))
        every = [shared.view for shared in found.values()]
        return found if id(self.owner) in self.members or _overlap(self.owner, every) else {}

    def _reshaped(self, views: Sequence[View], steps: tuple[ViewStep, ...], x: Tensor) -> Reshaped | None:
        first = next((k for k, view in enumerate(views) if may_copy(view)), None)
        if first is None or not self.layout_of:
            return None
        key = id(views[first + 1].parent) if first + 1 < len(views) else id(x)
        made = self._made.setdefault(key, ResultView(steps[: first + 1], flows(x)))
        return Reshaped(self.layout_of, made, ResultView(steps[first + 1 :], flows(x)))


def shared_memory(trace: Trace, leaves: Iterable[Any]) -> dict[int, SharedMemory]:
    """The new tensors among ``leaves`` that share memory with others of them, by id."""
    families: dict[int, _Family] = {}
    for x in leaves:
        if isinstance(x, Tensor) and type(x._data) is Value and id(x) not in trace.lifted:
            views = trace.views_above(x)
            owner = views[0].parent if views else x
            family = families.setdefault(id(owner), _Family(trace, owner))
            if family.layout_of is None and any(may_copy(view) for view in views):
                # in an unknown layout, a reshape copies in eager execution, with few exceptions
                last = max(k for k, view in enumerate(views) if may_copy(view))
                views = views[last + 1 :]
                owner = views[0].parent if views else x
                family = families.setdefault(id(owner), _Family(trace, owner))
            family.members[id(x)] = x, views
    found: dict[int, SharedMemory] = {}
    for family in families.values():
        owner = family.owner
        if len(family.members) > 1 and type(owner._data) is Value and id(owner) not in trace.lifted:
            found.update(family.views())
    return found


def _layout_of(trace: Trace, tensor: Tensor) -> tuple[InputSource, ...] | None:
    """The inputs that decide the layout of ``tensor`` in eager execution; None if it need not be C-contiguous."""
    found = trace.reshapes.layout_sources(trace.reshapes.first_contents(tensor._storage, trace.current(tensor)), trace.nodes)
    pairs = zip(trace.inputs, trace.sources, strict=True)
    return None if found is None else tuple([source for value, source in pairs if value in found])


def _overlap(owner: Tensor, views: Sequence[ResultView]) -> bool:
    """Whether two of the ``views`` of ``owner`` have elements in common."""
    array = np.empty(owner.shape, np.uint8)  # of which no element is touched
    shown = [view.array_of(array) for view in views]
    return len(shown) > _MOST_PAIRED or any(np.shares_memory(a, b) for k, a in enumerate(shown) for b in shown[:k])


def flows(x: Tensor) -> bool:
    """Whether gradients flow from the traced ``x``: not through a history that was freed inside the function."""
    return x._requires_grad and x.grad_fn is not None and freed_history(x) is None


def is_leaf(x: Tensor) -> bool:
    """Whether the traced ``x`` is a tensor that the function lets collect gradients."""
    return x._requires_grad and x.grad_fn is None


def freed_history(x: Tensor) -> Node | None:
    """The node of the traced ``x`` if a backward pass has freed what backward from ``x`` would need."""
    node = x.grad_fn
    return node if node is not None and node.is_used_up and broken_histories({0: (node, 0)}, 0) else None


def _steps(views: Sequence[View], x: Tensor) -> tuple[ViewStep, ...]:
    results = [*[view.parent for view in views[1:]], x]
    return tuple([(v.op, v.attrs, Aval(r.shape, r.dtype), is_leaf(r)) for v, r in zip(views, results, strict=True)])


@dataclass(frozen=True, eq=False, slots=True)
class SourceView:
    """A result that is a view of a tensor of the caller.

    ``through`` leads from the tensor to the result of each reshape and on to the last one; a reshape copies in some layouts.
    A reshape is one object for all views of its result. ``rest`` goes on from there.
    """

    source: InputSource
    through: tuple[ResultView, ...]
    rest: ResultView


class SourceViews:
    """Finds the results of a trace that are views of the caller's tensors, but for arguments at the positions ``copied``."""

    def __init__(self, trace: Trace, copied: Collection[int]) -> None:
        self._trace = trace
        self._copied = copied
        self._reshaped: dict[int, ResultView] = {}  # by the id of the tensor that a reshape made

    def find(self, x: Tensor) -> SourceView | None:
        """How the result ``x`` is a view of a tensor; None: the program computes it.

        The program computes copies, views of arrays that are not Tensors, and views of arguments that are copied. It also
        computes views with a history that a call could not give them: those of a tensor that has lost its own in the function,
        and those made in another grad mode.
        """
        trace = self._trace
        views = trace.views_above(x)
        while (copy := trace.copy_of(views[0].parent if views else x)) is not None:
            views = [*trace.views_above(copy.parent), copy, *views]  # a view if the layout of a call allows it
        tensor = views[0].parent if views else x
        steps = _steps(views, x) if views else ()
        if (lifted := trace.lifted.get(id(tensor))) is None:
            return None
        _, source, before = lifted
        lost = trace.current(tensor) is not before and trace.moved.get(id(tensor), tensor) is None
        has_history = grad_enabled.get() and not lost
        is_argument = source.kind is SourceKind.ARGUMENT
        shared = source.key not in self._copied if is_argument else source.kind in (SourceKind.TENSOR, SourceKind.GRADIENT)
        if _copies_in_eager(tensor, steps):
            return None
        if x._requires_grad and not (has_history or is_leaf(x)):
            if shared and lost:
                raise _without_history(trace, x)
            return None
        return self._through_reshapes(source, views, steps, x, has_history) if shared else None

    def _through_reshapes(
        self, source: InputSource, views: Sequence[View], steps: tuple[ViewStep, ...], x: Tensor, has_history: bool
    ) -> SourceView:
        made = [*[view.parent for view in views[1:]], x]
        through, start = list[ResultView](), 0
        for k, view in enumerate(views):
            if view.op is RESHAPE:
                part = ResultView(steps[start : k + 1], made[k].grad_fn is not None and has_history)
                through.append(self._reshaped.setdefault(id(made[k]), part))
                start = k + 1
        return SourceView(source, tuple(through), ResultView(steps[start:], x._requires_grad and not is_leaf(x)))


def _without_history(trace: Trace, x: Tensor) -> UnguardableError:
    """The error for the result ``x``, a view with a history of a tensor from outside that has lost its own."""
    return UnguardableError(
        f"@jit function {trace.name!r} returns or stores {x.aval}, which shares memory with a tensor that detach_() or no_grad() "
        "cut from its history, and has a history itself: a compiled call cannot give it both. Return .clone() of it, or "
        "call detach_() before the view is made."
    )
