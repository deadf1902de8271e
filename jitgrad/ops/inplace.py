"""In-place changes: an op computes the new value, which is written with its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype, Shape, is_number_of_trace
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import DtypeError, IndexingError, InPlaceError, ReadOnlyError, ShapeError
from jitgrad.core.op import OpDef
from jitgrad.core.storage import Lineage
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import ADD, DIVIDE, MULTIPLY, SUBTRACT, add, astype, divide, multiply, subtract
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import clone
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.indexing import INDEX_PUT, INDEX_PUT_ADD, PUT_SLICE, as_constant
from jitgrad.ops.movement import SLICE, broadcast_to, expand_dims, reshape, shape_with_ones, slice, squeeze
from jitgrad.ops.operand import Operand, apply, is_number
from jitgrad.ops.placement import beside, beside_indexed
from jitgrad.ops.python_data import exact_array
from jitgrad.ops.quick_writes import copied, filled, updated, written_at
from jitgrad.ops.subscript import (
    Subscript,
    basic_part,
    check_mask,
    entries_of,
    get_item,
    is_array,
    is_mask,
    is_whole,
    parse,
)
from jitgrad.ops.views import WRITERS, keep_elements

Steps = tuple[tuple[OpDef | None, Mapping[str, Any]], ...]
# the ops of functions that do nothing but apply one
_APPLIED: Mapping[Callable[..., Any], OpDef] = {add: ADD, subtract: SUBTRACT, multiply: MULTIPLY, divide: DIVIDE}


def assign(target: Tensor, new: Operand) -> Tensor:
    """Make ``target`` hold ``new``, in place; returns ``target``. Every in-place change ends here.

    ``new`` is broadcast to ``target``'s shape and cast by NumPy's same-kind rule. Under grad mode ``target`` takes over
    the history of ``new``.

    Raises:
        ShapeError, DtypeError: ``new`` does not fit.
        InPlaceError: ``target`` is a leaf that requires grad, or shares memory with another tensor whose history would
            become wrong.
        ReadOnlyError: its memory is read-only.
    """
    if type(new) is Tensor and copied(target, new):
        return target
    aval = aval_of(SLICE, new)
    if (not aval.weak or aval.dtype.kind == "c") and not np.can_cast(aval.dtype, target.dtype, "same_kind"):
        raise DtypeError(
            f"in-place change of a tensor {target.aval}: cannot cast the new value {aval} to {target.dtype}. Make a new tensor "
            "(x = x / y, not x /= y), or convert one of the two with .astype"
        )
    value = new if isinstance(new, Tensor) and aval.dtype == target.dtype else astype(new, target.dtype)
    if aval.shape != target.shape:
        try:
            value = broadcast_to(value, target.shape)
        except ShapeError:
            raise ShapeError(
                f"in-place change of a tensor {target.aval}: the new value {aval} has another shape; make a new tensor "
                "(x = x + y, not x += y)"
            ) from None
    tracked = grad_enabled.get() and (target._requires_grad or value._requires_grad)
    if tracked and _is_detached_leaf(target):
        current_interpreter.get().write(target, value)
        _move_history(target, value)
    elif tracked:
        _write_with_history(target, clone(value) if value.grad_fn is None and value._requires_grad else value)
    else:
        current_interpreter.get().write(target, value)
    return target


def _is_detached_leaf(target: Tensor) -> bool:
    """Whether ``target`` was detached from a leaf, as `weight.data` and `buffer.data` are: the leaf keeps having no history."""
    lineage = target._view
    if lineage is None or any(op not in (None, STOP_GRADIENT) for op, _ in lineage.steps):
        return False
    if target._requires_grad and target.grad_fn is None:  # a leaf of its own; else it may have taken a history before
        return False
    base = lineage.root()
    if base is None or base.grad_fn is not None:
        return False
    return not base._storage.others(base, target)


def _write_with_history(target: Tensor, value: Tensor) -> None:
    """Write ``value``; replace the histories of ``target``, its base and the base's other views.

    The base's new history replaces the part in it; a view's is that of the same view of the new base.
    """
    base, steps = _base_of(target)
    views = _views_to_refresh(target, base)
    whole = _through(base, steps, value)
    current_interpreter.get().write(target, value)
    _move_history(base, whole)
    for view in views if target is base else (target, *views):
        part = base
        for op, attrs in view._view.steps if view._view is not None else ():
            assert op is not None
            part = apply(op, part, **attrs)
        _move_history(view, part)


def _base_of(target: Tensor) -> tuple[Tensor, Steps]:
    """The base of the view ``target``, if it is alive, and the view ops that lead from it."""
    lineage = target._view if target.size else None
    base = None if lineage is None else lineage.root()
    if lineage is None or base is None or base._storage is not target._storage:
        return target, ()
    base, earlier = _base_of(base)  # of a detached tensor: what it was detached from
    return base, (*earlier, *lineage.steps)


def _views_to_refresh(target: Tensor, base: Tensor) -> list[Tensor]:
    """The views of ``base`` other than ``target`` that share its history: no detached ones.

    Raises:
        InPlaceError: if a history would become wrong.
    """
    if any(t._requires_grad and t.grad_fn is None for t in (target, base)):
        raise InPlaceError(
            f"in-place change of a leaf {target.aval} that requires grad, or of a view of one: its gradient would be "
            "lost. Do it within no_grad(), or out of place"
        )
    if not target.size:  # without elements there is nothing to share
        return []
    views = []
    for t in target._storage.others(target, base):
        made_by_ops = t._view is not None and all(op is not None and op.name in WRITERS for op, _ in t._view.steps)
        if made_by_ops and t._view is not None and t._view.root() is base:
            if t._requires_grad or not base._requires_grad:
                views.append(t)
        elif t._requires_grad:
            raise InPlaceError(
                f"in-place change of a tensor {target.aval} that shares memory with another one {t.aval} whose history "
                "would become wrong. .clone() it first, write x = x + y for x += y, or do it within no_grad()"
            )
    return views


def _leads_to(view: Lineage | None, other: Lineage) -> bool:
    """Whether ``other`` is a view of ``view``."""
    return view is not None and view.root() is other.root() and view.steps == other.steps[: len(view.steps)]


def _through(base: Tensor, steps: Steps, value: Tensor) -> Tensor:
    """``base`` with ``value`` in place of its view by ``steps``."""
    if not steps:
        return value
    (op, attrs), *rest = steps
    if op is None or op.name not in WRITERS:
        raise InPlaceError(
            f"in-place change of {value.aval} under grad mode: it shares memory with another tensor through "
            f"{op or 'detach'}, and their histories differ. .clone() it first, or do it within no_grad()"
        )
    part = _through(apply(op, base, **attrs), tuple(rest), value)
    return WRITERS[op.name](base, part, attrs)


def _move_history(target: Tensor, source: Tensor) -> None:
    current_interpreter.get().take_over(target, source)
    target.grad_fn, target._out_index = source.grad_fn, source._out_index
    target._requires_grad = source._requires_grad


def update(op: Callable[[Any, Any], Tensor], target: Tensor, other: Operand) -> Tensor:
    """``target = op(target, other)`` in place.

    Where backward will read the old ``target``, the op gets a copy of it (as in torch).
    """
    applied = _APPLIED.get(op)
    if applied is not None and updated(applied, target, other):
        return target
    by_other = isinstance(other, Tensor) and other._requires_grad
    linear = op in (multiply, divide)  # in target: only the gradient by other reads its old value
    needed = by_other if linear else op not in (add, subtract) and (by_other or target._requires_grad)
    return assign(target, op(clone(target) if needed and grad_enabled.get() else target, other))


# --- x[index] = value --------------------------------------------------------------------------------------------


def set_item(target: Tensor, index: Any, value: Any) -> None:
    """``target[index] = value`` with NumPy's meaning: the value is broadcast, and cast to ``target``'s dtype.

    Raises:
        IndexingError, ShapeError: as for reading, or the value does not broadcast to what ``index`` selects.
        InPlaceError: see :func:`assign`.
    """
    keep_elements(target)
    if written_at(target, index, value):
        return
    refuse_imaginary(target, value)
    tracked = grad_enabled.get() and (target._requires_grad or (isinstance(value, Tensor) and value._requires_grad))
    if _is_part(target, index, value):
        return
    if current_interpreter.get().tracing or tracked:
        with beside(target):
            assign(target, with_item(target, index, value))
    elif target.device != "cpu":
        with beside(target):
            _assign_item(target, index, value)
    else:
        _write_item(target, index, value)


def refuse_imaginary(target: Tensor, value: Any) -> None:
    """Raise DtypeError if ``value`` is complex and ``target`` is not: NumPy would drop imaginary parts, or refuse numbers."""
    if isinstance(value, (Tensor, np.ndarray, np.generic, complex)) and target.dtype.kind != "c":
        dtype = np.dtype(complex) if isinstance(value, complex) else value.dtype
        if dtype.kind == "c":
            raise DtypeError(f"assignment of {dtype} to a part of {target.aval}: assign x.real, or make the tensor complex")


@beside_indexed
def _assign_item(target: Tensor, index: Any, value: Any) -> None:
    """The eager form on a device: a slice is written where it is."""
    if any(is_array(entry) or is_mask(entry) for entry in entries_of(index)):
        assign(target, with_item(target, index, value))
    else:
        part = basic_part(target, parse(target.shape, index))
        assign(part, _fitted(_value_as(value, target.dtype), part.shape))


def _is_part(target: Tensor, index: Any, value: Any) -> bool:
    """Whether ``value`` is ``target[index]``: ``x[i] += v`` ends by assigning the changed part."""
    if not isinstance(value, Tensor) or value._view is None or value._storage is not target._storage:
        return False
    if any(is_array(entry) or is_mask(entry) for entry in entries_of(index)):
        return False
    return is_same_view(value._view, get_item(target, index)._view)


def is_same_view(one: Lineage | None, other: Lineage | None) -> bool:
    """Whether two views show the same part of one tensor."""
    return one is not None and other is not None and len(one.steps) == len(other.steps) and _leads_to(one, other)


def _write_item(target: Tensor, index: Any, value: Any) -> None:
    """The eager form: NumPy writes into the memory."""
    data = target.concrete("in-place change")
    if not data.flags.writeable:
        raise ReadOnlyError.of(target.aval)
    concrete = [entry.concrete("indexing") if isinstance(entry, Tensor) else entry for entry in entries_of(index)]
    # the last value for a position in row-major order stays; NumPy follows the indices' memory order
    concrete = [np.asarray(entry, order="C") if isinstance(entry, np.ndarray) else entry for entry in concrete]
    given: Any = value
    if isinstance(value, Tensor):
        given = value.concrete("in-place change")
    elif not is_number(value):  # NumPy would drop imaginary parts, read strings and make NaN of None
        given = exact_array("an assignment", value)
        refuse_imaginary(target, given)
    current_interpreter.before_write()
    try:
        with np.errstate(all="ignore"):
            data[tuple(concrete)] = given
    except IndexError as error:
        raise IndexingError(f"{target.aval}: {error}") from None
    except (ValueError, TypeError) as error:
        raise ShapeError(f"assignment to a part of {target.aval}: {error}") from None
    target._storage.bump()


@beside_indexed
def with_item(x: Tensor, index: Any, value: Any) -> Tensor:
    """A new tensor equal to ``x`` after ``x[index] = value``."""
    v = _value_as(value, x.dtype)
    entries = entries_of(index)
    only_first = entries and all(entry is Ellipsis for entry in entries[1:])
    if only_first and is_mask(entries[0]) and not isinstance(entries[0], (bool, np.bool_)):
        masked = _with_masked(x, entries[0], v)
        if masked is not None:
            return masked
    s = parse(x.shape, index)
    return _with_indexed(x, s, v) if s.indices else _with_slice(x, s, v)


@beside_indexed
def with_added(x: Tensor, index: Any, value: Any) -> Tensor:
    """``x`` with ``value`` added at ``index``; where integer arrays name an element several times, all are added."""
    if not any(is_array(entry) and not is_mask(entry) for entry in entries_of(index)):
        return with_changed(x, index, add, value)
    return _with_indexed(x, parse(x.shape, index), _value_as(value, x.dtype), INDEX_PUT_ADD)


@beside_indexed
def with_changed(x: Tensor, index: Any, op: Callable[[Any, Any], Tensor], value: Any) -> Tensor:
    """``x`` after ``x[index] = op(x[index], value)``, for an index without arrays of integers."""
    entries, v = entries_of(index), _value_as(value, x.dtype)
    mask = entries[0] if len(entries) == 1 and is_mask(entries[0]) else None
    if mask is not None and np.ndim(mask) and v.ndim <= x.ndim - mask.ndim:  # the same for each selected part
        check_mask(x.shape, 0, mask.shape)
        wide = reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim)))
        return where(wide, astype(op(x, v), x.dtype), x)
    return with_item(x, index, op(get_item(x, index), v))


def _value_as(value: Any, dtype: Dtype) -> Tensor:
    """``value`` as a tensor of ``dtype``, cast as NumPy does in assignments; a number must fit."""
    if is_number(value):
        if is_number_of_trace(value):
            return astype(value, dtype)
        return current_interpreter.get().constant(np.asarray(value, dtype))  # type: ignore[no-any-return]
    if not isinstance(value, (Tensor, np.ndarray, np.generic)):
        value = as_constant(exact_array("an assignment", value))
    return value if isinstance(value, Tensor) and value.dtype == dtype else astype(value, dtype)


def _without_leading_ones(v: Tensor, ndim: int) -> Tensor:
    """NumPy lets an assigned value have extra leading axes of length 1."""
    extra = 0
    while v.ndim - extra > ndim and v.shape[extra] == 1:
        extra += 1
    return squeeze(v, tuple(range(extra))) if extra else v


def _with_masked(x: Tensor, mask: Any, v: Tensor) -> Tensor | None:
    """The new value by ``where``, if each selected slice gets the same ``v``; else None."""
    check_mask(x.shape, 0, mask.shape)
    rest = x.shape[mask.ndim :]
    v = _without_leading_ones(v, len(rest))
    if v.ndim > len(rest):
        return None
    wide = reshape(mask, (*mask.shape, *(1 for _ in rest))) if rest else mask
    return where(wide, broadcast_to(v, rest), x)


def _part_shape(x: Tensor, s: Subscript) -> Shape:
    """The shape after slicing, dropping and adding axes."""
    kept = tuple(length for k, (_, _, length) in enumerate(s.slices) if k not in s.dropped)
    return shape_with_ones(kept, s.added)


def _fitted(v: Tensor, shape: Shape) -> Tensor:
    v = _without_leading_ones(v, len(shape))
    return v if v.shape == shape else broadcast_to(v, shape)


def _back_to_slice(v: Tensor, s: Subscript) -> Tensor:
    """``v``, which has the shape of the part that ``s`` reads, in the shape of its slices."""
    v = squeeze(v, s.added) if s.added else v
    return expand_dims(v, s.dropped) if s.dropped else v


def _with_slice(x: Tensor, s: Subscript, v: Tensor) -> Tensor:
    return apply(PUT_SLICE, x, _back_to_slice(_fitted(v, _part_shape(x, s)), s), index=s.slices)


def _with_indexed(x: Tensor, s: Subscript, v: Tensor, op: OpDef = INDEX_PUT) -> Tensor:
    whole = is_whole(s.slices, x.shape)
    part = x if whole else slice(x, s.slices)
    part = expand_dims(part, s.added) if s.added else part
    shapes = [aval_of(INDEX_PUT, i).shape for i in s.indices]
    try:
        broadcast = np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexingError(f"the index arrays have shapes {shapes}, which do not broadcast together") from None
    rest = tuple(n for k, n in enumerate(part.shape) if k not in s.axes)
    at = s.axes[0] if s.axes[-1] - s.axes[0] == len(s.axes) - 1 else 0
    new = apply(op, part, _fitted(v, (*rest[:at], *broadcast, *rest[at:])), *s.indices, axes=s.axes)
    new = squeeze(new, s.added) if s.added else new
    return new if whole else apply(PUT_SLICE, x, new, index=s.slices)


# --- methods with a trailing underscore --------------------------------------------------------------------------


def zero_(target: Tensor) -> Tensor:
    """Make all elements 0, in place."""
    return fill_(target, 0)


def fill_(target: Tensor, value: Operand) -> Tensor:
    """Make all elements ``value``, in place."""
    return target if filled(target, value) else assign(target, _value_as(value, target.dtype))


def fill_elements(target: Tensor, value: Operand) -> None:
    """NumPy's ``fill``: elements that were read keep their values."""
    keep_elements(target)
    fill_(target, value)


def copy_(target: Tensor, source: Operand) -> Tensor:
    """Make ``target`` hold ``source``, broadcast and cast, in place (torch's ``copy_``)."""
    return assign(target, _value_as(source, target.dtype))
