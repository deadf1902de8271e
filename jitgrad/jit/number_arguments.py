"""Which number arguments of a @jit function are inputs of its programs, and which part of the key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jitgrad.compiler.runtime_number import ValueNeededError
from jitgrad.jit.signature import Call, static_number
from jitgrad.jit.trace_result import TraceResult
from jitgrad.jit.trace_warnings import MANY_TRACES

_REMEMBERED = 1024  # signatures; forgetting one only repeats a trace


@dataclass(slots=True)
class _Numbers:
    """The numbers of the calls that differ in nothing else."""

    first: dict[int, int]  # the ints of the first call, by position
    changed: set[int] = field(default_factory=set)  # positions of those that had another value since
    needed: set[int] = field(default_factory=set)  # positions of the numbers whose value the function needs
    values: dict[int, set[Any]] = field(default_factory=dict)  # of those, so far


class NumberArguments:
    """A float and a NumPy scalar are inputs; an int is part of the key until it changes, then the function is traced without
    its value.

    Where a trace fails for want of a value, because that decides a shape, an index, a branch or a
    text, the number is in the key from then on.
    """

    def __init__(self) -> None:
        self._seen: dict[Any, _Numbers] = {}

    def choose(
        self, call: Call, known: Callable[[Call], bool], trace: Callable[[Call], TraceResult]
    ) -> tuple[Call, TraceResult | None]:
        """``call`` with its run-time numbers, and its trace unless ``known(call)`` says there is one."""
        while True:
            numbers = self._of(call)
            chosen = call.with_static_numbers(frozenset(call.numbers).intersection(numbers.needed))
            positions = self._changed(call, numbers)
            if not positions:
                return chosen, None
            candidate = chosen.with_runtime_ints(positions)
            if known(candidate):
                return candidate, None
            try:
                return candidate, trace(candidate)
            except ValueNeededError as error:
                self.keep_static(call, error.positions)
            except Exception:  # tracing the function with the values shows what is wrong with it
                self.keep_static(call, positions)

    def keep_static(self, call: Call, positions: frozenset[int]) -> None:
        """The values of the numbers at ``positions`` are part of the key from now on."""
        self._of(call).needed |= positions

    def add_from(self, error: Exception, call: Call) -> bool:
        """Whether a trace of ``call`` failed with ``error`` for want of values that it has the next time."""
        if not isinstance(error, ValueNeededError) or error.positions <= self._of(call).needed:
            return False
        self.keep_static(call, error.positions)
        return True

    def values_needed(self, call: Call) -> dict[str, int]:
        """How many values each number has had so far whose value the function needs."""
        numbers = self._of(call)
        for k in numbers.needed:
            values = numbers.values.setdefault(k, set())
            if len(values) <= MANY_TRACES:
                values.add(static_number(call.leaves[k]))
        return {call.name(k): len(values) for k, values in numbers.values.items()}

    def too_many_values(self, call: Call) -> bool:
        """Whether there are programs for so many values of a float or a NumPy scalar that further ones run eagerly."""
        values = self._of(call).values
        return any(len(values.get(k, ())) > MANY_TRACES for k in call.static_numbers)

    def clear(self) -> None:
        self._seen.clear()

    def _changed(self, call: Call, numbers: _Numbers) -> frozenset[int]:
        numbers.changed.update([k for k, first in numbers.first.items() if call.leaves[k] != first])
        return frozenset(numbers.changed - numbers.needed)

    def _of(self, call: Call) -> _Numbers:
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        key = call.key_without_numbers
        if key not in self._seen:
            self._seen[key] = _Numbers({k: call.leaves[k] for k in call.ints})
        return self._seen[key]
