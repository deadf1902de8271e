"""The tape's record of one executed op: only the values that backward needs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.context import anomaly_detection, current_interpreter, grad_enabled, open_tapes
from jitgrad.core.errors import AutogradError, GraphFreedError, InPlaceError
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin, stack_text
from jitgrad.core.storage import Storage
from jitgrad.core.tensor import Tensor

# define() examines this many operands of a variadic op. A vjp that reads the last of them reads all
# further ones.
LAST_COUNTED = 63

_sequence = count()


def next_sequence() -> int:
    """A number between those of the nodes recorded so far and those of later nodes."""
    return next(_sequence)


# The destination of a gradient: a result of an earlier node, a leaf tensor, or nothing.
Edge = tuple["Node", int] | Tensor | None


def edge_of(x: Any) -> Edge:
    """The destination of the gradient of operand ``x``."""
    if not isinstance(x, Tensor) or not x._requires_grad:
        return None
    return x if x.grad_fn is None else (x.grad_fn, x._out_index)


class SavedTensor:
    """A tensor saved for backward, without its node, which would form a cycle."""

    __slots__ = ("aval", "data", "edge", "storage", "version")

    def __init__(self, data: Any, aval: Aval, storage: Storage, edge: Edge) -> None:
        self.data: Any = data
        self.aval: Aval = aval
        self.storage: Storage = storage
        self.version: int = storage.version
        self.edge: Edge = edge

    def failure(self, node: Node) -> InPlaceError | None:
        """The error of `unpack`, if its memory has changed since."""
        if self.storage.version == self.version or 0 in self.aval.shape:
            return None
        return InPlaceError(
            f"backward of {node.op} at {node.origin.full()} needs a tensor {self.aval} that was changed in place "
            f"at {self.storage.changed_at.full()}. Use an out-of-place operation there (x = x + y, not x += y), "
            "or .clone() the tensor first."
        )

    def unpack(self, node: Node, edge: Edge) -> Tensor:
        """The saved tensor. Raises InPlaceError if its memory has changed since."""
        if self.storage.version != self.version and (failure := self.failure(node)) is not None:
            raise failure
        if isinstance(edge, Tensor) and edge._storage is self.storage:
            return edge
        tensor = Tensor(self.data, self.aval, self.storage)
        if type(edge) is tuple:  # else a copy of a leaf that a compiled call has changed since
            tensor.grad_fn, tensor._out_index = edge
            tensor._requires_grad = True
        return tensor


def _saving(op: OpDef, edges: tuple[Edge, ...]) -> tuple[tuple[bool, ...], bool] | None:
    """Which operands the vjp functions to be run read, and whether these read the results; None: there are none."""
    vjp = op.vjp
    if not isinstance(vjp, tuple):
        saves = op.saves[0]
        if op.variadic and LAST_COUNTED in saves:
            saves = saves.union(range(LAST_COUNTED, len(edges)))
        return tuple([k in saves for k in range(len(edges))]), op.saves_out[0]
    used = [k for k, edge in enumerate(edges) if edge is not None and vjp[k] is not None]
    needed = frozenset[int]().union(*[op.saves[k] for k in used])
    return (tuple([k in needed for k in range(len(edges))]), any([op.saves_out[k] for k in used])) if used else None


class Node:
    """One executed op: the operands that backward reads, and the destinations of all gradients."""

    __slots__ = (
        "__weakref__",
        "attrs",
        "edges",
        "hooks",
        "op",
        "origin",
        "out_avals",
        "retained",
        "saved",
        "saved_outs",
        "sequence",
        "stack",
    )

    def __init__(
        self,
        op: OpDef,
        operands: tuple[Any, ...],
        attrs: Mapping[str, Any],
        outs: tuple[Tensor, ...],
        edges: tuple[Edge, ...],
        saving: tuple[tuple[bool, ...], bool] | None = None,
    ) -> None:
        """``saving``: which operands backward reads, and whether it reads the results, where that is known."""
        self.op: OpDef = op
        self.attrs: Mapping[str, Any] = attrs
        self.edges: tuple[Edge, ...] | None = edges
        self.out_avals: tuple[Aval] | tuple[Aval, ...] = (outs[0].aval,) if len(outs) == 1 else tuple([out.aval for out in outs])
        self.sequence: int = next(_sequence)
        self.origin: Origin = Origin.capture()
        self.stack: str = stack_text() if anomaly_detection.get() else ""
        self.hooks: dict[int, list[Callable[[Tensor], Tensor | None]]] | None = None
        # results whose gradient goes into .grad
        self.retained: dict[int, weakref.ref[Tensor]] | None = None
        needed, needs_out = saving or _saving(op, edges) or ((False,) * len(edges), False)
        saved: list[Any] = []
        for x, edge, need in zip(operands, edges, needed, strict=True):
            if not isinstance(x, Tensor):
                saved.append(x)
            elif need:
                saved.append(SavedTensor(current_interpreter.get().current(x), x.aval, x._storage, edge))
            else:
                saved.append(x._aval or x.aval)
        self.saved: tuple[Any, ...] = tuple(saved)
        self.saved_outs: tuple[Any, ...] = self.out_avals
        if needs_out:
            self.saved_outs = tuple([SavedTensor(out._data, out.aval, out._storage, None) for out in outs])

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
        operands = [s.unpack(self, s.edge) if isinstance(s, SavedTensor) else s for s in self.saved]
        outs = tuple(
            s.unpack(self, (self, k)) if isinstance(s, SavedTensor) else s for k, s in enumerate(self.saved_outs)
        )
        return operands, outs if self.op.multiple else outs[0]

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
        failures = [s.failure(self) for s in (*self.saved, *self.saved_outs) if isinstance(s, SavedTensor)]
        return next((failure for failure in failures if failure is not None), None)

    def release(self) -> None:
        """Free the saved tensors; a second backward through this node raises GraphFreedError."""
        self.saved = self.saved_outs = ()
        self.edges = None
        self.attrs = {}

    def __repr__(self) -> str:
        return f"<{self.op} at {self.origin}>"


def record(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any], result: Any) -> None:
    """Give the results of ``op`` a node if any operand requires grad and grad mode is on."""
    for x in operands:
        if isinstance(x, Tensor) and x._requires_grad:
            break
    else:
        return
    if op.vjp is None or not grad_enabled.get():
        return
    found: list[Edge] = []
    which = 1  # operands with an edge, in bits below the first
    for x in operands:
        if isinstance(x, Tensor) and x._requires_grad:  # as `edge_of`, which would be a call for every operand
            found.append(x if x.grad_fn is None else (x.grad_fn, x._out_index))
            which += which + 1
        else:
            found.append(None)
            which += which
    edges = tuple(found)
    try:
        saving = op.saved[which]
    except KeyError:
        saving = op.saved[which] = _saving(op, edges)
    if saving is None:
        return
    outs: tuple[Tensor, ...] = tuple(result) if op.multiple else (result,)
    node = None
    for k, out in enumerate(outs):
        if out.aval.dtype.kind in "fc":  # as `is_differentiable`
            node = node or Node(op, operands, attrs, outs, edges, saving)
            out.grad_fn, out._out_index, out._requires_grad = node, k, True
    if node is None:
        return
    for tape in open_tapes.get():
        tape.record(node, operands)
