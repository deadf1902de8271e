"""Runs a function turn by turn within a trace: as one loop, of which one turn is traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import optree

from jitgrad.compiler.loops.body_trace import NotRepeatableError, RecordedBody, record_body
from jitgrad.compiler.loops.carried_memory import CarriedMemory, CarriedTensors
from jitgrad.compiler.loops.counted_reads import with_slices
from jitgrad.compiler.loops.loop_op import emit_loop
from jitgrad.compiler.loops.python_state import PythonState
from jitgrad.compiler.nested_trace import NestedTrace
from jitgrad.compiler.runtime_number import INT_AVAL
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.ir import Graph
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import arange
from jitgrad.ops.movement import slice
from jitgrad.ops.turns import TurnResults, Turns, trace_turns_by

_ATTEMPTS = 3  # a carry may have other shapes, dtypes or a history only after the first turns


class TracedLoop:
    """Turns within a trace, which become a loop."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.attempts: int = _ATTEMPTS if _is_compiled() else 0

    def rest(self, carry: Any, done: int) -> TurnResults | None:
        """The turns after the first ``done`` as one loop; None if they must run in Python, at least the next."""
        if self.attempts == 0 or self.turns.length - done < self.turns.fewest:
            return None
        self.attempts -= 1
        state = PythonState(self.turns.turn)
        attempt = _Attempt(self.turns, carry)
        recorded = self._recorded(attempt) if state.known else None
        if recorded is None or not state.unchanged:
            state.restore()
            self.attempts = 0
            return None
        if not attempt.is_stable(recorded):
            return None
        memory = attempt.memory(recorded, done)
        return None if memory is None else attempt.emit(recorded, done, memory)

    def _recorded(self, attempt: _Attempt) -> RecordedBody | None:
        """The turn; None if it raises: then the turn in Python raises it again, or does what no loop can do."""
        needed: set[int] = getattr(current_interpreter.get(), "values_needed", set())
        before = set(needed)
        try:
            return attempt.record()
        except Exception:
            needed.intersection_update(before)
            return None


def _is_compiled() -> bool:
    """Whether a program is made of what is recorded now, for the host: eager `vmap` records, too."""
    trace = current_interpreter.get()
    if trace.tracing and trace.device != "cpu":
        return False
    while isinstance(trace, NestedTrace):
        trace = trace.outer
    return isinstance(trace, Trace) and trace.device == "cpu"


class _Attempt:
    """A turn that starts at ``carry``."""

    def __init__(self, turns: Turns, carry: Any) -> None:
        self.turns = turns
        self.leaves, self.structure = optree.tree_flatten(carry, none_is_leaf=True)
        self.traced: list[int] = [k for k, x in enumerate(self.leaves) if isinstance(x, Tensor)]
        self.given: dict[int, Tensor] = {}  # what stands for the traced leaves, and for the slices
        self.slices: Sequence[Tensor] = ()
        self.carried: list[int] = []  # those of the traced leaves that a turn replaces
        self.after: list[Any] = []  # the leaves after the turn, and their structure
        self.structure_after: Any = None
        self.parts_structure: Any = None
        self.is_typical: bool = True  # whether the turn gives tensors, and a carry like that which it got

    def record(self) -> RecordedBody:
        """The turn, with every carry requiring grad that does after some turn."""
        name = f"{self.turns.name}_turn"
        before = [self.leaves[k] for k in self.traced]
        wanted = [x._requires_grad for x in before]
        slices = [(Aval(x.shape[1:], x.dtype), x._requires_grad) for x in self.turns.arrays]
        slices += [] if self.turns.numbers is None else [(INT_AVAL, False)]  # like a Python int
        while True:
            inputs = [(x.aval, flag) for x, flag in zip(before, wanted, strict=True)]
            recorded = record_body(name, self._turn, [*inputs, *slices], self.turns.numbers)
            flags = dict(zip(self.carried, recorded.require_grad, strict=False))
            more = [flag or flags.get(k, False) for k, flag in zip(self.traced, wanted, strict=True)]
            if more == wanted:
                return recorded
            wanted = more

    def _turn(self, tensors: Sequence[Any]) -> list[Tensor]:
        """The new carries that are tensors, and the parts."""
        leaves = list(self.leaves)
        self.given = dict(zip(self.traced, tensors, strict=False))
        for k, x in self.given.items():
            leaves[k] = x
        self.slices = tensors[len(self.traced) :]
        carry, parts = self.turns.turn(optree.tree_unflatten(self.structure, leaves), [*self.slices])
        self.after, self.structure_after = optree.tree_flatten(carry, none_is_leaf=True)
        listed, self.parts_structure = optree.tree_flatten(parts)
        self.is_typical = self.structure_after == self.structure and all(isinstance(x, Tensor) for x in listed)
        if not self.is_typical or any(x.aval.weak for x in listed):
            self.is_typical, self.carried = False, []
            return [x for x in listed if isinstance(x, Tensor)]
        self.carried = [k for k in self.traced if self.after[k] is not leaves[k]]
        if not all(isinstance(self.after[k], Tensor) for k in self.carried):
            raise NotRepeatableError("a carry becomes a number")
        return [*[self.after[k] for k in self.carried], *listed]

    def is_stable(self, recorded: RecordedBody) -> bool:
        """Whether the next turn starts with the same shapes, dtypes and Python objects as this one."""
        if not self.is_typical:
            return False
        for k, (x, new) in enumerate(zip(self.leaves, self.after, strict=True)):
            if k in self.carried:
                aval = recorded.graph.outputs[self.carried.index(k)].aval
                if aval != x.aval or x.aval.weak:
                    return False
            elif k not in self.traced and not (new is x or (type(new) is type(x) and type(x) in (bool, int, str) and new == x)):
                return False
        return True

    def memory(self, recorded: RecordedBody, done: int) -> CarriedMemory | None:
        """Of the carries after all turns, of which ``done`` ran."""
        turns = self.turns
        order = range(turns.length - done)[::-1] if turns.reverse else range(done, turns.length)
        tensors = CarriedTensors(self.leaves, self.given, self.after, self.carried, recorded)
        return tensors.last(order, self.slices, turns.arrays)

    def emit(self, recorded: RecordedBody, done: int, memory: CarriedMemory) -> TurnResults:
        """The loop of all turns but the first ``done``."""
        turns, left = self.turns, self.turns.length - done
        arrays = [_part(x, 0 if turns.reverse else done, left) if done else x for x in turns.arrays]
        count = len(arrays) + (turns.numbers is not None)
        graph, fixed = _with_fixed_constants(recorded.graph, self.traced, self.carried, count)
        constants = [*[self.leaves[k] for k in fixed], *recorded.constants]
        if turns.numbers is not None:
            graph, read = with_slices(graph, len(self.carried) + len(arrays), constants, turns.numbers[done:])
            arrays += [arange(turns.numbers.start + done, turns.numbers.stop), *read]
        outs = emit_loop(graph, [self.leaves[k] for k in self.carried], arrays, constants, left, turns.reverse)
        for out, wanted in zip(outs, recorded.require_grad, strict=True):
            if not wanted:
                out._requires_grad, out.grad_fn = False, None
        leaves = list(self.leaves)
        for k, out in zip(self.carried, outs, strict=False):
            leaves[k] = leaves[memory.same[k]] if k in memory.same else memory.existing.get(k, out)
        parts = optree.tree_unflatten(self.parts_structure, outs[len(self.carried) :])
        return TurnResults(optree.tree_unflatten(self.structure, leaves), parts)


def _with_fixed_constants(
    graph: Graph, traced: Sequence[int], carried: Sequence[int], slices: int
) -> tuple[Graph, list[int]]:
    """``graph`` with the carries that no turn replaces as its first constants, and the numbers of these."""
    fixed = [k for k in traced if k not in carried]
    given = dict(zip(traced, graph.inputs, strict=False))
    others = graph.inputs[len(traced) :]
    inputs = (*[given[k] for k in carried], *others[:slices], *[given[k] for k in fixed], *others[slices:])
    return replace(graph, inputs=inputs), fixed


def _part(x: Tensor, start: int, length: int) -> Tensor:
    return slice(x, ((start, 1, length), *[(0, 1, n) for n in x.shape[1:]]))


trace_turns_by(TracedLoop)
