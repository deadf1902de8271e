"""``x[index]`` for ints, slices, None and '...' in eager execution: prepared once for each aval and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Aval, Shape, strong_aval
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.dispatch import plan_for, run_plan
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.plan import OpPlan
from jitgrad.core.tensor import Tensor

ViewCall = tuple[OpDef, Mapping[str, Any]]
_ndarray = np.ndarray
_new = object.__new__
_other_interpreter = current_interpreter.other
_PLAIN = frozenset({int, EllipsisType, type(None)})
_BOUND = frozenset({int, type(None)})
_MAX_VIEWS = 8192


class IndexView(NamedTuple):
    """A view of tensors of ``given``: the function that takes it of an array, its aval, and the view ops that lead to it.

    ``plans`` are run one after the other where a history is recorded.
    """

    given: Aval
    function: Callable[[Any], Any]
    out: Aval
    steps: tuple[ViewCall, ...]
    plans: tuple[OpPlan, ...]


_views: dict[Any, IndexView] = {}  # by the id of the aval, which the value keeps alive, and the index


def basic_view(x: Tensor, index: Any, steps_of: Callable[[Shape, Any], tuple[ViewCall, ...]]) -> Tensor | None:
    """``x[index]`` by the view ops that ``steps_of(shape, index)`` gives; None where these are to be applied."""
    data = x._data
    if type(data) is not _ndarray or _other_interpreter() is not None:
        return None
    entries = plain_entries(index)
    if entries is None:
        return None
    aval = x._aval or x.aval
    view = _views.get((id(aval), entries))
    if view is None and (view := _prepared(x, entries, steps_of)) is None:
        return None
    if x._requires_grad and grad_enabled.get():
        return recorded_view(x, view)
    try:
        part = view.function(data)
    except RuntimeError:  # another thread is within NumPy's context
        return None
    out = _new(Tensor)
    out._data = part
    out._aval = view.out
    out._requires_grad = False
    out._grad = out.grad_fn = out._hooks = out._view = out._memory = None
    out._out_index = out._address = 0
    if part.size:  # without elements there is nothing to share
        storage = out._memory = x._memory or x._storage
        storage.share_through(x, out, view.steps)
    return out


def recorded_view(x: Tensor, view: IndexView) -> Tensor | None:
    """``view`` of ``x`` with its history; None where its ops are to be applied."""
    part: Tensor | None = x
    for plan in view.plans:
        if part is None:
            break
        part = run_plan(plan, (part,), [part._data])
    return part


def plain_entries(index: Any) -> Any:
    """The entries of an index as a key; None if there are arrays, tensors and what is no index among them."""
    kind = type(index)
    if kind is int:
        return index
    if kind is slice:
        start, stop, step = index.start, index.stop, index.step
        if type(start) in _BOUND and type(stop) in _BOUND and type(step) in _BOUND:
            return start, stop, step, slice
        return None
    if kind is tuple:
        entries = tuple([entry if type(entry) in _PLAIN else _slice_entry(entry) for entry in index])
        return None if _OTHER in entries else (entries,)
    return (index,) if kind in _PLAIN else None


_OTHER = object()


def _slice_entry(entry: Any) -> Any:
    found = plain_entries(entry) if type(entry) is slice else None
    return _OTHER if found is None else found


def index_of(entries: Any) -> tuple[Any, ...]:
    """The index that has these entries."""
    if type(entries) is not tuple:
        return (entries,)
    if entries[-1] is slice:
        return (slice(*entries[:-1]),)
    listed = entries[0] if type(entries[0]) is tuple else entries
    return tuple([slice(*entry[:-1]) if type(entry) is tuple else entry for entry in listed])


def _prepared(x: Tensor, entries: Any, steps_of: Callable[[Shape, Any], tuple[ViewCall, ...]]) -> IndexView | None:
    """The view of ``x`` at ``entries``, remembered; None if an op has no plan."""
    index = index_of(entries)
    view = view_by(x, steps_of(x.shape, index), None if None in index else index)
    if view is not None:
        if len(_views) >= _MAX_VIEWS:
            _views.clear()
        _views[id(view.given), entries] = view
    return view


def view_by(x: Tensor, steps: tuple[ViewCall, ...], index: tuple[Any, ...] | None) -> IndexView | None:
    """The view of ``x`` that ``steps`` make; None if an op has no plan.

    ``index`` is the same for NumPy, None if that might have other strides: those of new axes differ.
    """
    plans, part = [], Tensor(x._data, x._aval)
    for op, attrs in steps:
        plan = plan_for(op, (part,), attrs)
        if plan is None:
            return None
        plans.append(plan)
        part = Tensor(np.asarray(op.eager(part._data, **attrs)), plan.out)
    x._aval = given = plans[0].avals[0] if plans else x.aval
    function: Callable[[Any], Any] = partial(_through, tuple([plan.function for plan in plans]))
    if index is not None:  # a view even of one element
        function = itemgetter(index if Ellipsis in index else (*index, Ellipsis))
    out = strong_aval(part.shape, part.dtype)
    return IndexView(given, function, out, steps, _for_history(tuple(plans), function, steps))


def _through(functions: tuple[Callable[..., Any], ...], data: Any) -> Any:
    for function in functions:
        data = function(data)
    return data


def _for_history(
    plans: tuple[OpPlan, ...], function: Callable[[Any], Any], steps: tuple[ViewCall, ...]
) -> tuple[OpPlan, ...]:
    """Several ``plans`` as that of one op, so that there is one node on the tape; as they are if their vjps read data."""
    if len(plans) < 2 or not all(isinstance(plan.op.vjp, tuple) and not plan.op.saves[0] for plan in plans):
        return plans
    if any(plan.op.saves_out[0] for plan in plans):
        return plans

    def vjp(g: Tensor, _out: Any, _x: Any) -> Tensor:
        for plan in reversed(plans):
            vjps: Any = plan.op.vjp
            g = vjps[0](g, plan.out, plan.avals[0], **plan.attrs)
        return g

    out = plans[-1].out
    op = OpDef(
        "index", Kind.MOVEMENT, ("x",), function, lambda _avals, _attrs: out, vjp=(vjp,), views=True,
        saves=(frozenset(),), saves_out=(False,),
    )  # fmt: skip
    plan = OpPlan(op, plans[0].avals, {}, out, function)
    plan.view_steps = steps
    return (plan,)
