"""A trace within whatever runs it: eager execution, @jit or another nested trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jitgrad.compiler.constant_values import constant_contents
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.runtime_number import RuntimeNumber
from jitgrad.compiler.tracer import Trace
from jitgrad.core.context import Interpreter, current_interpreter, recording_in
from jitgrad.core.ir import Atom, Value
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor


class NestedTrace(Trace):
    """Nested in the interpreter ``outer``; ``contents`` has what each input from outside is there."""

    def __init__(self, name: str, outer: Interpreter) -> None:
        super().__init__(name, outer.device)
        self.outer = outer
        self.orders.outer = outer.orders
        self.contents: dict[Value, Any] = {}
        self.has_numbers: bool = getattr(outer, "has_numbers", False)
        self.values_needed: set[int] = getattr(outer, "values_needed", self.values_needed)  # the same set: the numbers are its
        self._numbers: dict[Value, Value] = {}  # for those of the run-time numbers of an outer trace

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it, ops are recorded here, and no tape or observer from outside sees them."""
        with recording_in(self):
            try:
                yield
            finally:
                self.restore_histories()

    @contextmanager
    def in_outer(self) -> Iterator[None]:
        """Within it, ops run where the trace is nested."""
        token = current_interpreter.set(self.outer)
        try:
            yield
        finally:
            current_interpreter.reset(token)

    def lift(self, x: Any, kind: SourceKind) -> Value:
        value = super().lift(x, kind)
        if value not in self.contents:
            self.contents[value] = self._constant_outside(x) if kind is SourceKind.CONSTANT else x
        return value

    def _constant_outside(self, array: Any) -> Any:
        with self.in_outer():
            return self.outer.constant(array)

    def atom(self, op: OpDef, x: Any) -> Atom:
        if type(x) is not RuntimeNumber or x.value in self.owned:
            return super().atom(op, x)
        value = self._numbers.get(x.value)
        if value is None:
            value = self._numbers[x.value] = self.add_input(x.value.aval, InputSource(SourceKind.TENSOR, x))
            self.contents[value] = x
        return value

    def current(self, tensor: Tensor) -> Any:
        data = tensor._data
        if type(data) is not Value or data in self.owned:
            return super().current(tensor)
        self.outer.current(tensor)  # raises if it belongs to no running trace
        written = self.written.get(id(tensor))
        if written is not None:
            return written[1]
        self.alive.append(tensor)
        return self.lift(tensor, SourceKind.TENSOR)

    def known_value(self, tensor: Tensor, what: str) -> Any:
        return constant_contents(self, tensor, what)  # an outer trace may have changed tensors outside

    def rely_on(self, array: Any) -> None:
        self.outer.rely_on(array)  # the guard is that of the outermost trace

    def is_own(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` was made within this trace."""
        return type(tensor._data) is Value and tensor._data in self.owned
