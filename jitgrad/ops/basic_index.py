"""``x[index]`` for ints, slices, None and '...' in eager execution: prepared once for each aval and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Aval, Shape, strong_aval
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.dispatch import plan_for, run_plan
from jitgrad.core.op import OpDef
from jitgrad.core.plan import OpPlan
from jitgrad.core.tensor import Tensor

ViewCall = tuple[OpDef, Mapping[str, Any]]
_ndarray = np.ndarray
_new = object.__new__
_other_interpreter = current_interpreter.other
_PLAIN = frozenset({int, EllipsisType, type(None)})
_BOUND = frozenset({int, type(None)})
_MAX_VIEWS = 8192


class _View(NamedTuple):
    """An index of tensors of ``given``: as NumPy takes it, the aval of the result, and the view ops that lead to it.

    ``plans`` are those of the ops. ``functions`` are theirs if there are new axes, to which NumPy gives other strides.
    """

    given: Aval
    key: tuple[Any, ...]
    out: Aval
    steps: tuple[ViewCall, ...]
    plans: tuple[OpPlan, ...]
    functions: tuple[Callable[..., Any], ...] | None


_views: dict[Any, _View] = {}  # by the id of the aval, which the value keeps alive, and the index


def basic_view(x: Tensor, index: Any, steps_of: Callable[[Shape, Any], tuple[ViewCall, ...]]) -> Tensor | None:
    """``x[index]`` by the view ops that ``steps_of(shape, index)`` gives; None where these are to be applied."""
    data = x._data
    if type(data) is not _ndarray or _other_interpreter() is not None:
        return None
    entries = _entries(index)
    if entries is None:
        return None
    aval = x._aval or x.aval
    view = _views.get((id(aval), entries))
    if view is None and (view := _prepared(x, entries, steps_of)) is None:
        return None
    if x._requires_grad and grad_enabled.get():
        for plan in view.plans:
            part = run_plan(plan, (x,), [x._data])
            if part is None:
                return None
            x = part
        return x
    try:
        part = data[view.key] if view.functions is None else _through(view.functions, data)
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


def _through(functions: tuple[Callable[..., Any], ...], data: Any) -> Any:
    for function in functions:
        data = function(data)
    return data


def _entries(index: Any) -> Any:
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
    found = _entries(entry) if type(entry) is slice else None
    return _OTHER if found is None else found


def _index(entries: Any) -> tuple[Any, ...]:
    """The index that has these entries."""
    if type(entries) is not tuple:
        return (entries,)
    if entries[-1] is slice:
        return (slice(*entries[:-1]),)
    listed = entries[0] if type(entries[0]) is tuple else entries
    return tuple([slice(*entry[:-1]) if type(entry) is tuple else entry for entry in listed])


def _prepared(x: Tensor, entries: Any, steps_of: Callable[[Shape, Any], tuple[ViewCall, ...]]) -> _View | None:
    """The view of ``x`` at ``entries``, remembered; None if an op has no plan."""
    index = _index(entries)
    steps, plans, part = steps_of(x.shape, index), [], Tensor(x._data, x._aval)
    for op, attrs in steps:
        plan = plan_for(op, (part,), attrs)
        if plan is None:
            return None
        plans.append(plan)
        part = Tensor(np.asarray(op.eager(part._data, **attrs)), plan.out)
    x._aval = given = plans[0].avals[0] if plans else x.aval
    key = index if Ellipsis in index else (*index, Ellipsis)  # a view even of one element
    out = strong_aval(part.shape, part.dtype)
    if len(_views) >= _MAX_VIEWS:
        _views.clear()
    functions = tuple([plan.function for plan in plans]) if None in index else None
    view = _views[id(given), entries] = _View(given, key, out, steps, tuple(plans), functions)
    return view
