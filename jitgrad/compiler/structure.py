"""What fused groups have in common: keys that are equal only if one lowered kernel serves all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from jitgrad.compiler.group import Group
from jitgrad.compiler.layout import Buffer, Location
from jitgrad.compiler.loops import Word
from jitgrad.compiler.lower import Lowered, lower
from jitgrad.compiler.reuse import can_share
from jitgrad.ir import Atom, Graph, Literal, TraceNode, Value, exact

Locate = Callable[[Value], Location]
Place = tuple[Buffer, int]

UNREAD = -1  # the number of an input whose memory a group may write, and does not read


class Structures:
    """The fused groups of one program by structure; what is found out about one of them holds for all.

    Thousands of tensors that an optimiser treats alike, or the steps of a loop over time, give as many groups that
    differ in nothing but their buffers.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[Hashable, dict[int, int]]] = {}  # by the id of a node
        self._lowered: dict[Hashable, tuple[Lowered, list[Place]]] = {}
        self._shares: dict[Hashable, bool] = {}

    def lowered(self, node: TraceNode, locate: Locate, in_place: Mapping[int, Value]) -> Lowered:
        """What `lower` makes of ``node``: from scratch, or the kernel of a group like it with other buffers."""
        number, values = self._of(node)
        body: Graph = node.attr("body")
        found = [locate(v) for v in (*body.inputs, *body.outputs) if isinstance(v, Value)]
        places = [(at.buffer, at.offset) for at in found]
        first: dict[tuple[int, int], int] = {}
        # two values in one place stay that: a word of the argument table stands for a place, not for a value
        pattern = tuple([first.setdefault((id(b), offset), k) for k, (b, offset) in enumerate(places)])
        pairs = tuple([(values[out], values.get(id(source), UNREAD)) for out, source in in_place.items()])
        key = (number, pattern, tuple([at.strides for at in found]), pairs)
        known = self._lowered.get(key)
        if known is None:
            made = lower(node, locate, dict(in_place))
            self._lowered[key] = made, places
            return made
        twin, theirs = known
        return _moved(twin, node.attr("group"), dict(zip(theirs, places, strict=True)))

    def can_share(self, node: TraceNode, source: Value, out: Value) -> bool:
        """What `reuse.can_share` says of ``node``, or said of a group like it."""
        number, values = self._of(node)
        key = number, values.get(id(source), UNREAD), values[id(out)]
        known = self._shares.get(key)
        if known is None:
            known = self._shares[key] = can_share(node, source, out)
        return known

    def _of(self, node: TraceNode) -> tuple[Hashable, dict[int, int]]:
        """(the number of ``node``'s structure, the number of each of its values by the value's id)."""
        known = self._known.get(id(node))
        if known is None:
            key, values = _structure(node)
            try:
                number: Hashable = self._numbers.setdefault(key, len(self._numbers))
            except TypeError:  # an attribute that cannot be hashed: like no other
                number = (id(node),)
            known = self._known[id(node)] = number, values
        return known


def _structure(node: TraceNode) -> tuple[Hashable, dict[int, int]]:
    """Everything of a fused ``node`` that its kernel depends on, values by number; and these numbers by their ids.

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
        nodes.append((n.op, exact(n.attrs) if n.attrs else (), ins, looks, group.frames.get(id(n))))
    schedule = group.schedule
    order = {id(n): k for k, n in enumerate(group.nodes)}
    outs = {id(n.outs[0]): k for k, n in enumerate(group.nodes)}
    loops = (
        schedule.split,
        tuple([tuple(sorted([order[k] for k in ids])) for ids in (schedule.finish, schedule.merged, schedule.rows)]),
        tuple(sorted([outs[k] for k in schedule.late])),
    )
    looks = tuple([(v.aval.shape, v.aval.dtype, v.aval.weak) for v in body.inputs])
    return (looks, tuple(nodes), tuple(map(atom_key, body.outputs)), group.sizes, loops), numbers


def _moved(twin: Lowered, group: Group, places: Mapping[Place, Place]) -> Lowered:
    """``twin`` for a group of its structure, whose values lie in other places."""
    scratch = tuple([replace(buffer) for buffer in twin.scratch])
    moved = {**places, **{(old, 0): (new, 0) for old, new in zip(twin.scratch, scratch, strict=True)}}

    def word(w: Word) -> Word:
        return w if isinstance(w, int) else moved[w]

    kernel, origins = twin.kernel, tuple(dict.fromkeys([node.origin for node in group.nodes]))
    if kernel.origins != origins:
        kernel = replace(kernel, origins=origins)
    words, finish = tuple(map(word, twin.words)), tuple(map(word, twin.finish_words))
    spans = None if twin.spans is None else tuple([span.moved(moved.__getitem__) for span in twin.spans])
    return Lowered(kernel, words, finish, twin.units, twin.grain, scratch, spans, twin)
