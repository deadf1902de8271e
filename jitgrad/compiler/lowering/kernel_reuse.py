"""Lowers each structure of fused groups once, however many groups have it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.lowering.aliasing import can_alias
from jitgrad.compiler.lowering.lower import UNREAD, Lowered, PlacedGroup, Scheduler, lower
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, exact


class GroupStructures:
    """The structures of the fused groups of one program; an analysis of one group holds for all of
    its structure.

    Thousands of tensors that an optimiser treats alike, or the steps of a loop over time, are as
    many groups that differ in their buffers alone. Some of them even share their body
    (`jitgrad.compiler.isomorphic`).
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._by_body: dict[Graph, Hashable] = {}
        self._aliases: dict[Hashable, bool] = {}

    def number(self, node: TraceNode) -> Hashable:
        """The number of the structure of a fused ``node``."""
        body: Graph = node.attr("body")
        if body not in self._by_body:
            try:
                self._by_body[body] = self._numbers.setdefault(_structure(node), len(self._numbers))
            except TypeError:  # an attribute that cannot be hashed: a structure of its own
                self._by_body[body] = (id(body),)
        return self._by_body[body]

    def can_alias(self, node: TraceNode, source: Value, out: Value) -> bool:
        """Whether ``node`` may write ``out`` into the memory of ``source``, as
        `jitgrad.compiler.lowering.aliasing` says."""
        if sum(atom is source for atom in node.ins) > 1:
            return False
        read, written = position(node.ins, source), position(node.outs, out)
        key = self.number(node), read, written, source.aval if read == UNREAD else None
        if key not in self._aliases:
            body: Graph = node.attr("body")
            inner = body.outputs[written]
            assert isinstance(inner, Value)
            self._aliases[key] = can_alias(node, source if read == UNREAD else body.inputs[read], inner)
        return self._aliases[key]


def lower_groups(groups: Iterable[PlacedGroup], structures: GroupStructures, scheduler: Scheduler) -> list[Lowered]:
    """The kernel of each group; groups of one structure and equal layouts share one."""
    kernels: dict[Hashable, Lowered] = {}
    lowered = []
    for group in groups:
        key = structures.number(group.node), group.layouts, group.in_place, group.unread
        if key not in kernels:
            kernels[key] = lower(group, scheduler)
        lowered.append(kernels[key])
    return lowered


def position(values: Sequence[Atom], value: Value) -> int:
    """The number of ``value`` in ``values``."""
    return next((k for k, atom in enumerate(values) if atom is value), UNREAD)


def _structure(node: TraceNode) -> Hashable:
    """Everything of a fused ``node`` that its kernel depends on, with values as numbers.

    The origins of nodes are left out: only notes show them.
    """
    body: Graph = node.attr("body")
    group: Group = node.attr("group")
    numbers = {value: k for k, value in enumerate(body.inputs)}

    def atom_key(atom: Atom) -> Hashable:
        return atom.key() if isinstance(atom, Literal) else numbers[atom]

    nodes: list[Hashable] = []
    for n in body.nodes:
        ins = tuple(map(atom_key, n.ins))
        for out in n.outs:
            numbers[out] = len(numbers)
        attrs = exact(n.attrs) if n.attrs else ()
        nodes.append((n.op, attrs, ins, _avals(n.outs), group.axis_maps.get(id(n))))
    order = group.schedule
    places = {id(n): k for k, n in enumerate(group.nodes)}
    outs = {id(n.outs[0]): k for k, n in enumerate(group.nodes)}
    loops = (
        order.split,
        tuple([tuple(sorted([places[k] for k in ids])) for ids in (order.epilogue, order.merged, order.rows)]),
        tuple(sorted([outs[k] for k in order.epilogue_values])),
    )
    return _avals(body.inputs), tuple(nodes), tuple(map(atom_key, body.outputs)), group.sizes, loops


def _avals(values: Sequence[Value]) -> Hashable:
    return tuple([(v.aval.shape, v.aval.dtype, v.aval.weak) for v in values])
