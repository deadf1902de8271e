"""The plan of an ejected program: every kernel row by row, in one block."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from jitgrad.backends.targets import find_target
from jitgrad.compiler.loops.unroll import unroll_loops
from jitgrad.compiler.lowering.kernel_ir import KernelForm, Schedule
from jitgrad.compiler.lowering.kernel_reuse import GroupStructures, lower_groups
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.compiler.pipeline import run_passes
from jitgrad.compiler.placement import place_values
from jitgrad.compiler.plan import Plan
from jitgrad.compiler.planner import make_plan
from jitgrad.core.gc_paused import gc_paused
from jitgrad.core.ir import Graph, Value


def single_block(nest: LoopNest) -> Schedule:
    """Rows in order, elements in order, nothing in blocks: the plainest loops there are."""
    sizes = nest.outer_sizes or nest.inner_sizes[:1]
    iterations = prod(sizes)
    return Schedule(KernelForm.ROWS, iterations, max(1, iterations))


@gc_paused()
def plan_of(graph: Graph, updates: Mapping[int, Value]) -> Plan:
    """The plan of ``graph`` after the passes of the cpu target; ``updates`` maps outputs to the inputs whose memory
    they take."""
    target = find_target("cpu")
    fused = run_passes(unroll_loops(graph), target.passes, tuning=target.tuning)
    structures = GroupStructures()
    placement = place_values(fused, {fused.outputs[k]: value for k, value in updates.items()}, (), structures)
    return make_plan(placement, lower_groups(placement.groups, structures, single_block))
