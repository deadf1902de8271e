"""The passes, in order, written once; what watches them; and the verifier between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from jitgrad.compiler.isomorphic import Folded, alone, fold
from jitgrad.compiler.passes.batch_products import batch_products
from jitgrad.compiler.passes.canonicalize_reductions import spell_reductions
from jitgrad.compiler.passes.cleanup import eliminate_common, eliminate_dead
from jitgrad.compiler.passes.decompose_matvec import spell_vector_products
from jitgrad.compiler.passes.distribute_mean_gradient import sum_terms_apart
from jitgrad.compiler.passes.fuse import fuse
from jitgrad.compiler.passes.hoist_small_reductions import isolate
from jitgrad.compiler.passes.insert_copies import insert_copies
from jitgrad.compiler.passes.materialize_transposes import turn_shared_factors
from jitgrad.compiler.passes.simplify import simplify
from jitgrad.compiler.passes.sink_transposes import sink_permutations
from jitgrad.compiler.passes.slices import assemble, share_places, split_elementwise
from jitgrad.compiler.passes.unroll_axes import unroll_short_axes
from jitgrad.compiler.passes.unroll_reductions import unroll_short_reductions
from jitgrad.compiler.passes.upcast_fp16 import widen_halves
from jitgrad.compiler.verify import verify, verify_order
from jitgrad.core import config
from jitgrad.core.ir import Graph, format_graph

Pass = Callable[[Graph], Graph]
Watcher = Callable[[str, Graph], None]

PASSES: tuple[Pass, ...] = (
    eliminate_dead,
    simplify,
    widen_halves,
    spell_vector_products,
    sink_permutations,
    sum_terms_apart,
    unroll_short_axes,
    spell_reductions,
    unroll_short_reductions,
    eliminate_common,
    split_elementwise,
    share_places,
    assemble,
    batch_products,
    turn_shared_factors,
    isolate,
    eliminate_dead,
    insert_copies,
    fuse,
)


def ignore(stage: str, graph: Graph) -> None:
    """The watcher that does not look."""


def run_passes(graph: Graph, passes: Sequence[Pass] = PASSES, watch: Watcher = ignore) -> Graph:
    """Apply ``passes`` in order, verifying after each and showing each result to ``watch``.

    Of parts that are alike only one goes through the passes (`jitgrad.compiler.isomorphic`); the last stage, ``unfold``, is
    what all of them become.

    JITGRAD_VERIFY=0 never verifies, 1 verifies the trace and the last result, 2 verifies after every pass.
    """
    level = config.read("JITGRAD_VERIFY")
    if level >= 1:
        verify_order(graph)
    watch("trace", graph)
    folded = fold(graph)
    graphs = _run(folded, passes, watch, level)
    result = folded.unfold(graphs)
    if result is None:
        folded = alone(graph)
        (result,) = _run(folded, passes, watch, level)
    if len(folded.graphs) > 1:
        if level >= 1:
            verify_order(result, after="unfold")
        watch("unfold", result)
    return result


def _run(folded: Folded, passes: Sequence[Pass], watch: Watcher, level: int) -> tuple[Graph, ...]:
    """What ``passes`` make of each graph of ``folded``."""
    graphs = folded.graphs
    if level >= 1:
        for graph in graphs:
            verify(graph)
    for k, run in enumerate(passes):
        graphs = tuple([run(graph) for graph in graphs])
        if level >= 2 or (level == 1 and k == len(passes) - 1):
            for graph in graphs:
                verify(graph, after=run.__name__)
        if watch is not ignore:
            watch(run.__name__, folded.shown(graphs))
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
