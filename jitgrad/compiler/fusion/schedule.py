"""How one loop nest runs a group: which axes are rows, and where every node has its place."""

from __future__ import annotations

from collections.abc import Mapping

from jitgrad.compiler.fusion.axis_maps import NONE, AxisMap, Definitions, Read, compose, identity
from jitgrad.compiler.fusion.group import Group, SweepOrder, accesses
from jitgrad.core.ir import TraceNode
from jitgrad.core.op import Kind


def scheduled(
    sizes: tuple[int, ...],
    nodes: tuple[TraceNode, ...],
    axis_maps: Mapping[int, AxisMap],
    definitions: Definitions,
    start: Group | None = None,
) -> Group | str:
    """The group of ``nodes`` over axes of lengths ``sizes``, or why no loop nest can run it.

    ``start`` is the group of the first of them over the same axes, if there is one: their places stay what they are.
    """
    computed, external = accesses(nodes, axis_maps, definitions)
    draft = Group(sizes, nodes, axis_maps, SweepOrder(), computed, external)
    found = None if start is None else _Scheduler(draft, definitions).run(start)
    if not isinstance(found, SweepOrder):  # from the start, for the first reason
        found = _Scheduler(draft, definitions).run()
    return found if isinstance(found, str) else Group(sizes, nodes, axis_maps, found, computed, external)


class _Scheduler:
    """Finds the split of a group's axes into rows and row elements under which every node has a
    place.

    With axes ``O + I``: values run along all axes, along ``O`` only (one per row) or along none;
    reductions go over ``I`` (a row's result, usable by later sweeps of the row), over ``O`` (one
    partial row per block) or over all (one partial number per block). What reads a merged partial
    runs once at the end.
    """

    def __init__(self, group: Group, definitions: Definitions) -> None:
        self.group = group
        self.rank = len(group.sizes)
        self.everything = frozenset(range(self.rank))
        self.splits = set(range(self.rank + 1))
        self.epilogue: set[int] = set()
        self.merged: set[int] = set()
        self.rows: set[int] = set()
        self.epilogue_values: dict[int, frozenset[int]] = {}  # values known only at the end, with their axes
        self.definitions = definitions

    def run(self, start: Group | None = None) -> SweepOrder | str:
        computed, everywhere = self.group.computed, identity(self.rank)
        if start is not None:
            self.go_on_from(start)
        for node in self.group.nodes if start is None else self.group.nodes[len(start.nodes) :]:
            frame, late = self.group.axis_maps[id(node)], False
            for root, dims in self.definitions.reads(node):
                if (axes := computed.get(id(root))) is not None:
                    if axes != compose(dims, frame):
                        return "a value would be read at another place than where it is computed"
                    late = late or id(root) in self.epilogue_values
            if late:
                problem = self.place_late(node, self.group.operand_maps(node, self.definitions), computed)
            elif node.op.kind is Kind.REDUCE:
                problem = self.place_reduction(node)
            elif (along := self.group.out_map(node)) == everywhere:
                continue  # along everything: anywhere
            else:
                problem = self.require_level(frozenset(along) - {NONE})
            if problem:
                return problem
            if not self.splits:
                return "no single loop nest fits all their axes"
        if self.epilogue or self.merged:
            for late_axes in self.epilogue_values.values():
                if late_axes and not self.pin(self.rank - len(late_axes)):
                    return "no single loop nest fits all their axes"
        split = min(self.splits) if len(self.splits) == 1 else None
        return SweepOrder(
            split, frozenset(self.epilogue), frozenset(self.merged), frozenset(self.rows), frozenset(self.epilogue_values)
        )

    def go_on_from(self, start: Group) -> None:
        """Give the nodes of ``start``, which come first, the places that they have there."""
        order = start.schedule
        self.splits = self.splits if order.split is None else {order.split}
        self.epilogue, self.merged, self.rows = set(order.epilogue), set(order.merged), set(order.rows)
        self.epilogue_values = {key: frozenset(start.computed[key]) - {NONE} for key in order.epilogue_values}

    def pin(self, split: int) -> bool:
        self.splits &= {split}
        return bool(self.splits)

    def require_level(self, axes: frozenset[int]) -> str | None:
        """A value computed in the loops runs along everything, along the rows, or is one number."""
        if axes == self.everything or not axes:
            return None
        if axes != frozenset(range(len(axes))):
            return "a value would be computed again for every row"
        return None if self.pin(len(axes)) else "no single loop nest fits all their axes"

    def place_late(
        self, node: TraceNode, operands: list[tuple[Read, AxisMap]], computed: Mapping[int, AxisMap]
    ) -> str | None:
        if node.op.kind is Kind.REDUCE:
            return "it reduces a result that is complete only after all rows"
        for read, _ in operands:
            if id(read.root) in computed and id(read.root) not in self.epilogue_values:
                return "it needs a reduction that is complete only after all rows"
        axes = frozenset(self.group.out_map(node)) - {NONE}
        allowed = {self.epilogue_values[id(read.root)] for read, _ in operands if id(read.root) in self.epilogue_values}
        if axes not in allowed:
            return "it needs a reduction that is complete only after all rows"
        self.epilogue.add(id(node))
        self.epilogue_values[id(node.out)] = axes
        return None

    def place_reduction(self, node: TraceNode) -> str | None:
        frame = self.group.axis_maps[id(node)]
        over = frozenset(frame[k] for k in node.attr("axis")) - {NONE}
        along = frozenset(frame) - {NONE}
        kept = along - over
        suffix = frozenset(range(self.rank - len(over), self.rank))
        prefix = frozenset(range(len(over)))
        if along == self.everything and over == suffix and kept:
            self.rows.add(id(node))
            return None if self.pin(self.rank - len(over)) else "no single loop nest fits all their axes"
        if over == along and (along == self.everything or (along == prefix and self.pin(len(along)))):
            self.merge_late(node, frozenset())
            return None
        if along == self.everything and over == prefix:
            self.merge_late(node, kept)
            return None if self.pin(len(over)) else "no single loop nest fits all their axes"
        return "its reduced axes are neither the rows nor the columns of the loop"

    def merge_late(self, node: TraceNode, axes: frozenset[int]) -> None:
        self.merged.add(id(node))
        self.epilogue_values[id(node.out)] = axes
