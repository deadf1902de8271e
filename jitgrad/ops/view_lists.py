"""Functions that cut a tensor into views, in eager execution: prepared once for each aval and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any, ParamSpec

import numpy as np

from jitgrad.core.aval import Aval, strong_aval
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.tensor import Tensor
from jitgrad.eager.single_ops import listed_ops, single_op_key
from jitgrad.ops.basic_index import IndexView, ViewCall, recorded_view, view_by
from jitgrad.ops.movement import SLICE, SQUEEZE
from jitgrad.ops.operand import host_array
from jitgrad.ops.quick_calls import as_slices

_P = ParamSpec("_P")
_MOST = 1024  # kinds of calls of a function, and views of one; a program with more starts again, or makes each by its ops
_ndarray = np.ndarray
_new = object.__new__
_other_interpreter = current_interpreter.other


def lists_views(function: Callable[_P, tuple[Tensor, ...]]) -> Callable[_P, tuple[Tensor, ...]]:
    """``function``, which applies view ops to its first argument, and looks at no data and at no state.

    One that reshapes its argument gets arrays in order alone, of which that is a view.
    """
    known: dict[Any, tuple[IndexView, ...] | None] = {}

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> tuple[Tensor, ...]:
        x = args[0] if args else None
        if type(x) is Tensor and type(x._data) is _ndarray and _other_interpreter() is None:
            try:
                views = known[single_op_key(x, args[1:], kwargs)]
            except KeyError:
                views = _prepared(known, function, x, args[1:], kwargs)
            except TypeError:  # a list among the arguments
                views = None
            if views is not None and (made := _made(x, views)) is not None:
                return made
        return function(*args, **kwargs)

    return call


def cut_at_once(x: Any, axis: int, bounds: Sequence[int], drops: bool) -> tuple[Tensor, ...] | None:
    """The slices of ``x`` along ``axis`` between ``bounds``, without that axis if ``drops``, in eager execution; None where
    the ops are to make them, one after the other: so few that they are remembered, or those with a gradient."""
    data = host_array(x) if len(bounds) > _MOST else None
    if data is None or not data.size or x.aval.weak or (x._requires_grad and grad_enabled.get()):
        return None
    whole = tuple([(0, 1, n) for n in data.shape])
    before, after = whole[:axis], whole[axis + 1 :]
    key, shape, dtype = (slice(None),) * axis, list(data.shape), data.dtype
    removal: tuple[ViewCall, ...] = ((SQUEEZE, {"axis": (axis,)}),) if drops else ()
    avals: dict[int, Aval] = {}
    made, steps = [], []
    for start, stop in pairwise(bounds):
        length = stop - start
        aval = avals.get(length)
        if aval is None:
            shape[axis : axis + 1] = [] if drops else [length]
            aval = avals[length] = strong_aval(tuple(shape), dtype)
            shape = list(data.shape)
        part = Tensor.of_result(data[(*key, start if drops else slice(start, stop), ...)], aval)
        part._memory = x._storage
        made.append(part)
        steps.append(((SLICE, {"index": (*before, (start, 1, length), *after)}), *removal))
    x._storage.share_all(x, made, steps)
    return tuple(made)


def _made(x: Tensor, views: tuple[IndexView, ...]) -> tuple[Tensor, ...] | None:
    """``views`` of ``x``; None where the function is to make them."""
    if x._requires_grad and grad_enabled.get():
        recorded = tuple([recorded_view(x, view) for view in views])
        return None if None in recorded else recorded  # type: ignore[return-value]
    data, made = x._data, []
    storage = x._memory or x._storage
    for view in views:
        out = _new(Tensor)
        out._data = view.function(data)
        out._aval = view.out
        out._requires_grad = False
        out._grad = out.grad_fn = out._hooks = out._view = None
        out._memory = storage
        out._out_index = out._address = 0
        made.append(out)
    storage.share_all(x, made, [view.steps for view in views])
    return tuple(made)


def _prepared(
    known: dict[Any, tuple[IndexView, ...] | None],
    function: Callable[..., Any],
    x: Tensor,
    others: Any,
    kwargs: Mapping[str, Any],
) -> tuple[IndexView, ...] | None:
    """The views that ``function`` makes, remembered; None if they need more care."""
    listed = listed_ops(function, x, others, kwargs) if x.size else None
    if listed is None:
        return None
    listing, stand_in, results = listed
    views: tuple[IndexView, ...] | None = None
    if 0 < len(results) <= _MOST and all(result.size for result in results):
        found = [_view(x, listing.steps(stand_in, result)) for result in results]
        views = None if None in found else tuple(found)  # type: ignore[arg-type]
    if len(known) >= _MOST:
        known.clear()
    known[single_op_key(x, others, kwargs)] = views  # with the aval that the views keep alive
    return views


def _view(x: Tensor, steps: Sequence[ViewCall]) -> IndexView | None:
    """The view of ``x`` that ``steps`` make: a slice, also one without some axes of one element, or of another shape."""
    names = [op.name for op, _ in steps]
    if names == ["reshape", "slice"]:
        return view_by(x, tuple(steps), None)
    if names not in (["slice"], ["slice", "squeeze"]):
        return None
    index: list[Any] = [*as_slices(steps[0][1]["index"])]
    for axis in steps[1][1]["axis"] if len(steps) == 2 else ():
        index[axis] = index[axis].start
    return view_by(x, tuple(steps), tuple(index))
