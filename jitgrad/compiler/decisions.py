"""What Python code decided by values of a trace: the program is right for calls that decide alike.

``if loss > limit`` asks for a value that a trace does not have. The call that is being traced has it: the ops that lead
to it run on its arguments, and the trace follows the branch that this call takes. The value is one more output of the
program, which a call compares before it changes anything; where it differs, another program is right for the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.compiler.input_source import InputSource
from jitgrad.compiler.number_conditions import NumberConditions
from jitgrad.compiler.runtime_number import FLOAT_AVAL, INT_AVAL, LARGEST_INT, RuntimeNumber
from jitgrad.core.context import creating_on, current_interpreter, recording_in, unrecorded
from jitgrad.core.device_array import DeviceArray, to_host
from jitgrad.core.dispatch import apply_op
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import abs, astype
from jitgrad.ops.comparison import not_equal
from jitgrad.ops.identity import NUMBER_OF
from jitgrad.ops.movement import reshape
from jitgrad.ops.positions import COUNTED

# Whole numbers and truth values: most calls have one of a few. A float is another one in most calls.
_DECIDING = ("bool()", "int()", "an index", "item()", COUNTED)
_CONVERTS = {"bool()": lambda x: not_equal(x, 0), "int()": lambda x: astype(x, np.int64)}
_EXACT = 2**53  # floats below are as many ints


@dataclass(frozen=True, eq=False, slots=True)
class Decision:
    """``value`` of the graph was ``contents`` where Python code asked for ``what``."""

    value: Value
    contents: bool | int
    what: str
    origin: Origin

    def __str__(self) -> str:
        return f"{self.what} at {self.origin.full()}"


class Decisions:
    """The decisions of one trace, and the values of its call that lead to them."""

    def __init__(self) -> None:
        self.leaves: Sequence[Any] | None = None  # the flat arguments of the call; None: they are not known
        self.numbers: NumberConditions = NumberConditions()
        self._made: dict[Value, Decision] = {}
        self._results: dict[Atom, Any] = {}  # tensors and numbers of the call

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._made.values())

    def decide(self, trace: Any, tensor: Tensor, what: str) -> np.ndarray[Any, Any] | None:
        """The contents of ``tensor`` in the call, which decide from now on; None if they are not known, or cannot decide.

        ``item()`` decides nothing yet: its array holds a number whose value is known when the program runs.
        """
        if what == "item()" and (number := self._number(trace, tensor)) is not None:
            return number
        if self.leaves is None or what not in _DECIDING or tensor.size != 1:
            return None
        is_float = tensor.dtype.kind not in "biu"
        if what in _CONVERTS and is_float:
            with unrecorded():
                tensor = _CONVERTS[what](tensor)
        if tensor.dtype.kind not in "biu":
            return None
        value = trace.current(tensor)
        if type(value) is not Value:
            return None
        if value not in self._made:
            graph = trace.graph((value,))
            if not all(_is_data(source.resolve(self.leaves)) for source in trace.sources):
                return None
            contents = self._result(graph, trace.sources).item()
            if is_float and not -_EXACT < contents < _EXACT:
                return None  # perhaps of a float that has no int
            self._made[value] = Decision(value, contents, what, Origin.capture())
        return np.asarray(self._made[value].contents, tensor.dtype).reshape(tensor.shape)

    def _number(self, trace: Any, tensor: Tensor) -> np.ndarray[Any, Any] | None:
        """The only element of ``tensor`` as a run-time number; None for bools, complex numbers, and ints of many digits."""
        kind = tensor.dtype.kind
        if tensor.size != 1 or kind not in "fiu":
            return None
        bound = None if kind == "f" else int(np.iinfo(tensor.dtype).max) + 1
        with unrecorded():
            flat = reshape(tensor.detach(), ())
            if bound is not None and bound > LARGEST_INT:
                bound, small = LARGEST_INT, abs(flat) <= LARGEST_INT
                if (is_small := self.decide(trace, small, "bool()")) is None or not is_small:
                    return None
            aval = FLOAT_AVAL if bound is None else INT_AVAL
            (value,) = trace.emit(NUMBER_OF, (trace.current(flat),), aval, {})
        trace.numbers.add(value)
        trace.has_numbers = True
        boxed = np.empty((), object)
        boxed[()] = RuntimeNumber(value, frozenset(), bound)
        return boxed

    def _result(self, graph: Graph, sources: Sequence[InputSource]) -> np.ndarray[Any, Any]:
        """The only output of ``graph`` in the call. Ops run on the host: a device would compile each."""
        assert self.leaves is not None
        for value, source in zip(graph.inputs, sources, strict=True):
            if value not in self._results:
                self._results[value] = on_host(source.resolve(self.leaves))
        with recording_in(current_interpreter.eager), unrecorded(), creating_on(None):
            for node in self._missing(graph):
                result = apply_op(node.op, *map(self._read, node.ins), **dict(node.attrs))
                self._results.update(zip(node.outs, result if node.op.multiple else (result,), strict=True))
        found = self._read(graph.outputs[0])
        return np.asarray(found._data if isinstance(found, Tensor) else found)

    def _read(self, atom: Atom) -> Any:
        if isinstance(atom, Value):
            return self._results[atom]
        return atom.operand

    def _missing(self, graph: Graph) -> list[TraceNode]:
        """The nodes that lead to the output and have not run yet, in order."""
        needed, found = {graph.outputs[0]}, []
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outs) and node.outs[0] not in self._results:
                needed.update(node.ins)
                found.append(node)
        return found[::-1]


def on_host(x: Any) -> Any:
    """The operand ``x`` as an op on the host takes it; a tensor keeps whether it is weak."""
    return Tensor(to_host(x._data), x.aval) if isinstance(x, Tensor) else x


def _is_data(x: Any) -> bool:
    """Whether an input is an array or a number in the call."""
    data = x._data if isinstance(x, Tensor) else x
    return isinstance(data, (np.ndarray, np.generic, DeviceArray, bool, int, float))
