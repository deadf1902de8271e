"""Whether a reshape shares memory in eager execution.

NumPy gives a view where the layout allows one and else a copy. A trace has no layouts, and needs
the answer only if the function changes one of the two in place while the other is alive. Then it
supposes that its inputs are C-contiguous, which later calls check, and follows the ops from there.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.errors import ReadOnlyError, TraceError
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin
from jitgrad.core.storage import Storage
from jitgrad.core.tensor import Tensor
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.movement import BROADCAST_TO, PERMUTE_DIMS, RESHAPE


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """``tensor = op(parent, **attrs)`` shares memory with ``parent``: a write to one shows in the other."""

    tensor: weakref.ref[Tensor]
    parent: Tensor
    op: OpDef
    attrs: Mapping[str, Any]


def repeats(views: Sequence[View]) -> bool:
    """Whether what ``views`` lead to is a broadcast, or a view of one, which must not be written to."""
    return any(view.op is BROADCAST_TO for view in views)


def may_copy(view: View) -> bool:
    """Whether ``view`` is a reshape that copies in some layout: not one that splits axes, or adds and drops those of length 1."""
    if view.op is not RESHAPE or 0 in view.parent.shape:
        return False
    parts = [n for n in view.attrs["shape"] if n != 1]
    for length in view.parent.shape:
        while length > 1 and parts and length % parts[0] == 0:
            length //= parts.pop(0)
        if length > 1:
            return True
    return False


class ReshapeViews:
    """The reshapes of one trace, and the inputs that are supposed to be C-contiguous for them."""

    def __init__(self) -> None:
        self.contiguous: set[Value] = set()
        # with the line and what the memory held before its first change, by the id of both storages
        self._made: dict[int, list[tuple[View, Origin, Value]]] = {}
        self._first: dict[int, tuple[Storage, Value]] = {}  # contents before the first change, likewise
        # with their contents and those of what was reshaped, by the id of the copy
        self.copies: dict[int, tuple[View, Value, Value]] = {}
        self._producers: dict[Value, TraceNode] = {}
        self._indexed = 0
        self._earlier: dict[Value, Value] = {}  # contents after changes in place, and those that got the layout

    def shares(self, view: View, earlier: Sequence[View], root: Value) -> bool:
        """Whether eager gives a view for the reshape ``view``, after the views ``earlier`` of a
        C-contiguous tensor, whose contents are ``root``."""
        if not may_copy(view):
            return True
        storage, made = view.parent._storage, view.tensor()
        root = self.first_contents(storage, root)
        for each in (storage, made._storage if made is not None else storage):
            self._made.setdefault(id(each), []).append((view, Origin.capture(), root))
        if not earlier:
            return True
        array = np.empty(earlier[0].parent.shape, np.uint8)
        shown = array
        for step in (*earlier, view):
            if step.op is not STOP_GRADIENT:
                shown = step.op.eager(shown, **step.attrs)
        return bool(np.may_share_memory(array, shown))

    def first_contents(self, storage: Storage, contents: Value) -> Value:
        """What ``storage`` held when it got its layout, which changes in place keep: ``contents``, if there are none."""
        return self._first.get(id(storage), (storage, contents))[1]

    def before_change(self, target: Tensor, above: Sequence[View], root: Value, nodes: Sequence[TraceNode]) -> None:
        """An in-place change of ``target``, to which the views ``above`` lead; the tensor that has its memory holds ``root``.

        Raises:
            ReadOnlyError: it is part of a broadcast.
            TraceError: a reshape of the same memory is alive, and whether it is a view is unknown.
        """
        if any(view.op is BROADCAST_TO for view in above):
            raise ReadOnlyError.of(target.aval)
        self._first.setdefault(id(target._storage), (target._storage, root))
        for view, origin, holder in self._made.get(id(target._storage), ()):
            if view.tensor() is None:
                continue
            sources = self.layout_sources(holder, nodes)
            if sources is None:
                raise TraceError(
                    f"in-place change at {Origin.capture().full()} of a tensor {target.aval}, of which {origin.full()} made a "
                    f"reshape: whether that shares its memory depends on a transposed layout, which @jit does not follow. "
                    "Reshape a .clone(), or write t[...] = value before the reshape."
                )
            self.contiguous |= sources

    def after_change(self, storage: Storage, contents: Value) -> None:
        """A change in place gave ``storage`` these ``contents``, which have the layout that it had."""
        self._earlier[contents] = self.first_contents(storage, contents)

    def layout_sources(self, root: Value, nodes: Sequence[TraceNode]) -> set[Value] | None:
        """The inputs whose layout decides that of ``root``; None if it need not be C-contiguous."""
        for new in nodes[self._indexed :]:
            self._producers.update((out, new) for out in new.outs)
        self._indexed = len(nodes)
        found: set[Value] = set()
        pending, seen = [root], {root}
        while pending:
            value = pending.pop()
            value = self._earlier.get(value, value)
            if (node := self._producers.get(value)) is None:
                found.add(value)
            elif node.op in (PERMUTE_DIMS, BROADCAST_TO):
                return None
            elif not node.op.contraction and node.op is not RESHAPE and sum(n > 1 for n in value.aval.shape) > 1:
                operands = [x for x in node.ins if isinstance(x, Value) and x not in seen]
                pending += operands
                seen.update(operands)
        return found
