"""One specialisation of a @jit function, ready to run: its program, its inputs, and how its effects are committed."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import optree
from numpy.lib.array_utils import byte_bounds

from jitgrad.backends.base import Target
from jitgrad.compiler.pipeline import Watcher, ignore
from jitgrad.compiler.tracer import InputSource
from jitgrad.core.aval import Aval
from jitgrad.core.errors import ArgumentError, GuardError, UnguardableError
from jitgrad.core.ir import Value
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.eager.buffer_pool import POOL, address_of
from jitgrad.jit.trace_call import TraceResult
from jitgrad.runtime.ownership import invalidate, is_unique_owner
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import ProgramOp, compile_graph, contiguous


class Executable:
    """A traced function with its compiled program.

    A function whose results gradients may flow through runs as a differentiable op (``op``); one without, such as a
    whole training step, runs as a plain program that may write new state over the old.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        traced: TraceResult,
        target: Target,
        count: Callable[[Program], None],
        watch: Watcher = ignore,
        donated: Sequence[int] = (),
    ) -> None:
        self.function = function
        self.origin = Origin.of_code_of(function)
        self.traced = traced
        self.target = target
        self.count = count
        self.watch = watch
        self.without_fast_call = False  # whether calls must take the general path
        self.donated = self._donated(donated)
        self.gone = Donated(f"@jit function {traced.graph.name!r} at {self.origin.full()}")

    def _donated(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Positions of the arguments that a call takes away; one that the function returns as it came stays."""
        if positions and self.traced.differentiable:
            raise ArgumentError(history_needs_arguments(self.traced.graph.name))
        sources = [r.source for r in self.traced.results if r.source is not None]
        returned = {s.key for s in sources if s.kind == "argument"}
        return tuple(k for k in positions if k not in returned)

    def _state(self) -> dict[int, Value]:
        """Outputs that become the new data of an input, and nothing else: they may be written over it."""
        by_source = dict(zip(map(id, self.traced.sources), self.traced.graph.inputs, strict=True))
        uses = Counter(map(id, self.traced.graph.outputs))
        return {
            e.output: by_source[id(e.target)]
            for e in self.traced.effects
            if e.kind == "data"
            and e.output is not None
            and id(e.target) in by_source
            and uses[id(self.traced.graph.outputs[e.output])] == 1
        }

    def _over_arguments(self, free: Sequence[Value]) -> dict[int, Value]:
        """Results paired in order with the donated inputs ``free`` of their looks."""
        waiting: dict[tuple[Any, Any], deque[Value]] = {}
        for value in free:
            waiting.setdefault((value.aval.shape, value.aval.dtype), deque()).append(value)
        found = {}
        for r in self.traced.results:
            if r.kind == "new" and r.output not in found:
                aval = self.traced.graph.outputs[r.output].aval
                if queue := waiting.get((aval.shape, aval.dtype)):
                    found[r.output] = queue.popleft()
        return found

    @cached_property
    def op(self) -> ProgramOp:
        t = self.traced
        return ProgramOp(t.graph, t.wants_grad, t.differentiable, self.target, self.count, self.written)

    @cached_property
    def program(self) -> Program:
        """The program that a call runs (of a differentiable function: the forward one)."""
        if self.traced.differentiable:
            return self.op.forward
        state = self._state()
        changed = {id(v) for v in state.values()}
        free = [self.traced.graph.inputs[k] for k in self._donated_inputs()]
        free = [v for v in free if id(v) not in changed]
        wanted = {**self._over_arguments(free), **state}
        program = compile_graph(self.traced.graph, self.target, wanted, free, self.watch)
        self.count(program)
        return program

    @cached_property
    def overwritten(self) -> tuple[int, ...]:
        """Positions of inputs whose memory the program really writes."""
        plan = self.program.plan
        written = {p.location.buffer for p in plan.outputs if p.location is not None}
        return tuple(k for k, buffer in enumerate(plan.inputs) if buffer in written)

    def _donated_inputs(self) -> list[int]:
        """Positions of the inputs that are donated arguments."""
        donated = set(self.donated)
        return [k for k, s in enumerate(self.traced.sources) if s.kind == "argument" and s.key in donated]

    @cached_property
    def taken(self) -> tuple[int, ...]:
        """Positions of the donated inputs whose memory the program really writes: nobody else may see it."""
        overwritten = set(self.overwritten)
        return tuple(k for k in self._donated_inputs() if k in overwritten)

    # --- inputs --------------------------------------------------------------------------------------------------

    def resolve(self, source: InputSource, leaves: Sequence[Any]) -> Any:
        """The object that ``source`` stands for in this call."""
        if source.kind == "argument":
            return leaves[source.key]
        if source.kind == "grad":
            return self.resolve(source.key, leaves)._grad
        return source.key

    def operands(self, leaves: Sequence[Any]) -> list[Any]:
        """The inputs of this call, checked against what was traced."""
        found = []
        for source, value in zip(self.traced.sources, self.traced.graph.inputs, strict=True):
            x = self.resolve(source, leaves)
            aval = value.aval
            if type(x) is Tensor and type(x._data) is Donated:
                raise x._data.error(f"{self.describe(source)} of @jit function {self.traced.graph.name!r}", aval)
            if type(x) is not float and (x is None or x.shape != aval.shape or x.dtype != aval.dtype):
                looks = "nothing" if x is None else str(Aval(x.shape, x.dtype))
                raise GuardError(f"{self.describe(source)} was {aval} while tracing and is {looks} now")
            found.append(x)
        self._refuse_aliases(found)
        return found

    @cached_property
    def written(self) -> tuple[int, ...]:
        """Positions of inputs whose data the function changes."""
        changed = {id(e.target) for e in self.traced.effects if e.kind == "data"}
        return tuple(k for k, source in enumerate(self.traced.sources) if id(source) in changed)

    def kept_operands(self, leaves: Sequence[Any]) -> list[Any]:
        """`operands` as they are now, whatever a call does: those that the function may change are copies."""
        found, written = self.operands(leaves), frozenset(self.written)
        for k, source in enumerate(self.traced.sources):
            x = found[k]
            if (k in written or source.kind == "grad") and not isinstance(x, float):
                found[k] = Tensor(x._data.copy(), x._aval) if isinstance(x, Tensor) else x.copy()
        return found

    def _refuse_aliases(self, operands: Sequence[Any]) -> None:
        """What is changed in place must not be seen through another input: the program would read its old data."""
        if not self.written:
            return
        arrays = [_array(x) for x in operands]
        if not overlapping([_span(a) for a in arrays], self.written):
            return
        for k in self.written:
            for j, other in enumerate(arrays):
                if j != k and np.may_share_memory(arrays[k], other) and np.shares_memory(arrays[k], other):
                    one, two = (self.describe(self.traced.sources[n]) for n in (k, j))
                    raise UnguardableError(
                        f"@jit function {self.traced.graph.name!r} changes {one} in place, and {two} is the same memory. "
                        "Use the same tensor for both, .clone() one of them, or make the view inside the function."
                    )

    def describe(self, source: InputSource) -> str:
        if source.kind == "grad":
            return f"the gradient of {self.describe(source.key)}"
        if source.kind == "argument":
            return f"argument {source.key}"
        return self.traced.names.get(id(source.key), "a captured array")

    def still_valid(self, leaves: Sequence[Any]) -> str | None:
        """None if the surroundings are as they were while tracing, else what changed."""
        reason = self.traced.guard.check()
        if reason is not None:
            return reason
        for source, present in self.traced.grads_present:
            if (self.resolve(source, leaves)._grad is not None) != present:
                return f"the gradient of {self.describe(source)} {'is gone' if present else 'is there now'}"
        return None

    # --- running -------------------------------------------------------------------------------------------------

    def run(self, leaves: Sequence[Any]) -> Any:
        """Run the program, commit its effects, and put the function's result together."""
        operands = self.operands(leaves)
        if self.traced.differentiable:
            tensors = self.op(*operands)
            arrays = [t._data for t in tensors]
        else:
            arrays, tensors = self.run_plain(operands), ()
        self.commit(arrays, leaves)
        result = self.result(arrays, tensors, leaves)
        self.invalidate_donated(leaves)
        return result

    def run_plain(self, operands: Sequence[Any], preserve: bool = False) -> list[np.ndarray[Any, Any]]:
        """The program's outputs; with ``preserve`` the inputs that it would overwrite are copied first."""
        program = self.program
        shared = [k for k in self.taken if not (isinstance(operands[k], Tensor) and is_unique_owner(operands[k]))]
        inputs = [contiguous(_array(x)) if k in program.read else _array(x) for k, x in enumerate(operands)]
        if self.overwritten and (preserve or overlapping([_span(a) for a in inputs], self.overwritten)):
            shared = list(self.overwritten)
        for k in shared:
            inputs[k] = _copied(inputs[k])
        return program.run(inputs)

    def invalidate_donated(self, leaves: Sequence[Any]) -> None:
        """Take the donated arguments from the caller, after a call that succeeded."""
        if self.donated:
            kept = {id(r.source.key) for r in self.traced.results if r.source is not None}
            invalidate((leaves[k] for k in self.donated if id(leaves[k]) not in kept), self.gone)

    def commit(self, arrays: Sequence[np.ndarray[Any, Any]], leaves: Sequence[Any]) -> None:
        """Make the changes of outside state that the traced function made. Runs only after the program succeeded."""
        for effect in self.traced.effects:
            target = self.resolve(effect.target, leaves)
            if effect.kind == "grad":
                target._grad = None if effect.output is None else Tensor(arrays[effect.output])
                continue
            assert effect.output is not None
            new = arrays[effect.output]
            data = target._data if isinstance(target, Tensor) else target
            if new is not data:
                np.copyto(data, new)
            if isinstance(target, Tensor):
                target._storage.bump(self.origin)

    def result(self, arrays: Sequence[np.ndarray[Any, Any]], tensors: Sequence[Tensor], leaves: Sequence[Any]) -> Any:
        found: list[Any] = []
        for r in self.traced.results:
            if r.kind == "static":
                found.append(r.value)
            elif r.kind == "source":
                assert r.source is not None
                found.append(self.resolve(r.source, leaves))
            elif r.kind == "view":
                assert r.source is not None and r.view is not None
                found.append(r.view.of(self.resolve(r.source, leaves)))
            elif tensors:
                found.append(tensors[r.output])
            else:
                array = arrays[r.output]
                found.append(Tensor(array, Aval(array.shape, array.dtype, weak=True) if r.weak else None))
        return optree.tree_unflatten(self.traced.treedef, found)


def overlapping(spans: Sequence[tuple[int, int]], written: Sequence[int]) -> bool:
    """Whether one of the ``written`` spans of memory (first byte, byte after the last) meets any other span."""
    ours = sorted(spans[k] for k in written)
    if any(a[1] > b[0] for a, b in zip(ours, ours[1:], strict=False)):
        return True
    starts = [first for first, _ in ours]
    writes = set(written)
    for k, (first, end) in enumerate(spans):
        if k in writes:
            continue
        place = bisect_right(starts, first)
        if (place and ours[place - 1][1] > first) or (place < len(starts) and starts[place] < end):
            return True
    return False


def history_needs_arguments(name: str) -> str:
    """The message for donated arguments of a function whose result has a history."""
    return (
        f"@jit function {name!r} has donate=, and gradients flow from its result to its arguments, so that a later "
        "backward() needs them. Call backward() or jg.value_and_grad inside the function, or drop donate=."
    )


def _copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    new = POOL.empty(array.shape, array.dtype)
    np.copyto(new, array)
    return new


def _span(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The first byte of ``array``, and the one after its last."""
    if not array.flags.c_contiguous:
        return byte_bounds(array)
    first = address_of(array)
    return first, first + array.nbytes


def _array(x: Any) -> np.ndarray[Any, Any]:
    if isinstance(x, Tensor):
        return x._data  # type: ignore[no-any-return]
    return x if isinstance(x, np.ndarray) else np.asarray(x)
