"""The list of passes, in order, and the function that runs and verifies them."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence

from jitgrad.compiler.isomorphic import OutlinedGraph, alone, outline
from jitgrad.compiler.loops.merge_loops import merge_loops
from jitgrad.compiler.passes.batch_products import batch_products
from jitgrad.compiler.passes.block_convolutions import block_convolutions
from jitgrad.compiler.passes.canonicalize_reductions import canonicalize_reductions
from jitgrad.compiler.passes.cleanup import eliminate_common, eliminate_dead
from jitgrad.compiler.passes.decompose_complex import decompose_complex
from jitgrad.compiler.passes.decompose_matvec import decompose_matvec
from jitgrad.compiler.passes.distribute_mean_gradient import distribute_mean_gradient
from jitgrad.compiler.passes.fuse import fuse
from jitgrad.compiler.passes.gather_places import gather_places
from jitgrad.compiler.passes.gradient_rules import drop_gradient_rules
from jitgrad.compiler.passes.hoist_small_reductions import hoist_small_reductions
from jitgrad.compiler.passes.insert_copies import insert_copies
from jitgrad.compiler.passes.join_places import join_places
from jitgrad.compiler.passes.materialize_transposes import materialize_transposes
from jitgrad.compiler.passes.merge_pads import merge_pads
from jitgrad.compiler.passes.read_at_offsets import read_at_offsets
from jitgrad.compiler.passes.read_parts import read_parts
from jitgrad.compiler.passes.read_tables import read_tables
from jitgrad.compiler.passes.recompute_outer import recompute_outer
from jitgrad.compiler.passes.rolls import lower_rolls, recognize_rolls
from jitgrad.compiler.passes.simplify import simplify
from jitgrad.compiler.passes.sink_transposes import sink_transposes
from jitgrad.compiler.passes.slices import insert_slices, push_slices_up
from jitgrad.compiler.passes.split_at_joints import split_at_joints
from jitgrad.compiler.passes.transpose_first import transpose_first
from jitgrad.compiler.passes.unroll_axes import unroll_axes
from jitgrad.compiler.passes.unroll_reductions import unroll_reductions
from jitgrad.compiler.passes.upcast_fp16 import upcast_fp16_reductions
from jitgrad.compiler.tuning import Tuning
from jitgrad.compiler.verify import verify, verify_order
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.ir import Graph, format_graph
from jitgrad.core.missing_names import meant

Watcher = Callable[[str, Graph], None]


class Pass:
    """A function from graph to graph, and why it has its place among the others.

    ``run`` takes the graph, and the target's `Tuning` as ``tuning`` if it has thresholds. ``required`` says
    why programs would be wrong without it; what only makes them fast is not required.
    """

    def __init__(self, run: Callable[..., Graph], reason: str, required: str = "") -> None:
        self.run = run
        self.reason = reason
        self.required = required
        self.name: str = run.__name__
        self._is_tuned = "tuning" in inspect.signature(run).parameters

    def __call__(self, graph: Graph, tuning: Tuning) -> Graph:
        return self.run(graph, tuning) if self._is_tuned else self.run(graph)


_READ = "kernels are made for values that something reads"

PASSES: tuple[Pass, ...] = (
    Pass(eliminate_dead, "traces hold values that nothing reads; no other pass should look at them", _READ),
    Pass(merge_loops, "before the passes that would compute twice what two loops compute"),
    Pass(decompose_complex, "before simplify, which also simplifies the parts; kernels know real numbers only"),
    Pass(simplify, "constants and identities would hide the patterns that the other passes match"),
    Pass(
        upcast_fp16_reductions,
        "all passes below see the dtype in which sums and products accumulate",
        "sums of float16 accumulate in float32",
    ),
    Pass(block_convolutions, "before products of one row become sums, and before reductions change"),
    Pass(decompose_matvec, "before the passes over reductions and transposes: its sums are some of theirs"),
    Pass(sink_transposes, "before the passes over reductions: it changes the axes of those that read transposes"),
    Pass(transpose_first, "after sink_transposes, which moves transpositions as far as they go"),
    Pass(distribute_mean_gradient, "before reductions are cut in pieces or in two: it matches whole sums"),
    Pass(unroll_axes, "before reductions become reductions of rows, which those over short axes need not be"),
    Pass(canonicalize_reductions, "after all passes that change the axes of reductions"),
    Pass(unroll_reductions, "after reductions in two steps, the second of which may have few rows"),
    Pass(read_parts, "after unroll_axes, which reads joined arrays in pieces; before slices move"),
    Pass(eliminate_common, "the passes above emit equal slices and transposes; those below count readers"),
    Pass(recompute_outer, "after the passes over reductions and the last one that computes equal values once"),
    Pass(recognize_rolls, "before slices move, of which it joins two; after equal slices are one"),
    Pass(gather_places, "before slices move up: those of the sums that it makes move up to what is put into zeros"),
    Pass(push_slices_up, "before the parts of a whole get their places: it gives each part a kernel of its own"),
    Pass(lower_rolls, "after the last pass that moves slices", "kernels read slices, and have no form for a shift"),
    Pass(merge_pads, "before insert_slices, which replaces every `place`"),
    Pass(join_places, "before insert_slices, which makes one array of the places that it adds up"),
    Pass(insert_slices, "before products are batched: a value can be written to one place only"),
    Pass(read_at_offsets, "after insert_slices, which makes one whole of all parts; before it is split into boxes"),
    Pass(split_at_joints, "after insert_slices, which makes one whole of all parts"),
    Pass(batch_products, "after insert_slices, whose results are rows that products can share"),
    Pass(materialize_transposes, "after batching: it counts the products that stay small"),
    Pass(hoist_small_reductions, "after all passes that change what leads to a reduction"),
    Pass(eliminate_dead, "the passes above leave nodes whose results they replaced", _READ),
    Pass(read_tables, "after all passes that move or repeat elementwise ops, which would move its loads"),
    Pass(
        insert_copies,
        "after the last change of movement: it decides which movement is a view",
        "kernels and library calls cannot read every view",
    ),
    Pass(fuse, "last: no pass looks into kernels"),
)

_DEFAULTS = Tuning()


def switched(passes: Sequence[Pass], switches: Mapping[str, bool]) -> tuple[Pass, ...]:
    """``passes`` without those for which ``switches``, by name, has False.

    Raises:
        ArgumentError: for a name that no pass has, and for one that programs cannot do without.
    """
    known = {step.name: step for step in passes}
    for name, used in switches.items():
        if name not in known:
            optional = ", ".join(dict.fromkeys(step.name for step in passes if not step.required))
            raise ArgumentError(f"passes: there is no pass {shown(name)}{meant(str(name), known)}: expected {optional}")
        if not used and known[name].required:
            raise ArgumentError(f"passes: {name!r} cannot be switched off: {known[name].required}")
    return tuple(step for step in passes if switches.get(step.name, True))


def ignore(stage: str, graph: Graph) -> None:
    """The watcher that does nothing."""


def run_passes(
    graph: Graph, passes: Sequence[Pass] = PASSES, watch: Watcher = ignore, tuning: Tuning = _DEFAULTS
) -> Graph:
    """Apply ``passes`` in order, verifying after each and showing each result to ``watch``.

    A target that needs passes of its own inserts them in `PASSES` and gives the result as ``passes``. Of isomorphic
    parts only one goes through the passes (`jitgrad.compiler.isomorphic`); ``inline`` is the whole program again.

    JITGRAD_VERIFY=0 never verifies, 1 verifies the trace and the last result, 2 verifies whatever a pass has changed.
    """
    level = config.read("JITGRAD_VERIFY")
    if level >= 1:
        verify_order(graph)
    watch("trace", graph)

    def run(outlined: OutlinedGraph) -> tuple[Graph, ...]:
        graphs = outlined.graphs
        if level >= 1:
            for part in graphs:
                verify(part)
        for k, step in enumerate(passes):
            verified, graphs = graphs, tuple([step(part, tuning) for part in graphs])
            if level >= 2 or (level == 1 and k == len(passes) - 1):
                for part in graphs if level == 1 else [g for g in graphs if g not in verified]:
                    verify(part, after=step.name)
            if watch is not ignore:
                watch(step.name, outlined.shown(graphs))
        return graphs

    graph = drop_gradient_rules(graph)  # before parts are compared: each node has a rule of its own
    outlined = outline(graph, tuning)
    result = outlined.inline(run(outlined))
    if result is None:
        outlined = alone(graph)
        (result,) = run(outlined)
    if len(outlined.graphs) > 1:
        if level >= 1:
            verify_order(result, after="inline")
        watch("inline", result)
    return result


def dump_to(folder: str, name: str) -> Watcher:
    """A watcher that writes ``<name>.<k>_<stage>.txt`` for every stage."""
    os.makedirs(folder, exist_ok=True)
    numbers = itertools.count()

    def watch(stage: str, graph: Graph) -> None:
        path = os.path.join(folder, f"{name}.{next(numbers)}_{stage}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(format_graph(graph) + "\n")

    return watch
