"""What tensors over the same memory share: the number of changes, and how views were made."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import NO_ORIGIN, CallPlace, Origin, origin_of, place_of_call

_tuple = tuple.__new__  # makes a named tuple in half the time
_NONE: Mapping[str, Any] = MappingProxyType({})
_FEW = 14  # entries among which dead ones are not looked for: that costs more than to keep them
ViewSteps = tuple[tuple[OpDef | None, Mapping[str, Any]], ...]  # view ops with their attributes; None: not by an op
DETACHED: ViewSteps = ((None, _NONE),)


class Lineage(NamedTuple):
    """The tensor that owns the memory of a view, and the view ops from it to the view.

    ``kept`` keeps the owner alive if all steps are ops. An in-place change of one view must reach
    the history of the other views through the owner, even if the owner was a temporary.
    """

    root: weakref.ref[Any]
    steps: ViewSteps
    kept: Any


def is_in_order(view: Lineage | None) -> bool:
    """Whether a tensor with the lineage ``view`` has all elements of the memory's owner, in their order."""
    while view is not None:
        if not all(op is None or op.keeps_order or op.kind is Kind.ELEMENTWISE for op, _ in view.steps):
            return False
        root = view.root()
        view = None if root is None else root._view  # a detached tensor starts a lineage of its own
    return True


class Storage:
    """The memory of a tensor and its views: its number of changes, and the place of the last one."""

    __slots__ = ("version", "changed_place", "_limit", "_sharers")

    def __init__(self) -> None:
        self.version: int = 0
        self.changed_place: CallPlace = NO_ORIGIN  # its line is looked up when it is printed
        # none while one tensor alone uses this memory
        self._sharers: list[weakref.ref[Any]] | None = None
        self._limit: int = _FEW  # of their number; then dead ones are dropped

    def bump(self, origin: Origin | None = None) -> None:
        """Count a change made at ``origin`` (None: the user's current line)."""
        self.version += 1
        self.changed_place = place_of_call(2) if origin is None else origin

    @property
    def changed_at(self) -> Origin:
        """The line of the last change."""
        return origin_of(self.changed_place)

    def share(self, parent: Any, view: Any, op: OpDef | None = None, attrs: Mapping[str, Any] = _NONE) -> None:
        """Record ``view`` as another user of this memory, made from ``parent`` by ``op`` (None: not
        by an op)."""
        self.share_through(parent, view, ((op, attrs),))

    def share_through(self, parent: Any, view: Any, through: ViewSteps) -> None:
        """`share`, made from ``parent`` by several ops, one after the other."""
        by_op = through[-1][0] is not None
        lineage = parent._view
        here = weakref.ref(parent)
        if lineage is None or lineage[1][-1][0] is None:  # a detached tensor has a history of its own
            view._view = _tuple(Lineage, (here, through, parent if by_op else None))
        else:
            view._view = _tuple(Lineage, (lineage[0], lineage[1] + through, lineage[2] if by_op else None))
        sharers = self._sharers
        if sharers is None:
            self._sharers = [here, weakref.ref(view)]
            return
        if len(sharers) >= self._limit:
            sharers = self._without_dead(sharers)
        # a tensor has one reference of this kind; that of the base is the first one
        if not sharers or (sharers[0] is not here and sharers[-1] is not here):
            sharers.append(here)
        sharers.append(weakref.ref(view))

    def share_all(self, parent: Any, views: Sequence[Any], through: Sequence[ViewSteps]) -> None:
        """`share_through` of several ``views``, each by ops of its own."""
        lineage = parent._view
        here = weakref.ref(parent)
        if lineage is None or lineage[1][-1][0] is None:
            lineage = _tuple(Lineage, (here, (), parent))
        root, before, kept = lineage
        for view, steps in zip(views, through, strict=True):
            view._view = _tuple(Lineage, (root, before + steps, kept))
        sharers = self._sharers
        if sharers is None:
            sharers = self._sharers = []
        elif len(sharers) >= self._limit:
            sharers = self._without_dead(sharers)
        if not sharers or (sharers[0] is not here and sharers[-1] is not here):
            sharers.append(here)
        sharers += map(weakref.ref, views)

    def _without_dead(self, sharers: list[weakref.ref[Any]]) -> list[weakref.ref[Any]]:
        """The references of ``sharers`` to tensors that exist, kept from now on."""
        self._sharers = alive = list({id(t): ref for ref in sharers if (t := ref()) is not None}.values())
        self._limit = max(2 * len(alive), _FEW)
        return alive

    def others(self, *tensors: Any) -> list[Any]:
        """The live tensors over this memory, without ``tensors``."""
        alive = {id(t): t for ref in self._sharers or () if (t := ref()) is not None and t._storage is self}
        return [t for t in alive.values() if all(t is not tensor for tensor in tensors)]
