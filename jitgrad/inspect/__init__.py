"""Explanations, kernels, graphs, reports, and the comparison with eager; imports everything below it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from jitgrad.core.errors import ArgumentError, DeviceError
from jitgrad.core.ir import Graph
from jitgrad.inspect.compare import Comparison, compare
from jitgrad.inspect.explain import Explanation, explain
from jitgrad.inspect.kernels import KernelView, kernel_views
from jitgrad.inspect.replay import Replay, replay
from jitgrad.inspect.stages import stage as stage_named
from jitgrad.inspect.timing import backward_inputs, program_inputs, step_times
from jitgrad.jit.decorator import JitFunction
from jitgrad.jit.executable import Executable
from jitgrad.jit.shape_struct import with_tensors

__all__ = ["Comparison", "Explanation", "KernelView", "Replay", "compare"]


def _explain(self: JitFunction, *args: Any, measure: bool = False, **kwargs: Any) -> Explanation:
    """The compiled programs for these arguments: steps, bytes, and ops that were not fused, with the reason.

    ``measure`` also runs every step on copies of the inputs and adds times; the function's state does not change.
    """
    args, kwargs = _arguments(self, args, kwargs)
    call = self._signature.take(args, kwargs)
    compiled = self.find_executable(call)
    explanation = explain(compiled)
    if not measure:
        return explanation
    if explanation.device != "cpu":
        raise DeviceError(
            f"explain(measure=True) of @jit function {self.name!r}: it runs on {explanation.device}, and single steps are "
            "timed on the host only. jg.compare times the whole function"
        )
    inputs = program_inputs(compiled, call.leaves)
    of_backward = backward_inputs(compiled, inputs) if explanation.backward is not None else []
    explanation = explanation.timed(step_times(compiled.program, inputs))
    if explanation.backward is None:
        return explanation
    return replace(explanation, backward=explanation.backward.timed(step_times(compiled.op.backward, of_backward)))


def _kernels(self: JitFunction, *args: Any, **kwargs: Any) -> list[KernelView]:
    """The kernels for these arguments, one for each launch; those of backward follow those of forward."""
    return kernel_views(_executable(self, args, kwargs))


def _compile(self: JitFunction, *args: Any, **kwargs: Any) -> Explanation:
    """Compile ahead of time for these arguments, without a call; print the result to see the program.

    An argument may be a :class:`jitgrad.ShapeDtypeStruct` instead of a tensor. The next call with such arguments
    compiles nothing. It still makes the first-call check, and its guards decide as always whether the program fits.
    """
    compiled = _executable(self, args, kwargs)
    compiled.program.prepare()
    if compiled.traced.differentiable:
        compiled.op.backward.prepare()
    return explain(compiled)


def _executable(self: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Executable:
    args, kwargs = _arguments(self, args, kwargs)
    return self.lookup(*args, **kwargs)


def _arguments(
    self: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with tensors for those without data. Raises ArgumentError if the function does not take them."""
    try:
        inspect.signature(self.eager).bind(*args, **kwargs)
    except TypeError as problem:
        raise ArgumentError(
            f"the program of @jit function {self.name!r} depends on its arguments: give those of a call, as in "
            f"f.kernels(x, y), or jitgrad.ShapeDtypeStruct(shape, dtype) in their place ({problem})"
        ) from None
    except ValueError:  # no signature is known
        pass
    return with_tensors(args, kwargs)


def _graph(self: JitFunction, *args: Any, stage: str = "trace", **kwargs: Any) -> Graph:
    """The program for these arguments after the pass ``stage``; print it.

    Raises:
        ArgumentError: there is no such stage; the message lists all.
    """
    return stage_named(_executable(self, args, kwargs), stage)


def _report(self: JitFunction, path: Any, *args: Any, measure: bool = False, **kwargs: Any) -> None:
    """Write the explanation, kernels and graphs for these arguments to one self-contained HTML file."""
    from jitgrad.inspect.report import write_report  # jinja2 and pygments take longer to import than all of jitgrad

    write_report(path, _executable(self, args, kwargs), _explain(self, *args, measure=measure, **kwargs))


# jit may not import this room, so its methods that need it are attached here.
JitFunction.explain = _explain  # type: ignore[attr-defined]
JitFunction.compile = _compile  # type: ignore[attr-defined]
JitFunction.kernels = _kernels  # type: ignore[attr-defined]
JitFunction.graph = _graph  # type: ignore[attr-defined]
JitFunction.report = _report  # type: ignore[attr-defined]
JitFunction.replay = replay  # type: ignore[attr-defined]
