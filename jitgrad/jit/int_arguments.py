"""Which int arguments of a @jit function are inputs of its programs, and which part of the key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jitgrad.compiler.runtime_number import ValueNeededError
from jitgrad.jit.signature import Call
from jitgrad.jit.trace_result import TraceResult

_REMEMBERED = 1024  # signatures; forgetting one only repeats a trace


@dataclass(slots=True)
class _Ints:
    """The ints of the calls that differ in nothing else."""

    first: tuple[int, ...]  # their values in the first call
    changed: set[int] = field(default_factory=set)  # positions of those that had another value since
    needed: set[int] = field(default_factory=set)  # positions of those whose value the function needs
    values: dict[int, set[int]] = field(default_factory=dict)  # of those, so far


class IntArguments:
    """An int is part of the key until it changes; then the function is traced without its value.

    Where that fails, because the value decides a shape, an index or a branch, it stays in the key.
    """

    def __init__(self) -> None:
        self._seen: dict[Any, _Ints] = {}

    def choose(
        self, call: Call, known: Callable[[Call], bool], trace: Callable[[Call], TraceResult]
    ) -> tuple[Call, TraceResult | None]:
        """``call`` with its run-time ints, and its trace unless ``known(call)`` says there is one."""
        positions = self._changed(call)
        while positions:
            candidate = call.with_runtime_ints(positions)
            if known(candidate):
                return candidate, None
            try:
                return candidate, trace(candidate)
            except ValueNeededError as error:
                self.keep_static(call, error.positions)
            except Exception:  # tracing the function with the values shows what is wrong with it
                self.keep_static(call, positions)
            positions = self._changed(call)
        return call, None

    def keep_static(self, call: Call, positions: frozenset[int]) -> None:
        """The values of the ints at ``positions`` are part of the key from now on."""
        self._of(call).needed |= positions

    def values_needed(self, call: Call) -> dict[str, int]:
        """How many values each int has had so far whose value the function needs."""
        ints = self._of(call)
        for k in ints.needed:
            ints.values.setdefault(k, set()).add(call.leaves[k])
        return {call.name(k): len(values) for k, values in ints.values.items()}

    def clear(self) -> None:
        self._seen.clear()

    def _changed(self, call: Call) -> frozenset[int]:
        ints = self._of(call)
        for k, first in zip(call.ints, ints.first, strict=True):
            if call.leaves[k] != first:
                ints.changed.add(k)
        return frozenset(ints.changed - ints.needed)

    def _of(self, call: Call) -> _Ints:
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        key = call.key_without_ints
        if key not in self._seen:
            self._seen[key] = _Ints(tuple([call.leaves[k] for k in call.ints]))
        return self._seen[key]
