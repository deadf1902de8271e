"""Groups in the making, and why two of them stayed apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from jitgrad.compiler.fusion.group import Group
from jitgrad.core.errors import VerifyError
from jitgrad.core.ir import TraceNode


@dataclass(eq=False, slots=True)
class Cluster:
    """A group in the making, or one unfused node, with what must run before it."""

    number: int
    position: int  # of its first node in the program
    nodes: list[TraceNode]
    group: Group | None
    block: int | None = None  # of nodes, beyond which it may not grow
    before: set[int] = field(default_factory=set)  # numbers of direct predecessors
    after: set[int] = field(default_factory=set)  # and of those that have it among theirs
    ancestors: int = 0  # bit set of all clusters that must run before
    merged_into: int | None = None

    def is_of_another_block(self, other: Cluster) -> bool:
        """Whether both have a block, and not the same."""
        return self.block is not None and other.block is not None and self.block != other.block


@dataclass(frozen=True, slots=True)
class Refusal:
    """Two neighbours that stayed apart, and why."""

    producer: TraceNode
    consumer: TraceNode
    reason: str


def ordered(live: Mapping[int, Cluster], find: Callable[[int], Cluster]) -> list[Cluster]:
    """The clusters ``live``, by number, such that each comes after those it reads, close to program order.

    They are in the order of sweeps over the program that take what has all it reads: a cluster that comes before one
    it reads is taken a sweep later than that.

    Args:
        find: the cluster that one of a number is part of.

    Raises:
        VerifyError: if they depend on each other in a circle.
    """
    before = {n: {find(k).number for k in cluster.before} - {n} for n, cluster in live.items()}
    place = {n: cluster.position for n, cluster in live.items()}
    sweep: dict[int, int] = {}
    try:
        for n in TopologicalSorter(before).static_order():
            sweep[n] = max([sweep[k] + (place[k] > place[n]) for k in before[n]], default=0)
    except CycleError:
        raise VerifyError("fuse: the kernels depend on each other in a circle") from None
    return sorted(live.values(), key=lambda cluster: (sweep[cluster.number], cluster.position))
