"""Groups in the making, and why two of them stayed apart."""

from __future__ import annotations

from dataclasses import dataclass, field

from jitgrad.compiler.fusion.group import Group
from jitgrad.core.ir import TraceNode


@dataclass(eq=False, slots=True)
class Cluster:
    """A group in the making, or one unfused node, with what must run before it."""

    number: int
    position: int  # of its first node in the program
    nodes: list[TraceNode]
    group: Group | None
    before: set[int] = field(default_factory=set)  # numbers of direct predecessors
    after: set[int] = field(default_factory=set)  # and of those that have it among theirs
    ancestors: int = 0  # bit set of all clusters that must run before
    merged_into: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Two neighbours that stayed apart, and why."""

    producer: TraceNode
    consumer: TraceNode
    reason: str
