"""The tape's record of one executed op: only the values that backward needs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.context import anomaly_detection, current_interpreter, grad_enabled, open_tapes
from jitgrad.core.errors import AutogradError, GraphFreedError, InPlaceError
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import CallPlace, Origin, origin_of, place_of_call, stack_text
from jitgrad.core.plan import OpPlan, Recipe, recipe
from jitgrad.core.storage import Storage
from jitgrad.core.tensor import Tensor

_sequence = count()


def next_sequence() -> int:
    """A number between those of the nodes recorded so far and those of later nodes."""
    return next(_sequence)


# The destination of a gradient: a result of an earlier node, a leaf tensor, or nothing.
Edge = tuple["Node", int] | Tensor | None
History = tuple[Any, int, bool]  # of a tensor: its grad_fn, which result of that it is, whether it requires grad


def edge_of(x: Any) -> Edge:
    """The destination of the gradient of operand ``x``."""
    if not isinstance(x, Tensor) or not x._requires_grad:
        return None
    return x if x.grad_fn is None else (x.grad_fn, x._out_index)


# A tensor saved for backward, without its node, which would form a cycle: its data, and its memory with the number of
# changes at that time. A tuple, for it takes a third of the time to make.
Saved = tuple[Any, Storage, int]


def saved(x: Tensor) -> Saved:
    """``x`` as a node saves it."""
    memory = x._storage
    return current_interpreter.get().current(x), memory, memory.version


class Node:
    """One executed op: the operands that backward reads, and the destinations of all gradients.

    ``saved`` has a `Saved` for each operand that backward reads, the Aval of any other tensor, and numbers as
    they are; ``saved_outs`` likewise of the results.
    """

    __slots__ = (
        "__weakref__",
        "_place",
        "attrs",
        "avals",
        "edges",
        "hooks",
        "op",
        "out_avals",
        "passed",
        "recipe",
        "retained",
        "saved",
        "saved_outs",
        "sequence",
        "stack",
    )

    op: OpDef
    attrs: Mapping[str, Any]
    edges: tuple[Edge, ...] | None
    avals: tuple[Aval | None, ...]  # of operands, where these are tensors
    out_avals: tuple[Aval, ...]
    sequence: int
    stack: str
    hooks: dict[int, list[Callable[[Tensor], Tensor | None]]] | None
    retained: dict[int, weakref.ref[Tensor]] | None  # results whose gradient goes into .grad
    recipe: Recipe | None  # None: backward calls the vjp
    saved: Sequence[Any]
    saved_outs: tuple[Any, ...]
    _place: CallPlace
    passed: bool  # set by `release`, so that recording need not

    def __init__(
        self,
        op: OpDef,
        operands: tuple[Any, ...],
        attrs: Mapping[str, Any],
        outs: tuple[Tensor, ...],
        edges: tuple[Edge, ...],
        needs: Recipe | None = None,
    ) -> None:
        """``needs``: what backward reads, where that is known."""
        self.op = op
        self.attrs = attrs
        self.edges = edges
        self.avals = tuple([x.aval if isinstance(x, Tensor) else None for x in operands])
        self.out_avals = tuple([out.aval for out in outs])
        self.sequence = next(_sequence)
        self._place = Origin.capture()
        self.stack = stack_text() if anomaly_detection.get() else ""
        self.hooks = self.retained = self.recipe = None
        needs = needs or recipe(op, tuple([edge is not None for edge in edges])) or Recipe(None, (), False)
        needed = needs.needed
        self.saved = [
            x if aval is None else saved(x) if k in needed else aval
            for k, (x, aval) in enumerate(zip(operands, self.avals, strict=True))
        ]
        self.saved_outs = tuple([saved(out) for out in outs]) if needs.needs_out else self.out_avals

    @property
    def origin(self) -> Origin:
        """The user's line of the op."""
        return origin_of(self._place)

    def hooks_of(self, index: int) -> list[Callable[[Tensor], Tensor | None]]:
        """The list of hooks on result ``index``."""
        if self.hooks is None:
            self.hooks = {}
        return self.hooks.setdefault(index, [])

    def retain_grad(self, tensor: Tensor) -> None:
        """Let backward store the gradient of ``tensor``, a result of this node, in ``.grad``."""
        if self.retained is None:
            self.retained = {}
        self.retained[tensor._out_index] = weakref.ref(tensor)

    def unpack(self) -> tuple[list[Any], Any]:
        """(operands, out) for the vjp, with an Aval for each that it does not read."""
        if self.edges is None:
            raise self.freed()
        operands = [
            self._unpacked(s, aval, edge) if type(s) is tuple else s
            for s, aval, edge in zip(self.saved, self.avals, self.edges, strict=True)
        ]
        if self.saved_outs and type(self.saved_outs[0]) is tuple and self._repeats():
            memory, version = self.saved_outs[0][1:]
            if memory.version != version:
                return operands, self._result_again(operands)
        outs = tuple(
            self._unpacked(s, self.out_avals[k], (self, k)) if type(s) is tuple else s
            for k, s in enumerate(self.saved_outs)
        )
        return operands, outs if self.op.multiple else outs[0]

    def raw_result(self) -> Any:
        """The data of the only result, which has been changed. Raises what `unpack` does."""
        return self.unpack()[1]._data

    def _repeats(self) -> bool:
        """Whether all operands are kept, so that a result that was changed can be computed again: of `max` and pooling."""
        return self.op.kind in (Kind.ELEMENTWISE, Kind.REDUCE) and not any(isinstance(s, Aval) for s in self.saved)

    def _result_again(self, operands: list[Any]) -> Tensor:
        out: Tensor = current_interpreter.get().apply(self.op, tuple(operands), self.attrs)
        out.grad_fn, out._out_index, out._requires_grad = self, 0, True
        return out

    def _unpacked(self, kept: Saved, aval: Aval | None, edge: Edge) -> Tensor:
        """The saved tensor. Raises InPlaceError if its memory has changed since."""
        data, memory, version = kept
        if memory.version != version and (failure := self.changed(memory, aval)) is not None:
            raise failure
        if isinstance(edge, Tensor) and edge._storage is memory:
            return edge
        tensor = Tensor(data, aval, memory)
        if type(edge) is tuple:  # else a copy of a leaf that a compiled call has changed since
            tensor.grad_fn, tensor._out_index = edge
            tensor._requires_grad = True
        return tensor

    def changed(self, memory: Storage, aval: Aval | None) -> InPlaceError | None:
        """The error of `unpack` for a saved tensor whose ``memory`` has changed; None if it has no elements."""
        if aval is not None and 0 in aval.shape:
            return None
        return InPlaceError(
            f"backward of {self.op} at {self.origin.full()} needs a tensor {aval} that was changed in place "
            f"at {memory.changed_at.full()}. Use an out-of-place operation there (x = x + y, not x += y), "
            "or .clone() the tensor first."
        )

    def freed(self) -> GraphFreedError:
        """The error of a second backward through this node."""
        return GraphFreedError(
            f"backward through {self.op} at {self.origin.full()} a second time: the first one freed the graph. "
            "Pass retain_graph=True to the first one."
        )

    def failure(self) -> AutogradError | None:
        """The error of `unpack`."""
        if self.edges is None:
            return self.freed()
        outs = () if self._repeats() else self.saved_outs
        for s, aval in zip((*self.saved, *outs), (*self.avals, *self.out_avals), strict=False):
            if type(s) is tuple and s[1].version != s[2] and (failure := self.changed(s[1], aval)) is not None:
                return failure
        return None

    def release(self) -> None:
        """Free the saved tensors; a second backward through this node raises GraphFreedError.

        A node that has none, such as that of a cast, a view or a sum, stays as it is: what it was made of is not kept
        for backward, so several losses may share it, as in torch.
        """
        if (self.saved is self.avals or not _has_tensors(self.saved)) and (
            self.saved_outs is self.out_avals or not _has_tensors(self.saved_outs)
        ):
            self.passed = True
            return
        self.saved = self.saved_outs = ()
        self.edges = None
        if self.recipe is None:  # else the plan's
            self.attrs = _NO_ATTRS

    @property
    def is_used_up(self) -> bool:
        """Whether a backward has passed and freed the graph, of which this node may have had nothing to free."""
        return self.edges is None or hasattr(self, "passed")

    def __repr__(self) -> str:
        return f"<{self.op} at {self.origin}>"


_NO_ATTRS: Mapping[str, Any] = {}


def _has_tensors(saved: Sequence[Any]) -> bool:
    """Whether ``saved``, of a node, has a `Saved` in it."""
    return tuple in map(type, saved)


def record(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any], result: Any) -> None:
    """Give the results of ``op`` a node if any operand requires grad and grad mode is on."""
    for x in operands:
        if isinstance(x, Tensor) and x._requires_grad:
            break
    else:
        return
    if op.vjp is None or not grad_enabled.get():
        return
    edges = tuple([edge_of(x) for x in operands])
    needs = recipe(op, tuple([edge is not None for edge in edges]))
    if needs is None:
        return
    outs: tuple[Tensor, ...] = tuple(result) if op.multiple else (result,)
    node = None
    for k, out in enumerate(outs):
        if out.aval.dtype.kind in "fc":  # as `is_differentiable`
            node = node or Node(op, operands, attrs, outs, edges, needs)
            out.grad_fn, out._out_index, out._requires_grad = node, k, True
    if node is None:
        return
    for tape in open_tapes.get():
        tape.record(node, operands)


def record_planned(plan: OpPlan, operands: tuple[Any, ...], out: Tensor, depth: int) -> None:
    """`record` of an op that ran by ``plan``; ``depth``: of the first frame above this one that may be the user's."""
    if not grad_enabled.get():
        return
    edges: list[Edge] = []
    which = 1  # operands with an edge, in bits below the first
    for x in operands:
        if type(x) is Tensor and x._requires_grad:  # as `edge_of`, which would be a call for every operand
            edges.append(x if x.grad_fn is None else (x.grad_fn, x._out_index))
            which += which + 1
        else:
            edges.append(None)
            which += which
    try:
        needs = plan.recipes[which]
    except KeyError:
        needs = plan.recipes[which] = recipe(plan.op, tuple([edge is not None for edge in edges]), plan)
    if needs is None:
        return
    node = _new(Node)
    node.op = plan.op
    node.attrs = plan.attrs
    node.edges = tuple(edges)
    node.avals = plan.avals
    node.out_avals = node.saved_outs = plan.outs
    node.saved = plan.avals
    node.sequence = next(_sequence)
    node._place = place_of_call(depth + 1)
    node.stack = stack_text() if anomaly_detection.get() else ""
    node.hooks = node.retained = None
    node.recipe = needs
    if needs.needed or plan.number >= 0:
        _save(node, needs, plan, operands)
    if needs.needs_out:
        memory = out._memory or out._storage
        node.saved_outs = ((out._data, memory, memory.version),)
    out.grad_fn = node
    out._requires_grad = True
    for tape in open_tapes.get():
        tape.record(node, operands)


def _save(node: Node, needs: Recipe, plan: OpPlan, operands: tuple[Any, ...]) -> None:
    """Let ``node`` keep what backward needs of the operands."""
    number = plan.number
    kept: list[Any] = [*plan.avals]
    if number >= 0:
        kept[number] = operands[number]
    for k in needs.needed:
        if k != number:
            x = operands[k]
            memory = x._memory or x._storage
            kept[k] = x._data, memory, memory.version
    node.saved = kept


_new = object.__new__
