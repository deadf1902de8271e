"""The first call also runs eagerly: results, gradients and state must agree within a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import optree

from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.device_array import to_host
from jitgrad.core.errors import shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.blocked import BlockedInterpreter, is_worthwhile
from jitgrad.guards.guard import behaves_alike
from jitgrad.guards.writes import is_constant
from jitgrad.jit.device_check import check_on_host
from jitgrad.jit.executable import Executable
from jitgrad.jit.isolate import find_wrong_kernels
from jitgrad.jit.mismatch_report import warn_of_mismatch, warn_of_other_objects
from jitgrad.jit.output_views import ResultView
from jitgrad.jit.rounding_judge import Mismatch, find_mismatches
from jitgrad.jit.trace_result import TraceResult
from jitgrad.runtime.executor.thread_pool import get_num_threads


def check_first_call(
    executable: Executable,
    eager: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: Sequence[Any],
) -> tuple[Any, Collection[int] | None]:
    """(the result, the numbers of the kernels to do without: none if the program agrees).

    None instead of numbers: the program must not be used. Only the eager run changes outside state.
    """
    if executable.target.name == "cuda":
        return check_on_host(executable, lambda: eager(*args, **kwargs), leaves)
    operands, targets = executable.operands_before(leaves), executable.targets(leaves)
    fused, result = _both(executable, operands, lambda: eager(*args, **kwargs))
    executable.agreed = executable.plan.decided.agrees(fused)
    if not executable.agreed:  # rounding decides: the results are those of another branch
        return as_later_calls(executable.traced, result), ()
    expected = named_outputs(executable, result, leaves, targets)
    inputs = [_data(x) for x in operands]

    def rerun(arrays: Sequence[Any]) -> Sequence[np.ndarray]:
        given = zip(operands, arrays, strict=True)
        return executable.outputs([Tensor(x, old._aval) if isinstance(old, Tensor) else x for old, x in given])

    pairs = {k: (name, np.asarray(fused[k]), value) for k, (name, value) in expected.items()}
    mismatches = find_mismatches(executable.traced.graph, inputs, pairs, rerun)
    later = as_later_calls(executable.traced, result)
    if others := _other_objects(executable.traced, result, leaves):
        warn_of_other_objects(executable, others)
        return result, None
    if not mismatches:
        return later, ()
    wrong = _wrong_kernels(executable, operands, mismatches, expected)
    return result if wrong is None else later, wrong


def _wrong_kernels(
    executable: Executable, operands: Sequence[Any], mismatches: Sequence[Mismatch], expected: Mapping[int, tuple[str, Any]]
) -> Collection[int] | None:
    """The numbers of the kernels that are at fault, after a warning; None if no kernel is."""

    def is_right(other: Executable) -> bool:  # looks only where the program was wrong
        outputs = other.outputs(operands)
        return not any(m.remains(np.asarray(outputs[m.output]), expected[m.output][1]) for m in mismatches)

    wrong = find_wrong_kernels(executable, is_right)
    warn_of_mismatch(executable, [np.asarray(_data(x)) for x in operands], mismatches, wrong)
    return wrong


def _other_objects(traced: TraceResult, result: Any, leaves: Sequence[Any]) -> list[str]:
    """What the program returns without computing it, and eager execution does not, in words."""
    found = []
    for k, (spec, x) in enumerate(zip(traced.results, traced.result_leaves(result), strict=False)):  # the others are stored
        if spec.source is not None and spec.view is None and not spec.through:
            known = spec.source.resolve(leaves)
            if isinstance(known, Tensor) and x is not known and not _has_contents_of(known, x):
                found.append(f"result {k}: the program returns {traced.describe(spec.source)} itself, eager does not")
        elif {spec.output, spec.base, spec.source} == {None} and is_constant(spec.value) and not behaves_alike(x, spec.value):
            found.append(f"result {k}: {shown(spec.value)} in the program, {shown(x)} in eager execution")
    return found


def _has_contents_of(known: Tensor, x: Any) -> bool:
    if not isinstance(x, Tensor) or x.aval != known.aval:
        return False
    return np.array_equal(to_host(x._data), to_host(known._data), equal_nan=known.dtype.kind in "fc")


def _both(executable: Executable, operands: Sequence[Any], call_eagerly: Callable[[], Any]) -> tuple[list[Any], Any]:
    """(the known outputs of the program, the result of the eager call)."""
    if executable.traced.changes_state:  # a program that fails must do so before eager changes the state
        fused = _known_outputs(executable, operands)
        return fused, call_eagerly()
    result = _in_blocks(executable.traced, call_eagerly)  # kernels may still be compiling
    return _known_outputs(executable, operands), result


def _in_blocks(traced: TraceResult, call_eagerly: Callable[[], Any]) -> Any:
    """The result of the eager call, whose elementwise ops on large arrays run block by block where it has no side effects."""
    alone = not (traced.changes_python or traced.python_effects or traced.differentiable)
    if not alone or current_interpreter.other() is not None or not is_worthwhile(traced.graph):
        return call_eagerly()
    interpreter = BlockedInterpreter(get_num_threads())
    token = current_interpreter.set(interpreter)
    try:
        result = call_eagerly()
        interpreter.finish(optree.tree_leaves(result))
        return result
    except Exception:  # whatever is wrong, eager execution says it better
        pass
    finally:
        current_interpreter.reset(token)
    return call_eagerly()


def as_later_calls(traced: TraceResult, result: Any) -> Any:
    """The eager ``result`` with Tensors for the NumPy arrays and numbers that the program computes."""
    leaves = traced.result_leaves(result)
    specs = traced.results[: len(leaves)]  # of what is stored outside: the others
    computed = {k for k, r in enumerate(specs) if r.output is not None and not r.number}
    if all(isinstance(leaves[k], Tensor) for k in computed):
        return result
    for k in computed:
        if not isinstance(leaves[k], Tensor):
            array = np.asarray(leaves[k])
            leaves[k] = Tensor(array, Aval(array.shape, array.dtype, specs[k].weak))
    return optree.tree_unflatten(traced.result_treedef, leaves)


def _data(x: Any) -> Any:
    return to_host(x._data) if isinstance(x, Tensor) else x


def _known_outputs(executable: Executable, operands: Sequence[Any]) -> list[Any]:
    """The outputs of the program as `named_outputs` has them of an eager run."""
    outputs = executable.outputs(operands)
    for k, views in executable.traced.hidden().items():
        outputs[k] = shown_part(np.asarray(outputs[k]), views)
    return outputs


def shown_part(array: np.ndarray[Any, Any], views: Sequence[ResultView]) -> np.ndarray[Any, Any]:
    """The elements of ``array`` that ``views`` of it show, and zeros elsewhere."""
    part = np.zeros_like(array)
    for view in views:
        view.write(part, view.array_of(array))
    return part


def named_outputs(
    executable: Executable, result: Any, leaves: Sequence[Any], targets: Sequence[Any]
) -> dict[int, tuple[str, np.ndarray]]:
    """The name and the eager value of each output of the program, after an eager run, which has changed ``targets``.

    Of outputs that no result is, it is the part that results show, and zeros elsewhere.
    """
    traced, hidden = executable.traced, executable.traced.hidden()
    named: dict[int, tuple[str, np.ndarray]] = {}
    for spec, (name, x) in zip(traced.made_by_calls, traced.observed(result, leaves), strict=True):
        if spec.output is not None:
            named.setdefault(spec.output, (name, np.asarray(_data(x))))
        elif spec.base in hidden and spec.view is not None:
            aval = traced.graph.outputs[spec.base].aval
            _, part = named.setdefault(spec.base, (name, np.zeros(aval.shape, aval.dtype)))
            spec.view.write(part, _data(x))
    for effect, target in zip(traced.effects, targets, strict=True):
        named[effect.output] = (f"new value of {traced.describe(effect.target)}", np.asarray(_data(target)).copy())
    return named
