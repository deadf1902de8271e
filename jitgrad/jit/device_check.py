"""The first-call check of a program on a device: inputs are copied to the host, where NumPy runs the traced ops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.compiler.decisions import on_host
from jitgrad.core.context import creating_on
from jitgrad.core.device_array import to_host
from jitgrad.core.dispatch import apply_op
from jitgrad.core.ir import evaluate
from jitgrad.core.tensor import Tensor
from jitgrad.jit.executable import Executable
from jitgrad.jit.isolate import find_wrong_kernels
from jitgrad.jit.mismatch_report import warn_of_mismatch
from jitgrad.jit.rounding_judge import find_mismatches


def check_on_host(
    executable: Executable, call_eagerly: Callable[[], Any], leaves: Sequence[Any]
) -> tuple[Any, Collection[int] | None]:
    """(the result of the call, the numbers of the kernels to do without; None: the program must not be used).

    Running the function itself op by op on the device would compile every op. So the program runs a
    second time for the caller if it agrees; else the function runs eagerly.
    """
    traced = executable.traced
    operands = executable.operands_before(leaves)
    hosted = [on_host(x) for x in operands]
    with no_grad(), creating_on(None):
        expected = evaluate(traced.graph, tuple(hosted), lambda op, xs, attrs: apply_op(op, *xs, **attrs))
    arrays = [np.asarray(x._data if isinstance(x, Tensor) else x) for x in expected]
    names = _output_names(executable)

    def outputs_of(other: Executable) -> list[np.ndarray[Any, Any]]:
        return [to_host(x) for x in other.outputs(operands)]

    outputs = outputs_of(executable)
    executable.agreed = executable.plan.decided.agrees(outputs)
    if not executable.agreed:
        return call_eagerly(), ()
    inputs = [x._data if isinstance(x, Tensor) else x for x in hosted]
    mismatches = find_mismatches(traced.graph, inputs, {k: (name, outputs[k], arrays[k]) for k, name in names.items()})
    if not mismatches:
        return executable.run(leaves), ()

    def is_right(other: Executable) -> bool:
        found = outputs_of(other)
        return not any(m.remains(found[m.output], arrays[m.output]) for m in mismatches)

    wrong = find_wrong_kernels(executable, is_right)
    warn_of_mismatch(executable, [np.asarray(x) for x in inputs], mismatches, wrong)
    return call_eagerly(), wrong


def _output_names(executable: Executable) -> dict[int, str]:
    """The outputs of the program in words."""
    traced = executable.traced
    names = {r.output: f"result {k}" for k, r in reversed(list(enumerate(traced.results))) if r.output is not None}
    names |= {k: "what results are views of" for k in traced.hidden()}
    for change in traced.gradients:
        if change.grad is not None and change.grad.output is not None:
            names[change.grad.output] = f"gradient of {traced.describe_holder(change.target)}"
    return names | {e.output: f"new value of {traced.describe(e.target)}" for e in traced.effects}
