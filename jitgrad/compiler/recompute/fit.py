"""Plans a program anew so that its temporaries fit a memory budget, and says so if they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jitgrad.compiler.lowering.layout import Buffer, BufferRole
from jitgrad.compiler.memory.arena import arena, packed
from jitgrad.compiler.plan import BlockRun, Limited, Plan, Step
from jitgrad.compiler.planner import touched_by
from jitgrad.compiler.recompute.copies import run_with_buffers, with_buffers
from jitgrad.compiler.recompute.simulate import Execution, NoRoom, simulate
from jitgrad.compiler.recompute.units import Model, total_cost

_ATTEMPTS = 8  # with ever less memory on paper, because places in the arena leave gaps


@dataclass(frozen=True, slots=True)
class FittedPlan:
    """A plan, and the weight of all that it computes."""

    plan: Plan
    cost: float


def fit_plan(plan: Plan, budget: int) -> FittedPlan | None:
    """``plan`` with at most ``budget`` bytes of temporaries; None if no such plan is found."""
    if plan.temporary_bytes <= budget:
        return FittedPlan(plan, total_cost(plan.steps).weight)
    model = Model(plan)
    limit = budget - plan.external_bytes
    for _ in range(_ATTEMPTS):
        new = _planned(model, limit)
        if new is None:
            return None
        excess = new.plan.temporary_bytes - budget
        if excess <= 0:
            return new
        limit -= max(excess, limit >> 6)
    return None


def least(plan: Plan) -> Plan:
    """The plan with the least memory that is found, by bisection on paper."""
    model, best = Model(plan), plan
    low, high = 0, plan.arena_bytes
    while high - low > max(64, plan.arena_bytes >> 7):
        middle = (low + high) // 2
        new = _planned(model, middle)
        if new is None:
            low = middle
            continue
        high = middle
        if new.plan.temporary_bytes < best.temporary_bytes:
            best = new.plan
    return best


def _planned(model: Model, limit: int) -> FittedPlan | None:
    """The plan of a run on paper in ``limit`` bytes; its arena may be a little larger."""
    try:
        executions = simulate(model, limit)
    except NoRoom:
        return None
    cost = sum(model.units[e.unit].cost for e in executions)
    return FittedPlan(_rebuilt(model, executions), cost)


def _rebuilt(model: Model, executions: Sequence[Execution]) -> Plan:
    """The plan that runs ``executions`` one after the other."""
    plan = model.plan
    steps, runs, again = list[Step](), list[BlockRun](), list[int]()
    for execution in executions:
        unit = model.units[execution.unit]
        if unit.run is not None:
            runs.append(run_with_buffers(unit.run, len(steps), execution.buffers))
        if execution.again:
            again += range(len(steps), len(steps) + len(unit.steps))
        steps += with_buffers(unit.steps, execution.buffers)
    touched = touched_by(steps, runs)
    temporaries = {b for buffers in touched for b in buffers if b.role is BufferRole.TEMPORARY}
    offsets, size = _smallest_arena(touched, temporaries.difference(plan.results))
    limited = Limited(0, plan.temporary_bytes, tuple(again))
    return replace(
        plan, steps=tuple(steps), offsets=offsets, arena_bytes=size, block_runs=tuple(runs), limited=limited
    )


def _smallest_arena(touched: Sequence[Sequence[Buffer]], placed: set[Buffer]) -> tuple[dict[Buffer, int], int]:
    return min(arena(touched, placed), packed(touched, placed), key=lambda result: result[1])
