"""The graph of one compiled call after every pass, by name."""

from __future__ import annotations

from jitgrad.compiler.pipeline import run_passes
from jitgrad.core.errors import ArgumentError
from jitgrad.core.ir import Graph
from jitgrad.jit.executable import Executable
from jitgrad.runtime.program import Program


def pass_graphs(graph: Graph, program: Program) -> dict[str, Graph]:
    """``graph`` after each pass of ``program``; one that runs twice is ``eliminate_dead`` and ``eliminate_dead.2``."""
    graphs: dict[str, Graph] = {}
    times: dict[str, int] = {}

    def watch(stage: str, result: Graph) -> None:
        times[stage] = times.get(stage, 0) + 1
        graphs[stage if times[stage] == 1 else f"{stage}.{times[stage]}"] = result

    run_passes(graph, program.target.passes, watch, program.tuning)
    return graphs


def stages(compiled: Executable) -> dict[str, Graph]:
    """All graphs of ``compiled``, from the trace to the last pass.

    Of a differentiable function, ``joint`` is forward and backward as one program, ``forward`` and ``backward`` are its
    two parts, and the passes over the latter are called ``backward.<pass>``.
    """
    traced = compiled.traced
    if not has_backward(compiled):
        return pass_graphs(program_graph(compiled), compiled.program)
    split = compiled.op.split
    graphs = {"trace": traced.graph, "joint": compiled.op.joint.graph, "forward": split.forward}
    forward = pass_graphs(split.forward, compiled.op.forward)
    backward = pass_graphs(split.backward, compiled.op.backward)
    graphs.update((name, g) for name, g in forward.items() if name != "trace")
    graphs["backward"] = split.backward
    graphs.update((f"backward.{name}", g) for name, g in backward.items() if name != "trace")
    return graphs


def has_backward(compiled: Executable) -> bool:
    """Whether ``compiled`` has a backward program: some gradient reaches some input."""
    return bool(compiled.traced.differentiable) and any(compiled.op.joint.flows)


def program_graph(compiled: Executable) -> Graph:
    """The input of the passes: the trace, or the forward part of a differentiable function."""
    return compiled.op.split.forward if compiled.traced.differentiable else compiled.traced.graph


def stage(compiled: Executable, name: str) -> Graph:
    """One of `stages`. Raises ArgumentError, listing the names, if there is none called ``name``."""
    graphs = stages(compiled)
    if name not in graphs:
        raise ArgumentError(f"graph: no stage {name!r}; this function has {', '.join(graphs)}")
    return graphs[name]
