"""The first call also runs eagerly: results, gradients and state must agree within a budget."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from jitgrad.core.errors import MismatchWarning
from jitgrad.core.tensor import Tensor
from jitgrad.jit.executable import Executable
from jitgrad.jit.repro import write_repro
from jitgrad.jit.rounding_judge import Mismatch, find_mismatches
from jitgrad.jit.trace_call import EffectKind


def check_first_call(
    executable: Executable,
    eager: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: Sequence[Any],
) -> tuple[Any, bool]:
    """(the eager result, whether the program agrees). Only the eager run changes outside state."""
    operands = executable.operands_before(leaves)
    if executable.traced.effects:  # a program that fails must do so before eager changes the state
        fused = executable.outputs(operands)
        result = eager(*args, **kwargs)
    else:  # kernels may still be compiling
        result = eager(*args, **kwargs)
        fused = executable.outputs(operands)
    expected = named_outputs(executable, result, leaves)
    pairs = {k: (name, np.asarray(fused[k]), value) for k, (name, value) in expected.items()}
    mismatches = find_mismatches(executable.traced.graph, [_data(x) for x in operands], pairs)
    if mismatches:
        _report(executable, operands, mismatches)
    return result, not mismatches


def _data(x: Any) -> Any:
    return x._data if isinstance(x, Tensor) else x


def named_outputs(executable: Executable, result: Any, leaves: Sequence[Any]) -> dict[int, tuple[str, np.ndarray]]:
    """The name and the eager value of each output of the program, after an eager run."""
    traced = executable.traced
    named: dict[int, tuple[str, np.ndarray]] = {}
    for k, (spec, x) in enumerate(zip(traced.results, optree.tree_leaves(result, none_is_leaf=True), strict=True)):
        if spec.output is not None:
            named[spec.output] = (f"result {k}", np.asarray(_data(x)))
    for effect in traced.effects:
        if effect.output is None:
            continue
        target = effect.target.resolve(leaves)
        if effect.kind is EffectKind.GRADIENT:
            name, value = f"gradient of {traced.describe(effect.target)}", target._grad
        else:
            name, value = f"new value of {traced.describe(effect.target)}", target
        named[effect.output] = (name, np.asarray(_data(value)).copy())
    return named


def _report(executable: Executable, operands: Sequence[Any], mismatches: Sequence[Mismatch]) -> None:
    """Warn, name the ops of each kernel, and write a script that reproduces the difference."""
    handle, path = tempfile.mkstemp(prefix=f"jitgrad_repro_{executable.traced.graph.name}_", suffix=".py")
    os.close(handle)
    write_repro(path, executable.program, [np.asarray(_data(x)) for x in operands])
    groups = "; ".join(" ".join(k.kernel.ops) for k in executable.program.kernels)
    listed = "\n  ".join(map(str, mismatches))
    warnings.warn(
        f"the fused program of {executable.traced.graph.name!r} disagrees with eager and is not used:\n  {listed}\n"
        f"kernels: {groups}\nA script that shows it alone: {path}",
        MismatchWarning,
        stacklevel=4,
    )

