"""Compares fused with eager execution: first the results, then the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jitgrad.autograd.backward import gradients
from jitgrad.core import config
from jitgrad.core.device_array import to_host
from jitgrad.core.errors import ArgumentError
from jitgrad.core.ir import Graph
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import synchronize
from jitgrad.eager.large_arrays import allowing_kernels
from jitgrad.inspect.explain import Explanation, explain
from jitgrad.inspect.roofline import MIN_BYTES, Roofline
from jitgrad.inspect.stages import has_backward
from jitgrad.inspect.timing import Timing, program_inputs, readable_seconds, time_in_turn
from jitgrad.inspect.traffic import eager_traffic, readable_bytes
from jitgrad.jit.complex_pairs import as_pairs
from jitgrad.jit.decorator import JitFunction
from jitgrad.jit.executable import Executable
from jitgrad.jit.first_call_check import named_outputs, shown_part
from jitgrad.jit.output_views import ResultView
from jitgrad.jit.program_cache import CacheInfo
from jitgrad.jit.rounding_judge import find_mismatches
from jitgrad.jit.signature import Call
from jitgrad.jit.snapshot import Snapshot
from jitgrad.jit.switch import disable_jit
from jitgrad.ops.placement import move

Named = dict[Any, tuple[str, np.ndarray[Any, Any]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The distance of one fused result, gradient or new state from the eager one.

    ``absolute`` is the largest difference of an element, ``relative`` that divided by the largest element, ``ulps``
    the same in units of the dtype's rounding error (0 for integers). ``problem`` is empty if rounding explains it.
    """

    what: str
    absolute: float
    relative: float
    ulps: float
    problem: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of `compare`; printing it shows a table.

    Attributes:
        name: of the function.
        backward: whether each timed call also ran backward to all inputs that require grad.
        differences: one for every result, gradient and change of state.
        eager, fused: seconds of a call.
        first_call: seconds of the first compiled call: tracing, compiling, running.
        compiles: counters of that call.
        eager_ops, eager_bytes: ops, and bytes moved, of eager execution.
        explanation: the steps of the compiled programs.
        copy_seconds: the time of copies of as many bytes as each kernel of 256 kB and more reads and writes, one
            after the other: what memory alone takes. 0.0 on a device, and without such kernels.
    """

    name: str
    backward: bool
    differences: tuple[Difference, ...]
    eager: Timing
    fused: Timing
    first_call: float
    compiles: CacheInfo
    eager_ops: int
    eager_bytes: int
    explanation: Explanation
    copy_seconds: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether every result, gradient and change of state equals the eager one within rounding."""
        return not any(d.problem for d in self.differences)

    @property
    def speedup(self) -> float:
        """Median eager time over median fused time."""
        return self.eager.median / self.fused.median

    @property
    def max_error(self) -> Difference | None:
        """The largest difference, in units of rounding error; None if the function computes nothing."""
        return max(self.differences, key=lambda d: (bool(d.problem), d.ulps, d.absolute), default=None)

    @property
    def programs(self) -> list[Explanation]:
        """The explanations of the programs that a timed call runs: one, or forward and backward."""
        return [e for e in (self.explanation, self.explanation.backward) if e is not None]

    @property
    def kernels(self) -> int:
        return sum(e.fused for e in self.programs)

    @property
    def launches(self) -> int:
        return sum(e.launches for e in self.programs)

    @property
    def fused_bytes(self) -> int:
        return sum(e.bytes_read + e.bytes_written for e in self.programs)

    def __rich__(self) -> Any:
        from jitgrad.inspect.tables import rich_table

        verdict = "agrees with eager" if self.agrees else "DISAGREES with eager"
        what = "forward + backward" if self.backward else "one call"
        return rich_table(f"{self.name} ({what}): {self.speedup:.2f}x, {verdict}", ("", "eager", "fused"), self._rows())

    def __str__(self) -> str:
        from jitgrad.inspect.tables import as_text

        return as_text(self.__rich__())

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        """(measure, eager value, fused value)."""
        yield "time, median (10% .. 90%)", str(self.eager), str(self.fused)
        yield "first call", "", readable_seconds(self.first_call)
        kernels = "1 kernel" if self.kernels == 1 else f"{self.kernels} kernels"
        yield "ops or launches", str(self.eager_ops), f"{self.launches} ({kernels})"
        yield "bytes moved at least", readable_bytes(self.eager_bytes), readable_bytes(self.fused_bytes)
        if self.copy_seconds:
            part = f"{self.copy_seconds / self.fused.median:.0%} of the time"
            yield "copies of the kernels' bytes", "", f"{readable_seconds(self.copy_seconds)} ({part})"
        compiles = f"{self.compiles.kernels_compiled} compiled, {self.compiles.kernels_from_disk} from disk"
        yield "kernels made", "", compiles
        worst = self.max_error
        if worst is not None:
            error = "0" if worst.absolute == 0 else f"{worst.relative:.2g} relative, {worst.ulps:.2g} ulp"
            yield f"largest error: {worst.what}", "", error
        for d in self.differences:
            if d.problem:
                yield f"WRONG: {d.what}", "", d.problem


def compare(f: Callable[..., Any], *args: Any, seconds: float = 2.0, **kwargs: Any) -> Comparison:
    """Check ``f`` compiled against ``f`` run eagerly on these arguments, then time both for about ``seconds``.

    It compares the results, every change of outside state (parameters, ``.grad``, optimiser state, random numbers), and
    the gradients of a randomly weighted sum of the results to all inputs that require grad. The state is restored after
    every run, so the user's tensors do not change.

    Args:
        f: a function, or the result of ``jg.jit``, whose own programs and counters do not change.

    Raises:
        TracedValueError, UnguardableError: ``f`` cannot be compiled.
        ArgumentError: JITGRAD_DISABLE or JITGRAD_CHECK=always is set, which leaves nothing to compare.
    """
    if config.read("JITGRAD_DISABLE") or config.read("JITGRAD_CHECK") == "always":
        raise ArgumentError("compare: JITGRAD_DISABLE and JITGRAD_CHECK=always leave no compiled program to time")
    return _Run(_fresh(f), args, kwargs).compare(seconds)


def _fresh(f: Callable[..., Any]) -> JitFunction:
    """``f`` as a new @jit function without programs and without the first-call check."""
    if not isinstance(f, JitFunction):
        return JitFunction(f, check="off")
    options = {**asdict(f.options), "check": "off", "background": False}
    new = JitFunction(f.eager, **options)  # donates nothing: the next call needs the arguments again
    new._signature = f._signature
    return new


def copies_of_kernels(explanation: Explanation) -> float:
    """Seconds of copies of the bytes of each kernel on the host, of those with enough bytes to measure."""
    roofline, seconds = Roofline(), 0.0
    for program in filter(None, (explanation, explanation.backward)):
        for step in program.steps if program.device == "cpu" else ():
            nbytes = step.bytes_read + step.bytes_written
            if step.kind == "fused" and nbytes >= MIN_BYTES:
                seconds += roofline.copy_seconds(nbytes)
    return seconds


class _Run:
    """One comparison: the function, its call, and the state that the call changes."""

    def __init__(self, function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.call: Call = function._signature.take(args, kwargs)
        self.started = time.perf_counter()
        self.compiled: Executable = function.find_executable(self.call)
        traced = self.compiled.traced
        self.snapshot = Snapshot(traced, self.call.leaves)
        self.targets = self.compiled.targets(self.call.leaves)
        self.leaves = [traced.sources[k].resolve(self.call.leaves) for k in traced.wants_grad]
        self.backward = has_backward(self.compiled)
        self.inputs = program_inputs(self.compiled, self.call.leaves)
        random = np.random.default_rng(0)
        self.seeds = [
            random.standard_normal(a.shape).astype(a.dtype)
            for a in (traced.graph.outputs[k].aval for k in traced.differentiable)
        ]
        self.hidden: dict[int, list[ResultView]] = traced.hidden()
        for k, seed in zip(traced.differentiable, self.seeds, strict=True):
            if k in self.hidden:
                seed[...] = shown_part(seed, self.hidden[k][:1])

    def compare(self, seconds: float) -> Comparison:
        try:
            self.run_fused()
            first_call = time.perf_counter() - self.started
            self.snapshot.restore()
            fused = self.observe(self.run_fused())
            self.snapshot.restore()
            eager = self.observe(self.run_eager())
            differences = self.differences(fused, eager)
            self.snapshot.restore()
            timings = time_in_turn([self.waiting(self.run_as_users_do), self.waiting(self.run_fused)], seconds)
        finally:
            self.snapshot.restore()
        explanation = explain(self.compiled)
        graph = self.compiled.op.joint.graph if self.backward else self.compiled.traced.graph
        return Comparison(
            name=self.function.name,
            backward=self.backward,
            differences=tuple(differences),
            eager=timings[0],
            fused=timings[1],
            first_call=first_call,
            compiles=self.function.cache_info(),
            eager_ops=len(graph.nodes),
            eager_bytes=eager_traffic(graph),
            explanation=explanation,
            copy_seconds=copies_of_kernels(explanation),
        )

    # --- running -------------------------------------------------------------------------------------------------

    def run_fused(self) -> tuple[Any, list[Tensor | None]]:
        return self.with_gradients(self.function(*self.args, **self.kwargs))

    def run_eager(self) -> tuple[Any, list[Tensor | None]]:
        with disable_jit():
            return self.with_gradients(self.function.eager(*self.args, **self.kwargs))

    def run_as_users_do(self) -> None:
        """The eager run, with kernels for large arrays; what results are compared with has none."""
        with disable_jit(), allowing_kernels(True):
            self.with_gradients(self.function.eager(*self.args, **self.kwargs))

    def with_gradients(self, result: Any) -> tuple[Any, list[Tensor | None]]:
        """(the result, the gradients of its weighted sum to every input that requires grad)."""
        if not self.backward:
            return result, []
        outs: list[Tensor] = []
        seeds: list[Tensor] = []
        traced = self.compiled.traced
        of_output = dict(zip(traced.differentiable, self.seeds, strict=True))
        for spec, (_, x) in zip(traced.made_by_calls, traced.observed(result, self.call.leaves), strict=True):
            if spec.output in of_output:
                outs.append(x)
                seeds.append(move(Tensor(of_output.pop(spec.output).copy()), x.device))
            elif spec.base in self.hidden and spec.base in of_output and spec.view is not None:
                outs.append(x)  # its seed is zero but for this view
                seeds.append(move(Tensor(spec.view.array_of(of_output.pop(spec.base)).copy()), x.device))
        return result, gradients(outs, seeds, self.leaves)

    def waiting(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """``run``, which ends when a device has done the work."""
        if self.compiled.program.target.device == "cpu":
            return run

        def run_and_wait() -> None:
            run()
            synchronize()

        return run_and_wait

    # --- checking ------------------------------------------------------------------------------------------------

    def observe(self, ran: tuple[Any, list[Tensor | None]]) -> Named:
        """Copies of all results, gradients and new states of a run, with their names; the state is restored after it."""
        result, grads = ran
        observed: Named = dict(named_outputs(self.compiled, result, self.call.leaves, self.targets))
        for k, g in zip(self.compiled.traced.wants_grad, grads, strict=False):
            if g is not None:
                name = f"gradient to {self.compiled.traced.describe(self.compiled.traced.sources[k])}"
                observed["gradient", k] = (name, g._data)
        return {key: (name, np.array(to_host(x))) for key, (name, x) in observed.items()}

    def reference(self) -> tuple[Graph, list[np.ndarray[Any, Any]], list[Any]]:
        """(the recorded program, its inputs, the keys of its outputs in `observe`)."""
        traced = self.compiled.traced
        if not self.backward:
            return traced.graph, self.inputs, list(range(len(traced.graph.outputs)))
        joint = self.compiled.op.joint
        flowing = [("gradient", k) for k, flows in zip(traced.wants_grad, joint.flows, strict=True) if flows]
        return joint.graph, [*self.inputs, *self.seeds], [*range(joint.outputs), *flowing]

    def differences(self, fused: Named, eager: Named) -> list[Difference]:
        graph, inputs, keys = self.reference()
        both = {k: (eager[key][0], fused[key][1], eager[key][1]) for k, key in enumerate(keys) if key in eager and key in fused}
        problems = {m.output: str(m) for m in find_mismatches(graph, inputs, both)}
        position = {key: k for k, key in enumerate(keys)}
        differences = []
        for key in [*eager, *(k for k in fused if k not in eager)]:
            name = (eager.get(key) or fused[key])[0]
            if key not in eager or key not in fused:
                only = "eager" if key in eager else "fused"
                differences.append(Difference(name, np.inf, np.inf, np.inf, f"only {only} has it"))
            else:
                differences.append(_difference(name, fused[key][1], eager[key][1], problems.get(position[key], "")))
        return differences


def _difference(name: str, fused: np.ndarray[Any, Any], eager: np.ndarray[Any, Any], problem: str) -> Difference:
    if fused.shape != eager.shape:
        return Difference(name, np.inf, np.inf, np.inf, problem)
    fused, eager = as_pairs(fused), as_pairs(eager)
    with np.errstate(all="ignore"):
        apart = np.abs(fused.astype(np.float64) - eager.astype(np.float64))
        absolute = float(np.max(apart[np.isfinite(apart)], initial=0.0))
        size = np.abs(eager.astype(np.float64))
        scale = float(np.max(size[np.isfinite(size)], initial=0.0))
    relative = absolute / scale if scale else (np.inf if absolute else 0.0)
    ulps = relative / float(np.finfo(eager.dtype).eps) if eager.dtype.kind == "f" else 0.0
    return Difference(name, absolute, relative, ulps, problem)
