"""Finds the kernels that make a program wrong, and builds the program without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitgrad.compiler.loops.loop_op import LOOP
from jitgrad.core.ir import TraceNode
from jitgrad.core.op import Kind
from jitgrad.jit.executable import Executable
from jitgrad.runtime.program import Program


def kernel_nodes(program: Program) -> list[TraceNode]:
    """The nodes of the program that kernels compute, by number; a loop, whose turns they compute, is one."""
    return [node for node in program.plan.graph.nodes if node.op is LOOP or node.op.kind is Kind.FUSED]


def find_wrong_kernels(executable: Executable, agrees: Callable[[Executable], bool]) -> list[int] | None:
    """Numbers of the fewest kernels without which the program agrees, by bisection (A. Zeller,
    "Simplifying and Isolating Failure-Inducing Input", 2002).

    None: it does not even agree if every op runs by itself, so no kernel is at fault.
    """

    def agrees_without(numbers: Sequence[int]) -> bool:
        return agrees(executable.with_unfused(count=_ignore, unfused=frozenset(numbers)))

    def wrong(candidates: list[int], others: list[int]) -> list[int]:
        """The fewest of ``candidates`` that must not be compiled if ``others`` are not."""
        if len(candidates) == 1:
            return candidates
        first, second = candidates[: len(candidates) // 2], candidates[len(candidates) // 2 :]
        if agrees_without([*others, *first]):
            return wrong(first, others)
        found = wrong(second, [*others, *first])
        if agrees_without([*others, *found]):
            return found
        return [*wrong(first, [*others, *found]), *found]

    everything = list(range(len(kernel_nodes(executable.program))))
    return wrong(everything, []) if everything and agrees_without(everything) else None


def _ignore(_: Program) -> None:
    """Programs that are only tried are not counted."""
