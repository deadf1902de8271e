"""Which outputs of the program the results of a trace are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import optree

from jitgrad.autograd.broken_history import HistoryNotKept, awaiting_gradient, reaches
from jitgrad.compiler.input_source import InputSource
from jitgrad.compiler.reshape_views import repeats
from jitgrad.compiler.runtime_number import RuntimeNumber
from jitgrad.compiler.tracer import Trace
from jitgrad.core.errors import UnguardableError
from jitgrad.core.ir import Atom, Value
from jitgrad.core.tape_node import Edge, edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.guards.writes import RepeatedStore
from jitgrad.jit.output_views import SharedMemory, SourceViews, flows, freed_history, is_leaf, shared_memory
from jitgrad.jit.records import is_record
from jitgrad.jit.result_check import ResultParts
from jitgrad.jit.trace_result import GradientChange, Result


class ResultOutputs:
    """The outputs of a trace so far.

    Attributes:
        outputs: their atoms.
        starts: where gradients of them go, by their positions.
    """

    def __init__(self, trace: Trace, parts: ResultParts, copied: Collection[int]) -> None:
        """Views of arguments at the positions ``copied`` are outputs, too."""
        self.outputs: list[Atom] = []
        self.starts: dict[int, Edge] = {}
        self._trace = trace
        self._parts = parts
        self._source_views = SourceViews(trace, copied)
        self._gradients: list[tuple[InputSource | int, Tensor | None]] = []
        self._positions: dict[int, int] = {}  # of tensors among the outputs, by id
        self._shared: dict[int, SharedMemory] = {}  # the results that share memory with another, by id
        self._views: dict[int, Result] = {}  # of tensors that are views, by id: one that is returned twice is one object

    def results_of(self, result: Any, stores: Sequence[RepeatedStore]) -> tuple[tuple[Result, ...], Any]:
        """One for each leaf of ``result`` and of what ``stores`` store, and their structure.

        Computed ints become Python numbers again.
        """
        leaves, treedef = self._parts.flatten(result)
        _check_new_leaves(self._trace, leaves)
        _check_hooks(self._trace, leaves)
        self._gradients = _gradients_of(self._trace, leaves)
        self._shared = shared_memory(self._trace, [*leaves, *[grad for _, grad in self._gradients]])
        numbers = _numbers(self._trace, stores, len(leaves))
        pairs = enumerate(leaves)
        return tuple([self._number(x) if k in numbers or type(x) is RuntimeNumber else self._leaf(x) for k, x in pairs]), treedef

    def _number(self, x: Any) -> Result:
        """The result for a number that depends on numbers among the arguments."""
        self.outputs.append(x.value if type(x) is RuntimeNumber else self._trace.current(x))
        return Result(output=len(self.outputs) - 1, number=True)

    def _leaf(self, x: Any) -> Result:
        """For a leaf of what the function returns or stores."""
        trace = self._trace
        if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
            x = trace.constant(x)
        if is_record(type(x)):
            raise UnguardableError(
                f"@jit function {trace.name!r} returns a {type(x).__name__}, and a call cannot tell it from an argument: "
                "return its parts as a tuple or a dict"
            )
        if not isinstance(x, Tensor):
            return Result(value=x, copied=self._parts.check(x))
        if id(x) in trace.lifted or type(x._data) is not Value:
            return Result(source=trace.source_of(x))
        if id(x) not in self._views and (view := self._view(x)) is not None:
            self._views[id(x)] = view
        if id(x) in self._views:
            return self._views[id(x)]
        read_only = repeats(trace.views_above(x))
        output = self._tensor(x)
        if (freed := freed_history(x)) is not None:
            freed.hooks = freed.retained = None  # of traced tensors, which wait for nothing
        return Result(output=output, weak=x.aval.weak, new_leaf=is_leaf(x), read_only=read_only, freed=freed)

    def _view(self, x: Tensor) -> Result | None:
        """The result for a view of a tensor of the caller or of another result."""
        if (found := self._source_views.find(x)) is not None:
            return Result(source=found.source, through=found.through, view=found.rest)
        if (shared := self._shared.get(id(x))) is not None:
            return Result(base=self._tensor(shared.owner), view=shared.view, reshaped=shared.reshaped)
        return None

    def _tensor(self, x: Tensor) -> int:
        """The output that is the new tensor ``x``."""
        if id(x) in self._positions:
            return self._positions[id(x)]
        atom = self._trace.current(x)
        if not flows(x):
            return self._add(x, atom)
        output = self._add(x, self._trace.with_history(atom, x))
        self.starts[output] = edge_of(x)
        return output

    def _add(self, x: Tensor, atom: Atom) -> int:
        self._positions[id(x)] = len(self.outputs)
        self.outputs.append(atom)
        return self._positions[id(x)]

    def new_data(self, atom: Atom, edge: Edge) -> int:
        """The output that a tensor from outside gets, whose gradient goes to ``edge``, or that a call compares.

        It is listed again even if a result is the same value: the memory must not be shared.
        """
        self.outputs.append(atom)
        if edge is not None:
            self.starts[len(self.outputs) - 1] = edge
        return len(self.outputs) - 1

    def gradients(self) -> tuple[GradientChange, ...]:
        """The changes of the gradients of tensors that exist before the call, and of results; call it last."""
        return tuple([GradientChange(target, None if grad is None else self._gradient(grad)) for target, grad in self._gradients])

    def _gradient(self, x: Tensor) -> Result:
        """For the gradient ``x`` of a tensor. A call does not keep its history, unless it is a result."""
        if not flows(x) or id(x) in self._views:
            return self._leaf(x)
        if id(x) in self._positions:
            return Result(output=self._positions[id(x)])
        place = "" if x.grad_fn is None else f" of {x.grad_fn.origin.full()}"
        failure = f"@jit function {self._trace.name!r} leaves a .grad {x.aval}{place} with a history (create_graph=True)"
        return Result(output=self._add(x, self._trace.current(x)), freed=HistoryNotKept(x, failure))


def _gradients_of(trace: Trace, leaves: Sequence[Any]) -> list[tuple[InputSource | int, Tensor | None]]:
    """The tensors whose gradients the function has changed, by their sources or their numbers among ``leaves``."""
    changed = list[tuple[InputSource | int, Tensor | None]]()
    for tensor, grad in trace.grads.values():
        before = trace.grads_read.get(id(tensor))
        if before is None or grad is not before[1]:
            changed.append((trace.source_of(tensor), grad))
    seen = set[int]()
    for k, x in enumerate(leaves):
        if isinstance(x, Tensor) and type(x._data) is Value and id(x) not in trace.lifted and id(x) not in seen:
            seen.add(id(x))
            if x._grad is not None:
                changed.append((k, x._grad))
    return changed


def _check_new_leaves(trace: Trace, leaves: Sequence[Any]) -> None:
    """No result, and no tensor that the function changes, is computed from a new leaf that is a result: gradients of the
    program go to its inputs alone."""
    tensors = [x for x in leaves if isinstance(x, Tensor) and type(x._data) is Value and id(x) not in trace.lifted]
    if not (new := {id(x): x for x in tensors if is_leaf(x)}):
        return
    roots = {x.grad_fn: x.aval for x in tensors if x.grad_fn is not None}
    roots |= {edge[0]: edge[0].out_avals[edge[1]] for edge in trace.moved.values() if isinstance(edge, tuple)}
    for node, aval in roots.items():
        if (leaf := reaches([node], new, trace.since)) is not None:
            raise UnguardableError(
                f"@jit function {trace.name!r} returns or stores a new leaf {leaf.aval}, made by requires_grad_(), and a result "
                f"{aval} that {node.origin.full()} computed from it: a compiled program cannot give the gradient to that "
                "leaf. Call requires_grad_() outside and pass the tensor as an argument, or return only one of the two."
            )


def _numbers(trace: Trace, stores: Sequence[RepeatedStore], count: int) -> frozenset[int]:
    """The leaves, of ``count``, that stores put in places as Python numbers: the last leaves are those of the stores."""
    stored = optree.tree_leaves([store.value for store in stores], none_is_leaf=True)
    pairs = enumerate(stored, count - len(stored))
    return frozenset({k for k, x in pairs if isinstance(x, Tensor) and trace.stands_for_number(x)})


def _check_hooks(trace: Trace, leaves: Sequence[Any]) -> None:
    """No hook waits for a gradient that a backward pass after the call would give it: a program has no nodes for it."""
    for x in leaves:
        if not (isinstance(x, Tensor) and type(x._data) is Value and id(x) not in trace.lifted and flows(x)):
            continue
        if x.grad_fn is not None and (node := awaiting_gradient(x.grad_fn, trace.since)) is not None:
            raise UnguardableError(
                f"@jit function {trace.name!r} calls register_hook() or retain_grad() of what {node.origin.full()} computed, and "
                f"returns or stores {x.aval}, which depends on it: backward() after the call would not give it the gradient. "
                "Call backward() within the function, or return that tensor, and compute on from it outside."
            )
