"""What fused groups have in common: keys that are equal only if one lowered kernel serves all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace

from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.lowering.aliasing import can_alias
from jitgrad.compiler.lowering.footprint import BufferOffset
from jitgrad.compiler.lowering.layout import Location
from jitgrad.compiler.lowering.lower import Lowered, Scheduler, lower
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, exact

Locate = Callable[[Value], Location]

UNREAD = -1  # the number of an input whose memory a group may write, and does not read


class LoweringCache:
    """The fused groups of one program by structure; what is found out about one of them holds for all.

    Thousands of tensors that an optimiser treats alike, or the steps of a loop over time, give as many groups that
    differ in nothing but their buffers. Some of them even share their body (`jitgrad.compiler.isomorphic`).
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, Hashable] = {}  # by the id of a body
        self._lowered: dict[Hashable, tuple[Lowered, list[BufferOffset]]] = {}
        self._shares: dict[Hashable, bool] = {}

    def lowered(
        self, node: TraceNode, locate: Locate, in_place: Mapping[int, Value], unread: Collection[int] = ()
    ) -> Lowered:
        """What `lower` makes of ``node``: from scratch, or the kernel of a group like it with other buffers."""
        found = [locate(v) for v in (*node.ins, *node.outs) if isinstance(v, Value)]
        places = [(at.buffer, at.offset) for at in found]
        first: dict[tuple[int, int], int] = {}
        # two values in one place stay that: a word of the argument table stands for a place, not for a value
        pattern = tuple([first.setdefault((id(b), offset), k) for k, (b, offset) in enumerate(places)])
        pairs = tuple([(_position(node.outs, out), _position(node.ins, id(source))) for out, source in in_place.items()])
        unread_outs = tuple([k for k, out in enumerate(node.outs) if id(out) in unread])
        key = (self._number(node), pattern, tuple([at.strides for at in found]), pairs, unread_outs)
        known = self._lowered.get(key)
        if known is None:
            made = _lower(node, found, pairs, unread_outs, self._scheduler)
            self._lowered[key] = made, places
            return made
        duplicate_of, theirs = known
        return _moved(duplicate_of, node.attr("group"), dict(zip(theirs, places, strict=True)))

    def can_alias(self, node: TraceNode, source: Value, out: Value) -> bool:
        """What `reuse.can_alias` says of ``node``, or said of a group like it."""
        if sum(atom is source for atom in node.ins) > 1:
            return False
        read, written = _position(node.ins, id(source)), _position(node.outs, id(out))
        key = self._number(node), read, written, source.aval if read == UNREAD else None
        known = self._shares.get(key)
        if known is None:
            body: Graph = node.attr("body")
            inner = body.outputs[written]
            assert isinstance(inner, Value)
            known = self._shares[key] = can_alias(node, source if read == UNREAD else body.inputs[read], inner)
        return known

    def _number(self, node: TraceNode) -> Hashable:
        """The number of ``node``'s structure."""
        body: Graph = node.attr("body")
        known = self._known.get(id(body))
        if known is None:
            try:
                known = self._numbers.setdefault(_structure(node), len(self._numbers))
            except TypeError:  # an attribute that cannot be hashed: like no other
                known = (id(body),)
            self._known[id(body)] = known
        return known


def _position(values: Sequence[Atom], key: int) -> int:
    for k, value in enumerate(values):
        if id(value) == key:
            return k
    return UNREAD


def _lower(
    node: TraceNode,
    found: Sequence[Location],
    pairs: Sequence[tuple[int, int]],
    unread_outs: Sequence[int],
    scheduler: Scheduler,
) -> Lowered:
    """`lower` for values that lie where ``found`` says, inputs before outputs; ``pairs`` (output, input) share memory."""
    body: Graph = node.attr("body")
    inside = {id(v): at for v, at in zip((*body.inputs, *body.outputs), found, strict=True)}
    over = {id(body.outputs[k]): Value(body.outputs[k].aval) if j == UNREAD else body.inputs[j] for k, j in pairs}
    return lower(node, lambda v: inside[id(v)], over, scheduler, {id(body.outputs[k]) for k in unread_outs})


def _structure(node: TraceNode) -> Hashable:
    """Everything of a fused ``node`` that its kernel depends on, values by number.

    Left out is what only notes show: where in the user's code a node comes from.
    """
    body: Graph = node.attr("body")
    group: Group = node.attr("group")
    numbers: dict[int, int] = {}
    for value in body.inputs:
        numbers[id(value)] = len(numbers)

    def atom_key(atom: Atom) -> Hashable:
        return atom.key() if isinstance(atom, Literal) else numbers[id(atom)]

    nodes: list[Hashable] = []
    for n in body.nodes:
        ins = tuple(map(atom_key, n.ins))
        for out in n.outs:
            numbers[id(out)] = len(numbers)
        looks = tuple([(out.aval.shape, out.aval.dtype, out.aval.weak) for out in n.outs])
        nodes.append((n.op, exact(n.attrs) if n.attrs else (), ins, looks, group.axis_maps.get(id(n))))
    schedule = group.schedule
    order = {id(n): k for k, n in enumerate(group.nodes)}
    outs = {id(n.outs[0]): k for k, n in enumerate(group.nodes)}
    loops = (
        schedule.split,
        tuple([tuple(sorted([order[k] for k in ids])) for ids in (schedule.epilogue, schedule.merged, schedule.rows)]),
        tuple(sorted([outs[k] for k in schedule.epilogue_values])),
    )
    looks = tuple([(v.aval.shape, v.aval.dtype, v.aval.weak) for v in body.inputs])
    return looks, tuple(nodes), tuple(map(atom_key, body.outputs)), group.sizes, loops


def _moved(duplicate_of: Lowered, group: Group, places: Mapping[BufferOffset, BufferOffset]) -> Lowered:
    """``duplicate_of`` for a group of its structure, whose values lie in other places."""
    scratch = tuple([replace(buffer) for buffer in duplicate_of.scratch])
    moved = {**places, **{(old, 0): (new, 0) for old, new in zip(duplicate_of.scratch, scratch, strict=True)}}
    kernel, origins = duplicate_of.kernel, tuple(dict.fromkeys([node.origin for node in group.nodes]))
    if kernel.origins != origins:
        kernel = replace(kernel, origins=origins)
    words = tuple([w if isinstance(w, int) else moved[w] for w in duplicate_of.words])
    epilogue = tuple([w if isinstance(w, int) else moved[w] for w in duplicate_of.epilogue_words])
    spans = None if duplicate_of.spans is None else tuple([span.moved(moved.__getitem__) for span in duplicate_of.spans])
    return Lowered(kernel, duplicate_of.schedule, words, epilogue, scratch, spans, duplicate_of)
