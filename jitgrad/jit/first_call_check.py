"""The first call also runs eagerly: results, gradients and state must agree within a budget."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optree

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core.errors import MismatchWarning
from jitgrad.core.ir import Graph, evaluate
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.interpreter import run_on_arrays
from jitgrad.jit.executable import Executable
from jitgrad.jit.repro import write_repro
from jitgrad.jit.trace_call import EffectKind

# A fused result may be this many times further from the float64 result than the eager one is, as
# rounding differs, plus a few ULP of the largest element for results that eager gets exactly right.
ERROR_FACTOR = 16.0
SLACK_ULPS = 256.0
DISTURBANCES = 2  # random ones: a single one may have no effect on an element by chance

# A result this close to eager's, in ULP of its largest element, needs no float64 run to tell
# rounding from errors: such a run would allow twice the distance.
CLOSE_ULPS = SLACK_ULPS / 2
_BLOCK = 1 << 15  # elements compared at a time: they fit in the cache, and such temporaries cost no page faults


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One result that disagrees: its name, its distance, and the allowed distance."""

    what: str
    distance: float
    allowed: float

    def __str__(self) -> str:
        return f"{self.what}: off by {self.distance:.3g}, {self.allowed:.3g} allowed"


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
    mismatches = list(compare_outputs(executable, operands, fused, expected))
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


def compare_outputs(
    executable: Executable,
    operands: Sequence[Any],
    fused: Sequence[np.ndarray[Any, Any]],
    expected: Mapping[int, tuple[str, np.ndarray[Any, Any]]],
) -> list[Mismatch]:
    """The outputs that differ from eager's by more than rounding.

    An output that is not close to eager's is judged by the distance of both from a float64 run of
    the same graph. The allowed distance is measured on a run of the graph op by op, because eager's
    own distance would hide a wrong graph.
    """
    mismatches, unsure = [], []
    for k, (name, eager) in expected.items():
        ours = np.asarray(fused[k])
        if ours.shape != eager.shape or ours.dtype != eager.dtype:
            mismatches.append(Mismatch(f"{name} is {ours.dtype}{ours.shape}, not {eager.dtype}{eager.shape}", np.inf, 0))
        elif not agrees_closely(ours, eager):
            unsure.append((k, name, ours, eager))
    if not unsure:
        return mismatches
    whole = executable.traced.graph
    graph = eliminate_dead(replace(whole, outputs=tuple(whole.outputs[k] for k, *_ in unsure)))
    inputs = [_data(x) for x in operands]
    exact = in_float64(graph, inputs)
    replayed = evaluate(graph, tuple(inputs), run_on_arrays)
    moves: list[Any] | None = None
    for n, (_, name, ours, eager) in enumerate(unsure):
        for result in (ours, eager):
            mismatch = judge(name, result, np.asarray(replayed[n]), np.asarray(exact[n]))
            if mismatch is not None and eager.dtype.kind == "f":
                moves = moves if moves is not None else sensitivity(graph, inputs, exact)
                mismatch = judge(name, result, np.asarray(replayed[n]), np.asarray(exact[n]), moves[n])
            if mismatch is not None:
                mismatches.append(mismatch)
                break
    return mismatches


def agrees_closely(ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any], ulps: float = CLOSE_ULPS) -> bool:
    """Whether two arrays are equal, or floats at most ``ulps`` of the largest apart.

    NaN and infinities must be in the same places.
    """
    if eager.dtype.kind != "f":
        return bool(np.array_equal(ours, eager))
    a, b = ours.reshape(-1), eager.reshape(-1)
    if a.size <= _BLOCK and a.tobytes() == b.tobytes():  # most results are bit-identical
        return True
    farthest = largest = 0.0
    with np.errstate(all="ignore"):
        for start in range(0, a.size, _BLOCK):
            x, y = a[start : start + _BLOCK], b[start : start + _BLOCK]
            distance, size = np.abs(x - y), np.abs(y)
            if not np.isfinite(np.max(distance)):
                same = (x == y) | (np.isnan(x) & np.isnan(y))
                distance, size = distance[~same], size[np.isfinite(size)]
                if not np.all(np.isfinite(distance)):
                    return False
            farthest = max(farthest, float(np.max(distance, initial=0.0)))
            largest = max(largest, float(np.max(size, initial=0.0)))
    return farthest <= ulps * float(np.finfo(eager.dtype).eps) * largest


def judge(
    name: str,
    ours: np.ndarray[Any, Any],
    eager: np.ndarray[Any, Any],
    exact: np.ndarray[Any, Any],
    moves: np.ndarray[Any, Any] | float = 0.0,
) -> Mismatch | None:
    """The mismatch of ``ours`` with eager and float64; None if it differs by rounding only.

    ``moves`` is the distance that each element moves when the inputs change by a rounding.
    """
    if eager.dtype.kind != "f":
        differing = float(np.mean(ours != eager))
        return Mismatch(f"{name} (share of elements)", differing, 1e-3) if differing > 1e-3 else None
    finite = np.isfinite(eager) & np.isfinite(exact)
    if not np.array_equal(np.isnan(ours), np.isnan(eager)):
        return Mismatch(f"{name} (NaN in other places)", np.inf, 0.0)
    unbounded = np.isinf(eager) & ~np.isnan(exact)
    if not np.array_equal(ours[unbounded], eager[unbounded]):
        return Mismatch(f"{name} (Inf in other places)", np.inf, 0.0)
    if not finite.any():
        return None
    a, b, t = (x[finite].astype(np.float64) for x in (ours, eager, exact))
    scale = float(np.max(np.abs(t), initial=0.0))
    epsilon = float(np.finfo(eager.dtype).eps)
    allowed = ERROR_FACTOR * float(np.max(np.abs(b - t))) + SLACK_ULPS * epsilon * scale
    allowed += float(np.finfo(eager.dtype).tiny)
    with np.errstate(all="ignore"):
        distance = np.abs(a - t)
        excess = distance - ERROR_FACTOR * np.broadcast_to(moves, eager.shape)[finite]
    if np.all(excess <= allowed):
        return None
    return Mismatch(name, float(np.max(distance[~(excess <= allowed)])), allowed)


def sensitivity(graph: Graph, inputs: Sequence[Any], exact: Sequence[Any]) -> list[Any]:
    """The distance that each float64 element moves when every input changes by one rounding.

    An element may depend on rounding alone: the first step of Adam is the sign of the gradient,
    also where the gradient is the rest of a cancellation. Such an element shows no mistake.
    """
    random = np.random.default_rng(0)

    def disturbed(x: Any) -> Any:
        if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind != "f":
            return x
        signs = random.choice((-1.0, 1.0), size=x.shape)
        return x.astype(np.float64) * (1.0 + signs * float(np.finfo(x.dtype).eps))

    moves: list[Any] = [0.0] * len(exact)
    with np.errstate(all="ignore"):
        for _ in range(DISTURBANCES):
            other = in_float64(graph, [disturbed(x) for x in inputs])
            for k, (a, b) in enumerate(zip(other, exact, strict=True)):
                if np.asarray(b).dtype.kind == "f":
                    moves[k] = np.maximum(moves[k], np.nan_to_num(np.abs(np.asarray(a) - np.asarray(b)), posinf=0.0))
    return moves


def in_float64(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The graph's outputs with every float computed in float64."""

    def apply(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        widened = {k: np.dtype(np.float64) if _narrow(v) else v for k, v in attrs.items()}
        return run_on_arrays(op, tuple(map(_widen, operands)), widened)

    return evaluate(graph, tuple(map(_widen, inputs)), apply)


def _narrow(x: Any) -> bool:
    return isinstance(x, np.dtype) and x.kind == "f" and x.itemsize < 8


def _widen(x: Any) -> Any:
    return x.astype(np.float64) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "f" else x


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

