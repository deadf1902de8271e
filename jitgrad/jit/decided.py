"""A call decides as the one that was traced, or changes nothing and says what it has decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from jitgrad.core.device_array import to_host
from jitgrad.jit.fast_call import FastCallWriter, listed
from jitgrad.jit.input_steps import CallState
from jitgrad.jit.trace_result import TraceResult

Outcomes = tuple[bool | int, ...]  # of the first decisions of a call


class DecidedOtherwise(Exception):
    """The program is not right for this call.

    Attributes:
        outcomes: what the call decides, up to the first difference; None if the program failed, perhaps for that reason.
    """

    def __init__(self, outcomes: Outcomes | None) -> None:
        super().__init__(outcomes)
        self.outcomes = outcomes


def tell_more(outcomes: Outcomes | None, known: Outcomes) -> TypeGuard[Outcomes]:
    """Whether a program has found out more of a call than is ``known``: if not, two programs round a decision differently."""
    return outcomes is not None and len(outcomes) > len(known)


def check_outcomes(found: Sequence[bool | int], expected: Sequence[bool | int]) -> None:
    """Raises DecidedOtherwise where ``found`` differs from what the trace supposed."""
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a != b:
            raise DecidedOtherwise(tuple(found[: k + 1]))


@dataclass(frozen=True, eq=False, slots=True)
class CheckDecided:
    """The values that Python code asked for in the trace are the same in this call."""

    traced: TraceResult

    def run(self, call: CallState) -> None:
        check_outcomes(self.found(call.outputs), self._expected())

    def found(self, outputs: Sequence[Any]) -> list[bool | int]:
        """What a call with these ``outputs`` of the program decides."""
        return [to_host(outputs[d.output]).item() for d in self.traced.decided]

    def agrees(self, outputs: Sequence[Any]) -> bool:
        return self.found(outputs) == self._expected()

    def _expected(self) -> list[bool | int]:
        return [d.contents for d in self.traced.decided]

    def write(self, w: FastCallWriter) -> None:
        if not self.traced.decided:
            return
        w.names.update(check_outcomes=check_outcomes, to_host=to_host)
        arrays = [w.array_of(d.output)[0] for d in self.traced.decided]
        numbers = [f"to_host({array}).item()" if w.on_device else f"{array}.item()" for array in arrays]
        w.line(f"decided = [{listed(numbers)}]")
        expected = w.constant("E", self._expected())
        w.line(f"if decided != {expected}: check_outcomes(decided, {expected})")
