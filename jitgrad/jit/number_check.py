"""The step of a call that computes numbers of its arguments as Python does, where that may raise an error."""

from __future__ import annotations

from dataclasses import dataclass

from jitgrad.jit.fast_call import FastCallWriter
from jitgrad.jit.input_steps import CallState
from jitgrad.jit.trace_result import TraceResult


@dataclass(frozen=True, eq=False, slots=True)
class CheckNumbers:
    """Python gives floats, or raises, for arithmetic of number arguments as in the trace."""

    traced: TraceResult

    def run(self, call: CallState) -> str | None:
        for condition in self.traced.number_conditions:
            if not condition.is_met(*[call.leaves[k] for k in condition.positions]):
                return f"Python's arithmetic {'raises an error or is complex' if condition.holds else 'gives floats'} now"
        return None

    def write(self, w: FastCallWriter) -> None:
        for condition in self.traced.number_conditions:
            numbers = ", ".join(w.leaves[k] for k in condition.positions)
            w.miss_if(f"not {w.constant('N', condition.is_met)}({numbers})")
