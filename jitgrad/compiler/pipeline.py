"""The passes, in order, written once; what watches them; and the verifier between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from jitgrad.compiler.isomorphic import OutlinedGraph, alone, outline
from jitgrad.compiler.passes.batch_products import batch_products
from jitgrad.compiler.passes.canonicalize_reductions import canonicalize_reductions
from jitgrad.compiler.passes.cleanup import eliminate_common, eliminate_dead
from jitgrad.compiler.passes.decompose_matvec import decompose_matvec
from jitgrad.compiler.passes.distribute_mean_gradient import distribute_mean_gradient
from jitgrad.compiler.passes.fuse import fuse
from jitgrad.compiler.passes.hoist_small_reductions import hoist_small_reductions
from jitgrad.compiler.passes.insert_copies import insert_copies
from jitgrad.compiler.passes.materialize_transposes import materialize_transposes
from jitgrad.compiler.passes.simplify import simplify
from jitgrad.compiler.passes.sink_transposes import sink_transposes
from jitgrad.compiler.passes.slices import insert_slices, merge_pads, push_slices_up
from jitgrad.compiler.passes.unroll_axes import unroll_axes
from jitgrad.compiler.passes.unroll_reductions import unroll_reductions
from jitgrad.compiler.passes.upcast_fp16 import upcast_fp16_reductions
from jitgrad.compiler.verify import verify, verify_order
from jitgrad.core import config
from jitgrad.core.ir import Graph, format_graph

Pass = Callable[[Graph], Graph]
Watcher = Callable[[str, Graph], None]

PASSES: tuple[Pass, ...] = (
    eliminate_dead,
    simplify,
    upcast_fp16_reductions,
    decompose_matvec,
    sink_transposes,
    distribute_mean_gradient,
    unroll_axes,
    canonicalize_reductions,
    unroll_reductions,
    eliminate_common,
    push_slices_up,
    merge_pads,
    insert_slices,
    batch_products,
    materialize_transposes,
    hoist_small_reductions,
    eliminate_dead,
    insert_copies,
    fuse,
)


def ignore(stage: str, graph: Graph) -> None:
    """The watcher that does not look."""


def run_passes(graph: Graph, passes: Sequence[Pass] = PASSES, watch: Watcher = ignore) -> Graph:
    """Apply ``passes`` in order, verifying after each and showing each result to ``watch``.

    Of parts that are alike only one goes through the passes (`jitgrad.compiler.isomorphic`); the last stage, ``inline``, is
    what all of them become.

    JITGRAD_VERIFY=0 never verifies, 1 verifies the trace and the last result, 2 verifies after every pass.
    """
    level = config.read("JITGRAD_VERIFY")
    if level >= 1:
        verify_order(graph)
    watch("trace", graph)
    outlined = outline(graph)
    graphs = _run(outlined, passes, watch, level)
    result = outlined.inline(graphs)
    if result is None:
        outlined = alone(graph)
        (result,) = _run(outlined, passes, watch, level)
    if len(outlined.graphs) > 1:
        if level >= 1:
            verify_order(result, after="inline")
        watch("inline", result)
    return result


def _run(outlined: OutlinedGraph, passes: Sequence[Pass], watch: Watcher, level: int) -> tuple[Graph, ...]:
    """What ``passes`` make of each graph of ``outlined``."""
    graphs = outlined.graphs
    if level >= 1:
        for graph in graphs:
            verify(graph)
    for k, run in enumerate(passes):
        graphs = tuple([run(graph) for graph in graphs])
        if level >= 2 or (level == 1 and k == len(passes) - 1):
            for graph in graphs:
                verify(graph, after=run.__name__)
        if watch is not ignore:
            watch(run.__name__, outlined.shown(graphs))
    return graphs


def dump_to(folder: str, name: str) -> Watcher:
    """A watcher that writes ``<name>.<k>_<stage>.txt`` for every stage."""
    os.makedirs(folder, exist_ok=True)
    seen: list[str] = []

    def watch(stage: str, graph: Graph) -> None:
        path = os.path.join(folder, f"{name}.{len(seen)}_{stage}.txt")
        seen.append(stage)
        with open(path, "w", encoding="utf-8") as file:
            file.write(format_graph(graph) + "\n")

    return watch
