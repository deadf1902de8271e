"""Records one turn of a loop as a graph, within the trace that has the loop."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.autograd.replaced_gradient import replaces_gradient
from jitgrad.compiler.nested_trace import NestedTrace
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.reshape_views import View, repeats
from jitgrad.compiler.runtime_number import RuntimeNumber, holds
from jitgrad.core.aval import Aval
from jitgrad.core.context import Interpreter, current_interpreter, grad_enabled
from jitgrad.core.errors import TraceError
from jitgrad.core.ir import Atom, Graph, Literal, Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tape_node import edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import ABS, ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SQUARE, SUBTRACT
from jitgrad.ops.creation import COPY
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.indexing import INDEX_GET, TAKE
from jitgrad.ops.rounding import FLOOR_DIVIDE, REMAINDER
from jitgrad.ops.transcendental import INTEGER_POW, POW


class NotRepeatableError(TraceError):
    """A turn does more than compute its results, or decides by values: the loop must run in Python."""


@dataclass(frozen=True, eq=False, slots=True)
class ResultMemory:
    """The tensor that has the memory of a result of a turn, and whether the turn made it.

    ``owner`` is None for a view of what the turn was given or read from outside, and for a broadcast, which is read-only.
    """

    owner: Tensor | None
    made: bool


@dataclass(frozen=True, eq=False, slots=True)
class RecordedBody:
    """The graph of a turn, the constants that it reads from outside, which results require grad, and whose memory they have."""

    graph: Graph
    constants: tuple[Any, ...]
    require_grad: tuple[bool, ...]
    memory: tuple[ResultMemory, ...]


_LARGEST = 1 << 53  # floats hold all ints below
_BOUNDS: Mapping[OpDef, Callable[..., Any]] = {
    ADD: operator.add,
    SUBTRACT: operator.add,
    MULTIPLY: operator.mul,
    NEGATIVE: lambda a: a,
    ABS: lambda a: a,
    FLOOR_DIVIDE: lambda a, b: a + b + 1,
    REMAINDER: lambda a, b: a + b,
    SQUARE: lambda a: a * a,
    **dict.fromkeys((POW, INTEGER_POW), lambda a, b: a**b if b < 64 else _LARGEST),
    MAXIMUM: max,
    MINIMUM: max,
}

def _is_count(atom: Atom) -> bool:
    return isinstance(atom, Literal) and type(atom.value) is int and atom.value >= 0


_COPIES = (COPY, STOP_GRADIENT)
_READS = (TAKE, INDEX_GET)
_POWERS = (POW, INTEGER_POW)
_RAISING = (DIVIDE, FLOOR_DIVIDE, REMAINDER, *_POWERS)  # Python's raise for some numbers


class BodyTrace(NestedTrace):
    """Records a turn, with the histories of what it computes."""

    def __init__(self, name: str, outer: Interpreter) -> None:
        super().__init__(name, outer)
        self.refused: bool = False  # whether it raised, which the function may have caught
        self.bounds: dict[Atom, int] = {}  # of the absolute values of ints that Python computes exactly in eager execution

    def result(self, tensor: Tensor) -> Atom:
        """The atom of a result, from which gradients flow as they do from ``tensor`` on the tape."""
        atom: Atom = self.current(tensor)
        if not grad_enabled.get():
            return atom
        return self.flowing(atom, edge_of(tensor)) if tensor._requires_grad else self._cut(atom)

    def emit(
        self, op: OpDef, atoms: tuple[Atom, ...], expected: Aval | tuple[Aval, ...], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        outs = super().emit(op, atoms, expected, attrs)
        if not self.bounds or self.bounds.keys().isdisjoint(atoms):
            return outs
        self._check_range(op, atoms, outs[0].aval, attrs)
        if op in _COPIES:
            self.bounds[outs[0]] = self.bounds[atoms[0]]
        elif outs[0].aval.weak:
            if op in _RAISING and (atoms[1] in self.bounds or (op in _POWERS and not _is_count(atoms[1]))):
                self._refuse_number(op)
            if outs[0].aval.dtype.kind == "i":
                self.bounds[outs[0]] = self._bound(op, atoms)
        return outs

    def _check_range(self, op: OpDef, atoms: tuple[Atom, ...], result: Aval, attrs: Mapping[str, Any]) -> None:
        """Raise NotRepeatableError if a number of Python's may not fit a dtype in which ``op`` reads or stores it."""
        read = op.dtypes([atom.aval for atom in atoms], **attrs)[0] if op.kind is Kind.ELEMENTWISE else ()
        limits = [dtype for dtype in (*read, result.dtype) if dtype.kind in "iu"]
        for atom in self.bounds.keys() & {*atoms}:
            if not all([holds(dtype, self.bounds[atom]) for dtype in limits]):
                self._refuse_number(op)

    def _bound(self, op: OpDef, atoms: tuple[Atom, ...]) -> int:
        """Of a number that Python computes in eager execution. Raises NotRepeatableError if int64 may not hold it."""
        bounds = [self.bounds[a] if a in self.bounds else abs(a.value) if isinstance(a, Literal) else _LARGEST for a in atoms]
        bound = _BOUNDS[op](*bounds) if op in _BOUNDS and not any(isinstance(b, complex) for b in bounds) else _LARGEST
        if not bound < _LARGEST:
            self._refuse_number(op)
        return int(bound) + 1

    def _refuse_number(self, op: OpDef) -> None:
        self.refused = True
        raise NotRepeatableError(f"{op.name} of the number of a turn may raise, or be too large")

    # --- views -------------------------------------------------------------------------------------------------------

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        out = super().apply(op, operands, attrs)
        if op in _READS and type(operands[0]) is Tensor and any(map(self._is_count_of_turn, operands[1:])):
            self.remember_view(View(weakref.ref(out), operands[0], op, attrs))  # as x[3] is one in eager execution
        return out

    def _is_count_of_turn(self, x: Any) -> bool:
        return type(x) is Tensor and x._data in self.bounds

    def _propagate(self, changed: Tensor) -> None:
        if any(view.op in _READS for view in self.views.get(id(changed._storage), ())):
            self.refused = True
            raise NotRepeatableError("a turn changes an element x[i], or what has it")
        super()._propagate(changed)

    # --- questions for the class of a number, which is Python's in eager execution ------------------------------------

    def like_number(self, tensor: Tensor) -> Any:
        return tensor.dtype.type(0).item() if self.stands_for_number(tensor) else None

    def need_class(self, tensor: Tensor | None) -> None:
        self.refused |= tensor is not None or len(self.numbers) > 1
        self.orders.ask_class()

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
        if not self._made(tensor):
            self.refused = True
            raise NotRepeatableError("a turn changes tensors in place, or gradients")

    def _made(self, tensor: Tensor) -> bool:
        return self.is_own(tensor) and id(tensor) not in self.lifted

    def memory_of(self, tensor: Tensor) -> ResultMemory:
        """Of a result."""
        views = self.views_above(tensor)
        owner = views[0].parent if views else tensor
        made = self._made(owner)
        return ResultMemory(None if views and (not made or repeats(views)) else owner, made)

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
    name: str, turn: Callable[[Sequence[Any]], Sequence[Any]], inputs: Sequence[tuple[Aval, bool]], numbers: range | None = None
) -> RecordedBody:
    """The graph of ``turn`` for tensors of these avals, of which those with True require grad.

    ``numbers``: what the last input may be, an int in eager execution.

    Raises NotRepeatableError, and what ``turn`` does.
    """
    trace = BodyTrace(name, current_interpreter.get())
    with trace.running():
        given = [trace.argument(k, aval, wanted) for k, (aval, wanted) in enumerate(inputs)]
        if numbers is not None:
            trace.numbers.add(given[-1]._data)
            trace.bounds[given[-1]._data] = max(abs(numbers.start), abs(numbers.stop))
        results = turn(given)
        _refuse_hooks(given, results, trace.since)
        atoms = tuple(map(trace.result, results))
        require_grad = tuple([t._requires_grad for t in results])
        memory = tuple(map(trace.memory_of, results))
    trace.refuse_effects()
    graph = eliminate_dead(trace.graph(atoms))
    read = {atom for node in graph.nodes for atom in node.ins}.union(graph.outputs)
    lifted = [v for v in graph.inputs[len(inputs) :] if v in read]
    constants = tuple([_operand(trace.contents[value]) for value in lifted])
    graph = Graph(name, (*graph.inputs[: len(inputs)], *lifted), graph.nodes, graph.outputs)
    return RecordedBody(graph, constants, require_grad, memory)


def _refuse_hooks(given: Sequence[Tensor], results: Sequence[Tensor], since: int) -> None:
    """Raise NotRepeatableError if the gradient of a turn is to call hooks, which see the gradients of each turn."""
    nodes = reachable_nodes(map(edge_of, results), since)
    if any(t._hooks for t in given) or any(node.hooks for node in nodes):
        raise NotRepeatableError("a turn registers hooks")


def _operand(x: Any) -> Any:
    return Tensor(x.value) if type(x) is RuntimeNumber else x
