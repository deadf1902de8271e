"""What of an explanation is about memory: values kept for backward, blocks, and a memory budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jitgrad.compiler.plan import BlockRun, KernelStep, Plan, Step
from jitgrad.compiler.recompute.units import total_cost
from jitgrad.core.ir import Atom, Graph, TraceNode
from jitgrad.core.op import Kind
from jitgrad.core.origin import Origin
from jitgrad.inspect.traffic import plan_traffic, readable_bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that backward needs: saved by forward, or (``saved`` False) recomputed."""

    op: str
    looks: str
    origin: Origin
    saved: bool

    def __str__(self) -> str:
        return f"{self.looks} {self.op}{located(self.origin)}"


@dataclass(frozen=True, slots=True)
class BlockRunReport:
    """Kernels that run block by block: all of them for some rows or elements, then for the next.

    Attributes:
        first, last: the indices of its first and last kernel.
        rows, block_rows: the rows (or elements) in all, and of a block.
        temporaries: the number of values of which only one block exists at a time.
        saved_bytes: the memory that these would need as a whole.
        block_bytes: the memory of a block.
    """

    first: int
    last: int
    rows: int
    block_rows: int
    temporaries: int
    saved_bytes: int
    block_bytes: int

    @staticmethod
    def of(run: BlockRun, first: int) -> BlockRunReport:
        """The report of ``run``, whose first kernel has the index ``first``."""
        last, saved = first + run.stop - run.first - 1, sum(b.nbytes for b in run.local)
        return BlockRunReport(first, last, run.rows, run.block_rows, len(run.local), saved, run.local_bytes)

    def __str__(self) -> str:
        return (
            f"{self.first:4} to {self.last} run block by block, {self.block_rows} of {self.rows} rows at a time: "
            f"{self.temporaries} temporaries take {readable_bytes(self.block_bytes)}, "
            f"not {readable_bytes(self.saved_bytes)}"
        )


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """How a program keeps to its memory budget.

    Attributes:
        budget: the bytes that temporaries may take.
        before: the bytes that they take in the program without a budget.
        after: the bytes that they take.
        again: the ops that run again, of every kernel and library call that does.
        steps: the number of these kernels and calls.
        extra_bytes: what they read and write.
        extra_operations: an estimate of their arithmetic: two for each term of a matrix product.
        extra: the part of the program's other work, bytes and arithmetic together, that they add.
    """

    budget: int
    before: int
    after: int
    again: tuple[Kept, ...]
    steps: int
    extra_bytes: int
    extra_operations: int
    extra: float

    @staticmethod
    def of(plan: Plan) -> BudgetReport | None:
        """The report of ``plan``; None if it has no budget."""
        limited = plan.limited
        if limited is None:
            return None
        numbers, traffic = set(limited.again), plan_traffic(plan)
        again = [step for k, step in enumerate(plan.steps) if k in numbers]
        others = total_cost([step for k, step in enumerate(plan.steps) if k not in numbers])
        cost = total_cost(again)
        return BudgetReport(
            limited.budget,
            limited.before,
            plan.temporary_bytes,
            tuple([kept for step in again for kept in _ops_of(step)]),
            len(again),
            sum(sum(traffic[step]) for step in again),
            cost.operations,
            cost.weight / others.weight if others.weight else 0.0,
        )

    def lines(self) -> Iterator[str]:
        """The lines of the explanation."""
        yield (
            f"memory budget {readable_bytes(self.budget)}: temporaries {readable_bytes(self.after)}, "
            f"without it {readable_bytes(self.before)}"
        )
        if self.steps:
            yield (
                f"computed again in {self.steps} steps, {readable_bytes(self.extra_bytes)} and "
                f"{self.extra_operations / 1e6:.3g} million operations, {self.extra:.0%} more: {ops_by_line(self.again)}"
            )


def _ops_of(step: Step) -> Iterator[Kept]:
    """The ops of ``step``, views left out."""
    if isinstance(step, KernelStep):
        nodes = step.node.attr("body").nodes
    else:
        nodes = (step.node,)
    for node in nodes:
        if node.op.kind is not Kind.MOVEMENT:
            yield Kept(node.op.name, str(node.outs[0].aval), node.origin, False)


def located(origin: Origin) -> str:
    """Where ``origin`` is, after an op."""
    return f" ({origin})" if origin.line else ""


def ops_by_line(kept: Iterable[Kept]) -> str:
    """``multiply x5, tanh (step.py:8); add (step.py:9)``"""
    lines: dict[Origin, dict[str, int]] = {}
    for k in kept:
        counts = lines.setdefault(k.origin, {})
        counts[k.op] = counts.get(k.op, 0) + 1
    texts = []
    for origin, counts in lines.items():
        ops = ", ".join(op if n == 1 else f"{op} x{n}" for op, n in counts.items())
        texts.append(f"{ops}{located(origin)}")
    return "; ".join(texts)


def kept_values(forward: Graph, backward: Graph, saved: int) -> tuple[Kept, ...]:
    """Values saved for backward (the last ``saved`` outputs of forward), and values that both programs compute."""
    producers: dict[Atom, TraceNode] = {out: node for node in forward.nodes for out in node.outs}
    kept = []
    for atom in forward.outputs[len(forward.outputs) - saved :]:
        node = producers.get(atom)
        name, origin = (node.op.name, node.origin) if node is not None else ("input", Origin())
        kept.append(Kept(name, str(atom.aval), origin, True))
    for node in backward.nodes:
        if node.outs[0] in producers and node.op.kind is not Kind.MOVEMENT:
            kept.append(Kept(node.op.name, str(node.outs[0].aval), node.origin, False))
    return tuple(kept)
