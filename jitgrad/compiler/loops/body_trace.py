"""Records one turn of a loop as a graph, within the trace that has the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.autograd.replaced_gradient import replaces_gradient
from jitgrad.compiler.nested_trace import NestedTrace
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.runtime_number import RuntimeNumber
from jitgrad.core.aval import Aval
from jitgrad.core.context import Interpreter, current_interpreter, grad_enabled
from jitgrad.core.errors import TraceError
from jitgrad.core.ir import Atom, Graph, Value
from jitgrad.core.tape_node import edge_of
from jitgrad.core.tensor import Tensor


class NotRepeatableError(TraceError):
    """A turn does more than compute its results, or decides by values: the loop must run in Python."""


@dataclass(frozen=True, eq=False, slots=True)
class RecordedBody:
    """The graph of a turn, the constants that it reads from outside, and which results require grad."""

    graph: Graph
    constants: tuple[Any, ...]
    require_grad: tuple[bool, ...]


class BodyTrace(NestedTrace):
    """Records a turn, with the histories of what it computes."""

    def __init__(self, name: str, outer: Interpreter) -> None:
        super().__init__(name, outer)
        self.refused: bool = False  # whether it raised, which the function may have caught

    def result(self, tensor: Tensor) -> Atom:
        """The atom of a result, from which gradients flow as they do from ``tensor`` on the tape."""
        atom: Atom = self.current(tensor)
        if not grad_enabled.get():
            return atom
        return self.flowing(atom, edge_of(tensor)) if tensor._requires_grad else self._cut(atom)

    # --- changes of tensors that the turn was given ------------------------------------------------------------------

    def write(self, target: Tensor, value: Any) -> None:
        self._refuse(target)
        super().write(target, value)

    def rebind(self, target: Tensor, value: Value) -> None:
        self._refuse(target)  # also where a view of it is changed
        super().rebind(target, value)

    def replace(self, target: Tensor, new: Tensor) -> None:
        self._refuse(target)
        super().replace(target, new)

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        self._refuse(tensor)
        super().write_grad(tensor, grad)

    def _refuse(self, tensor: Tensor) -> None:
        """Raise NotRepeatableError unless the turn made ``tensor``."""
        if not self.is_own(tensor) or id(tensor) in self.lifted:
            self.refused = True
            raise NotRepeatableError("a turn changes tensors in place, or gradients")

    def refuse_effects(self) -> None:
        """Raise NotRepeatableError if the turn changes a tensor that it was given, or follows a value."""
        if self.refused:
            raise NotRepeatableError("a turn changes tensors in place, or gradients")
        if any(True for _ in self.decisions) or any(True for _ in self.flags.changed()):
            raise NotRepeatableError("a turn decides by values, or changes which tensors require grad")
        if any(replaces_gradient(node.op) and dict(node.attrs)["rule"].body is None for node in self.nodes):
            raise NotRepeatableError("a turn has a gradient that is traced only when it is needed")
        if self.device != "cpu":
            raise NotRepeatableError("a turn reads tensors on a device")


def record_body(
    name: str, turn: Callable[[Sequence[Any]], Sequence[Any]], inputs: Sequence[tuple[Aval, bool]]
) -> RecordedBody:
    """The graph of ``turn`` for tensors of these avals, of which those with True require grad.

    Raises NotRepeatableError, and what ``turn`` does.
    """
    trace = BodyTrace(name, current_interpreter.get())
    with trace.running():
        given = [trace.argument(k, aval, wanted) for k, (aval, wanted) in enumerate(inputs)]
        results = turn(given)
        _refuse_hooks(given, results, trace.since)
        atoms = tuple(map(trace.result, results))
        require_grad = tuple([t._requires_grad for t in results])
    trace.refuse_effects()
    graph = eliminate_dead(trace.graph(atoms))
    read = {atom for node in graph.nodes for atom in node.ins}.union(graph.outputs)
    lifted = [v for v in graph.inputs[len(inputs) :] if v in read]
    constants = tuple([_operand(trace.contents[value]) for value in lifted])
    return RecordedBody(Graph(name, (*graph.inputs[: len(inputs)], *lifted), graph.nodes, graph.outputs), constants, require_grad)


def _refuse_hooks(given: Sequence[Tensor], results: Sequence[Tensor], since: int) -> None:
    """Raise NotRepeatableError if the gradient of a turn is to call hooks, which see the gradients of each turn."""
    nodes = reachable_nodes(map(edge_of, results), since)
    if any(t._hooks for t in given) or any(node.hooks for node in nodes):
        raise NotRepeatableError("a turn registers hooks")


def _operand(x: Any) -> Any:
    return Tensor(x.value) if type(x) is RuntimeNumber else x
