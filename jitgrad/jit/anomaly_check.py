"""Under `detect_anomaly`, a compiled call that makes a NaN or an infinity is an error that names the op and the line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.core.errors import AnomalyError
from jitgrad.core.tensor import Tensor
from jitgrad.jit.executable import Executable
from jitgrad.jit.trace_result import TraceResult
from jitgrad.runtime.provenance import find_non_finite


def check_call(executable: Executable, leaves: Sequence[Any]) -> None:
    """Raise AnomalyError if the program, called with ``leaves``, makes NaN or Inf of finite inputs.

    The program runs for it without any effect on outside state.
    """
    traced = executable.traced
    inputs = [x._data if isinstance(x, Tensor) else x for x in executable.operands_before(leaves)]
    found = find_non_finite(traced.graph, inputs, executable.outputs(inputs))
    if found is not None:
        position, origin = found
        raise AnomalyError(
            f"{_name(traced, position)} of @jit function {traced.graph.name!r} is not finite: {origin}\n"
            "The call has changed nothing outside the function."
        )


def _name(traced: TraceResult, position: int) -> str:
    """The output of the program at ``position``, as the user knows it."""
    for k, result in enumerate(traced.results):
        if result.output == position:
            return f"result {k}"
    for change in traced.gradients:
        if change.grad is not None and change.grad.output == position:
            return f"the gradient of {traced.describe_holder(change.target)}"
    for effect in traced.effects:
        if effect.output == position:
            return f"the new value of {traced.describe(effect.target)}"
    return "a result"
