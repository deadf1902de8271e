"""What a leaf gets at the end of a backward pass: its gradient after hooks, in memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import AutogradError, ShapeError
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.references import has_owners
from jitgrad.core.tensor import HookHandle, Tensor
from jitgrad.eager import numpy_errors
from jitgrad.eager.buffer_pool import is_alone_in_block
from jitgrad.ops.arithmetic import add
from jitgrad.ops.inplace import update

Hook = Callable[[Tensor], Tensor | None]

_accumulating = fork_safe_lock()


class PostAccumulateHook(partial[None]):
    """A hook of a leaf that is called when its .grad is complete, and not with the gradient."""


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> HookHandle:
    """Call ``hook(tensor)`` after each backward pass that has added to the .grad of this leaf, as for optimiser steps
    within backward. Returns a handle whose ``remove()`` removes the hook.

    Raises:
        AutogradError: the tensor does not require grad, or is the result of an op.
    """
    if self.grad_fn is not None or not self._requires_grad:
        given = "a result of an op" if self.grad_fn is not None else "one that does not require grad"
        raise AutogradError(f"register_post_accumulate_grad_hook: only leaves have a .grad; this tensor {self.aval} is {given}")
    return self.register_hook(PostAccumulateHook(hook))


def run_post_accumulate_hooks(leaf: Tensor) -> None:
    for hook in tuple(leaf._hooks or ()):
        if isinstance(hook, PostAccumulateHook):
            hook(leaf)


def run_hooks(hooks: Sequence[Hook] | None, g: Tensor) -> Tensor:
    """``g`` after all hooks. Raises ShapeError if one changes its shape."""
    for hook in tuple(hooks or ()):
        if isinstance(hook, PostAccumulateHook):
            continue
        new = hook(g)
        if new is None:
            continue
        if not isinstance(new, Tensor) or new.shape != g.shape:
            returned = new.aval if isinstance(new, Tensor) else type(new).__name__
            raise ShapeError(
                f"a hook must return None or a gradient like the one it got, {g.aval}; it returned {returned}"
            )
        g = new
    return g


def accumulate(tensor: Tensor, g: Tensor) -> None:
    """Add ``g`` to the .grad of ``tensor``: in its memory, as in PyTorch, unless the sum has a history.

    Threads may share a leaf.
    """
    interpreter = current_interpreter.get()
    with _accumulating:
        before = interpreter.read_grad(tensor)
        if before is None:
            interpreter.write_grad(tensor, g)
        elif before._requires_grad or g._requires_grad or before.dtype != g.dtype or before.device != g.device:
            interpreter.write_grad(tensor, add(before, g))
        else:
            update(add, before, g)


def own_array(held: list[np.ndarray[Any, Any]], others: int = 0) -> np.ndarray[Any, Any]:
    """`own` of an array, which may have ``others`` more owners."""
    alone = has_owners(held, others) and held[0].flags.writeable
    return held[0] if alone and (held[0].base is None or is_alone_in_block(held[0]) or _has_whole(held[0])) else _copied(held[0])


def _has_whole(view: np.ndarray[Any, Any]) -> bool:
    """Whether ``view`` is all of an array that nothing else refers to: one in another shape or order of axes."""
    bases = [view.base]
    whole = type(bases[0]) is np.ndarray and bases[0].base is None and bases[0].nbytes == view.nbytes
    return whole and has_owners(bases, 1)


def _copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return numpy_errors.quietly(array.copy, "K")  # type: ignore[no-any-return]


def own(held: list[Tensor]) -> Tensor:
    """The tensor in ``held`` as a ``.grad`` that may be changed in place, because nothing else shares its memory.

    A vjp may return its incoming gradient, or a broadcast view of it, for several operands.
    Reference counts show whether the list is the only owner; if in doubt, the memory is copied. So
    the caller must have no other name for the tensor.
    """
    alone = has_owners(held)
    g = held[0]
    data = [current_interpreter.get().current(g)]
    if isinstance(data[0], DeviceArray):
        data[0] = data[0].copy()
    elif isinstance(data[0], np.ndarray):
        data[0] = own_array(data, 1) if alone else _copied(data[0])  # the tensor owns it as well
    new = Tensor(data[0], g._aval)
    if g._requires_grad:
        new.grad_fn, new._out_index, new._requires_grad = g.grad_fn, g._out_index, True
    return new
