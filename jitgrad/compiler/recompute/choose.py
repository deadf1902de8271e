"""Chooses the plan of a program with a memory budget, or explains why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.plan import KernelStep, Limited, Plan, Step, buffers_of
from jitgrad.compiler.recompute.fit import fit_plan, least
from jitgrad.compiler.recompute.limit import MemoryBudget
from jitgrad.compiler.recompute.units import units_of
from jitgrad.core.errors import MemoryBudgetError
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.origin import Origin

_SHOWN = 5
_EXAMINED = 50  # of the largest values, equal ones are shown as one


def within_budget(name: str, budget: MemoryBudget, plan: Plan, sparing: Callable[[int], Plan]) -> Plan:
    """The plan of the program ``name`` that keeps to ``budget`` and computes least.

    ``plan`` is that without a budget. ``sparing(level)`` makes one whose passes spare memory (`Tuning.spare_memory`): level 2,
    which takes more kernels, only if nothing else fits.

    Raises:
        MemoryBudgetError: if none keeps to it.
    """
    needed = plan.temporary_bytes
    allowed = budget.allowed(needed)
    if needed <= allowed:
        return replace(plan, limited=Limited(allowed, needed))
    plans = [plan, sparing(1)]
    fits = [(level, fit) for level, p in enumerate(plans) if (fit := fit_plan(p, allowed)) is not None]
    if not fits:
        plans.append(sparing(2))
        fits = [(2, fit)] if (fit := fit_plan(plans[2], allowed)) is not None else []
    if fits:
        level, best = min(fits, key=lambda pair: pair[1].cost)
        return _limited(best.plan, allowed, needed, level)
    level, smallest = min(enumerate(map(least, plans)), key=lambda pair: pair[1].temporary_bytes)
    if smallest.temporary_bytes > allowed:
        raise MemoryBudgetError(_too_small(name, allowed, needed, smallest))
    return _limited(smallest, allowed, needed, level)


def _limited(plan: Plan, allowed: int, needed: int, level: int) -> Plan:
    again = plan.limited.again if plan.limited is not None else ()
    return replace(plan, limited=Limited(allowed, needed, again, level))


def _too_small(name: str, allowed: int, needed: int, best: Plan) -> str:
    """Why no plan of the program fits, the best one being ``best``."""
    lines = [
        f"@jit function {name!r}: memory_budget allows {_bytes(allowed)} of temporaries. The program takes {_bytes(needed)} "
        f"without a budget, and at least {_bytes(best.temporary_bytes)} when values are computed again. Then the largest are:"
    ]
    counts = Counter(f"{_bytes(buffer.nbytes)}: {_described(best, buffer)}" for buffer in _largest(best)[:_EXAMINED])
    lines += [f"    {text}" + (f" (x{n})" if n > 1 else "") for text, n in list(counts.items())[:_SHOWN]]
    lines += [
        f"Allow {best.temporary_bytes} bytes or more, take smaller batches, or split what makes these values into parts "
        "(docs/memory.md says what the budget counts)."
    ]
    return "\n".join(lines)


def _largest(plan: Plan) -> list[Buffer]:
    """The temporaries when they take most memory, the largest first."""
    units = units_of(plan)
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for k, unit in enumerate(units):
        for buffer in unit.buffers():
            first.setdefault(buffer, k)
            last[buffer] = k
    external = set(plan.external) - set(buffers_of(plan.outputs))
    change = [0] * (len(units) + 1)
    for buffer in plan.offsets:
        change[first[buffer]] += buffer.nbytes
        change[last[buffer] + 1] -= buffer.nbytes
    totals = list(accumulate(change[:-1]))
    peak = max(range(len(units)), key=totals.__getitem__, default=0)
    live = [b for b in plan.offsets if first[b] <= peak <= last[b]]
    return sorted([*live, *external], key=lambda b: -b.nbytes)


def _described(plan: Plan, buffer: Buffer) -> str:
    """What is in ``buffer``, and the user's line that it comes from."""
    for step in plan.steps:
        for k, place in enumerate(step.writes):
            if place.location is not None and place.location.buffer is buffer:
                op, origin = _producer(step, k)
                return f"{place.aval} {op}" + (f" ({origin.full()})" if origin.line else "")
        if isinstance(step, KernelStep) and buffer in step.scratch:
            return f"partial results of {step.lowered.kernel.name}{_lines(step.origins)}"
    return buffer.label


def _producer(step: Step, k: int) -> tuple[str, Origin]:
    """The op of result ``k`` of ``step``, and its line."""
    if isinstance(step, KernelStep):
        out: Value = step.node.outs[k]
        node: TraceNode | None = step.node.attr("body").producer(out)
        return (node.op.name, node.origin) if node is not None else (step.lowered.kernel.name, step.node.origin)
    return step.op.name, step.node.origin


def _lines(origins: Iterable[Origin]) -> str:
    line = next((o.full() for o in origins if o.line), "")
    return f" ({line})" if line else ""


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
