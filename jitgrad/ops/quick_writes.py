"""In-place changes without a history, in eager execution: NumPy writes into the memory of the target at once.

A hand-written training step is made of these. `jitgrad.ops.inplace` does all others, and reports all errors.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.dispatch import planned
from jitgrad.core.op import OpDef
from jitgrad.core.plan import MAX_PLANS, OpPlan
from jitgrad.core.tensor import Tensor
from jitgrad.eager.numpy_errors import quietly, run_quietly
from jitgrad.eager.single_ops import listed_ops, single_plan
from jitgrad.eager.where import MANY_ELEMENTS, select_by_mask
from jitgrad.ops.arithmetic import CLIP, CLIP_MIN
from jitgrad.ops.array_keys import array_key
from jitgrad.ops.quick_calls import FEW_ELEMENTS

_ndarray = np.ndarray
_NUMBERS = frozenset({float, int, bool})
_FITS = 128  # a number nearer to 0 needs no care in any dtype
_PLAIN = frozenset({int, slice, EllipsisType, type(None)})
_other_interpreter = current_interpreter.other


def updated(op: OpDef, target: Tensor, other: Any) -> bool:
    """Whether ``target`` is ``op(target, other)`` now: only if a plan of ``op`` has a ufunc for these two.

    The ufunc reads what overlaps with the memory that it writes before it writes.
    """
    a = target._data
    if type(a) is not _ndarray or _other_interpreter() is not None:
        return False
    if type(other) is Tensor:
        b = other._data
        if type(b) is not _ndarray or ((target._requires_grad or other._requires_grad) and grad_enabled.get()):
            return False
        plan = op.plans.get((id(target._aval or target.aval), id(other._aval or other.aval)))
        if plan is None or plan.in_place is None:
            return False
    else:
        if target._requires_grad and grad_enabled.get():
            return False
        plan = planned(op, (id(target._aval or target.aval), type(other)), (target, other))
        if plan is None or plan.in_place is None:
            return False
        b = plan.numbers.get(other)
        if b is None and (b := plan.convert(other)) is None:
            return False
    try:
        plan.in_place(a, b, out=a)
    except (RuntimeError, ValueError):  # another thread is within NumPy's context; read-only memory
        return False
    (target._memory or target._storage).bump()
    return True


def computed(plans: dict[int, OpPlan | None], function: Callable[..., Tensor], target: Tensor) -> bool:
    """Whether ``target`` is ``function(target)`` now: only if that is one op, and keeps shape and dtype.

    ``plans`` has those of ``function`` by the ids of avals, which the plans keep alive.
    """
    a = target._data
    if type(a) is not _ndarray or _other_interpreter() is not None or (target._requires_grad and grad_enabled.get()):
        return False
    key = id(target._aval or target.aval)
    if key not in plans:
        listed = listed_ops(function, target, (), {})
        plan = None if listed is None else single_plan(listed, target)
        if len(plans) >= MAX_PLANS:
            plans.clear()
        kept = plan is not None and plan.out is plan.avals[0] and plan.avals[0] is target._aval
        plans[id(target.aval)] = plan if kept else None
    plan = plans.get(id(target.aval))
    if plan is None or plan.op.views:
        return False
    try:
        if plan.in_place is not None:
            plan.in_place(a, out=a)
        else:
            np.copyto(a, plan.function(a))
    except (RuntimeError, ValueError):  # as above
        return False
    (target._memory or target._storage).bump()
    return True


def clipped(target: Tensor, low: float, high: float) -> bool:
    """Whether ``target`` is ``clip(target, low, high)`` now: only if the numbers keep its dtype."""
    a = target._data
    if type(a) is not _ndarray or _other_interpreter() is not None or (target._requires_grad and grad_enabled.get()):
        return False
    bounds = []
    for number in (low, high):
        if type(number) not in _NUMBERS:
            return False
        plan = planned(CLIP_MIN, (id(target._aval or target.aval), type(number)), (target, number))
        if plan is None or plan.in_place is None:
            return False
        bound = plan.numbers.get(number)
        if bound is None and (bound := plan.convert(number)) is None:
            return False
        bounds.append(bound)
    try:
        run_quietly(CLIP.eager, a, *bounds, out=a)
    except (RuntimeError, ValueError):  # as above
        return False
    (target._memory or target._storage).bump()
    return True


def copied(target: Tensor, source: Tensor) -> bool:
    """Whether ``target`` holds ``source`` now: only if both have the same shape and dtype."""
    data, new = target._data, source._data
    if type(data) is not _ndarray or type(new) is not _ndarray or _other_interpreter() is not None:
        return False
    if (target._requires_grad or source._requires_grad) and grad_enabled.get():
        return False
    if data.shape != new.shape or data.dtype != new.dtype:
        return False
    try:
        np.copyto(data, new)
    except ValueError:  # read-only memory
        return False
    (target._memory or target._storage).bump()
    return True


def filled(target: Tensor, value: Any) -> bool:
    """Whether all elements of ``target`` are ``value`` now: only for numbers that its dtype holds for certain."""
    data = target._data
    if type(data) is not _ndarray or _other_interpreter() is not None:
        return False
    if target._requires_grad and grad_enabled.get():
        return False
    kind = type(value)
    if not ((kind is bool or kind is int) and 0 <= value <= 1) and not (kind is float and data.dtype.kind == "f"):
        return False
    try:
        data.fill(value)
    except ValueError:  # as above
        return False
    (target._memory or target._storage).bump()
    return True


def is_whole_mask(index: Any, data: np.ndarray[Any, Any]) -> bool:
    """Whether ``index`` is a mask of so many elements of ``data`` that a choice for each takes less time than to skip some."""
    if type(index) is not tuple or len(index) != 1 or type(index[0]) is not _ndarray:
        return False
    return index[0].dtype == np.bool_ and index[0].shape == data.shape and data.size >= MANY_ELEMENTS and data.flags.writeable


def written_at(target: Tensor, index: Any, value: Any) -> bool:
    """Whether ``target[index]`` is ``value`` now: only for a small number or a tensor of the same dtype.

    A value in the memory of ``target`` needs more care: it may be the part itself, after ``x[i] += v``.
    """
    data = target._data
    if type(data) is not _ndarray or _other_interpreter() is not None:
        return False
    if type(index) not in _PLAIN and (type(index) is not tuple or not _PLAIN.issuperset(map(type, index))):
        index = array_key(index)
        if index is None:
            return False
    if type(value) is Tensor:
        given = value._data
        if type(given) is not _ndarray or given.dtype != data.dtype:
            return False
        if value._memory is not None and value._memory is target._memory:
            return False
        if (target._requires_grad or value._requires_grad) and grad_enabled.get():
            return False
    else:
        if type(value) not in _NUMBERS or not -_FITS < value < _FITS or (target._requires_grad and grad_enabled.get()):
            return False
        given = value
    try:
        if given is value and is_whole_mask(index, data):
            np.copyto(data, select_by_mask(index[0], data.dtype.type(value), data))
        else:
            data[index] = given
    except (IndexError, ValueError, TypeError):  # `jitgrad.ops.inplace` says what is wrong
        return False
    (target._memory or target._storage).bump()
    return True


def added_at(op: OpDef, target: Tensor, index: Any, values: Any, axis: int) -> bool:
    """Whether ``target`` is ``op(target, index, values, axis=axis)`` now: only for the few ``values`` in a large tensor that
    ``op.eager`` adds one by one, where a new tensor would be a copy of all others."""
    data = target._data
    if type(index) is not Tensor or type(values) is not Tensor or type(data) is not _ndarray or _other_interpreter() is not None:
        return False
    if (target._requires_grad or values._requires_grad) and grad_enabled.get():
        return False
    places, given = index._data, values._data
    if type(places) is not _ndarray or type(given) is not _ndarray or not data.flags.writeable:
        return False
    if FEW_ELEMENTS * given.size >= data.size or any(np.may_share_memory(data, x) for x in (places, given)):
        return False
    try:
        op.abstract([target.aval, index.aval, values.aval], {"axis": axis})
        quietly(op.eager, data, places, given, axis=axis, into=data)
    except (IndexError, ValueError, TypeError):  # `op` says what is wrong; nothing has changed
        return False
    (target._memory or target._storage).bump()
    return True
