"""``tensor.data = new`` in a trace: a call gives the tensor memory of its own, and leaves the old to its other users."""

from __future__ import annotations

import weakref
from typing import Any

from jitgrad.compiler.reshape_views import View
from jitgrad.core.errors import TraceError
from jitgrad.core.ir import Value
from jitgrad.core.storage import Storage
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import clone
from jitgrad.ops.identity import ALIAS, STOP_GRADIENT

_REMEDY = "To change the elements in place, which needs none of this, write tensor.data.copy_(new)"


def assign_data(trace: Any, target: Tensor, new: Tensor) -> None:
    """Give ``target`` the contents of ``new``, which is from now on a view of it.

    Raises:
        TraceError: shapes or dtypes differ, or one of the two shares its memory with a third tensor.
    """
    asked = f"tensor.data = new, of a tensor {target.aval}"
    if (new.shape, new.dtype) != (target.shape, target.dtype):
        raise TraceError(f"{asked}: @jit keeps shapes and dtypes of tensors, and new is {new.aval}")
    trace.current(target)  # takes a tensor from outside in
    if _is_view_of(trace, new, target):
        return
    if type(new._data) is not Value or id(new) in trace.lifted:
        raise TraceError(f"{asked}: new comes from outside of the function, and two such tensors cannot get one memory "
                         f"in it. Write tensor.data = new.clone(). {_REMEDY}")  # fmt: skip
    _leave_memory(trace, target)
    family = trace.views.get(id(target._storage), [])
    views = [view for view in family if view.tensor() is not None]
    if len(views) > 1 or trace.view_of(target) is not None:
        raise TraceError(f"{asked}: other tensors that the function made are views of it. {_REMEDY}")
    if trace.view_of(new) is not None or trace.views.get(id(new._memory)):
        raise TraceError(
            f"{asked}: new is a view of another tensor, or has views. Write tensor.data = new.clone(). {_REMEDY}"
        )
    for view in views:
        family.remove(view)
        _keep_old_memory(view.tensor())
    trace.replaced.add(id(target))
    trace.rebind(target, trace.current(new))
    trace.remember_view(View(weakref.ref(new), target, STOP_GRADIENT, {}))


def _leave_memory(trace: Any, target: Tensor) -> None:
    """A fresh input of a level of differentiation has memory of its own from now on, apart from the caller's tensor."""
    view = trace.view_of(target)
    if view is not None and view.op is ALIAS:
        trace.views[id(target._storage)].remove(view)
        target._storage = Storage()


def _keep_old_memory(old: Tensor | None) -> None:
    """The one view of a tensor whose memory is replaced, such as an earlier ``tensor.data``, has the old one alone."""
    if old is not None:
        old._data = clone(old)._data
        old._storage, old._view = Storage(), None


def _is_view_of(trace: Any, tensor: Tensor, base: Tensor) -> bool:
    """Whether ``tensor`` is ``base``, or was detached from it."""
    while (view := trace.view_of(tensor)) is not None and view.op in (STOP_GRADIENT, ALIAS):
        tensor = view.parent
    return tensor is base
