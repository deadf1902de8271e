"""Makes groups that differ from earlier ones in their values alone, as the turns of an unrolled loop do, by renaming."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from jitgrad.compiler.fusion.axis_maps import AxisMap, Definitions
from jitgrad.compiler.fusion.group import Group, SweepOrder
from jitgrad.compiler.fusion.merge import extended, merge, single
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.op import Kind

_Names = Mapping[int, int] | Sequence[int]


class _Named(NamedTuple):
    """A group with numbers for its nodes and for its values.

    Attributes:
        outs: the values that the nodes compute. ``frames`` and ``computed`` are the axis maps of the nodes and of these.
        read: the values that it reads, along the axes ``external``.
    """

    outs: tuple[int, ...]
    frames: tuple[AxisMap, ...]
    computed: tuple[AxisMap, ...]
    read: tuple[int, ...]
    external: tuple[AxisMap, ...]
    schedule: SweepOrder
    permuted: frozenset[int] | None


class _Form:
    """What groups have in common that differ in the identity of their values alone.

    Most groups are the only ones of their form, so that ``first``, which has ``values``, is named for the second one.
    """

    __slots__ = ("_named", "first", "structure", "values")

    def __init__(self, structure: int, first: Group, values: tuple[Value, ...]) -> None:
        self.structure = structure
        self.first = first
        self.values = values
        self._named: _Named | None = None

    def named(self) -> _Named:
        if self._named is None:
            group, names = self.first, {id(value): k for k, value in enumerate(self.values)}
            nodes = {id(node): k for k, node in enumerate(group.nodes)}
            permuted = group.permuted
            self._named = _Named(
                tuple([names[id(node.outs[0])] for node in group.nodes]),
                tuple([group.axis_maps[id(node)] for node in group.nodes]),
                tuple([group.computed[id(node.outs[0])] for node in group.nodes]),
                tuple([names[id(value)] for value, _ in group.external.values()]),
                tuple([axes for _, axes in group.external.values()]),
                _with_names(group.schedule, nodes, names),
                None if permuted is None else frozenset([names[key] for key in permuted if key in names]),
            )
        return self._named

    def renamed(self, nodes: tuple[TraceNode, ...], values: tuple[Value, ...]) -> Group:
        """The group of this form with ``nodes`` that compute and read ``values``."""
        named = self.named()
        ids, known = list(map(id, nodes)), list(map(id, values))
        return Group(
            self.first.sizes,
            nodes,
            dict(zip(ids, named.frames, strict=True)),
            _with_names(named.schedule, ids, known),
            {known[k]: axes for k, axes in zip(named.outs, named.computed, strict=True)},
            {known[k]: (values[k], axes) for k, axes in zip(named.read, named.external, strict=True)},
            None if named.permuted is None else frozenset([known[k] for k in named.permuted]),
        )


class KnownGroup(Group):
    """A group of a known form. Its maps are made when something asks for them, which most merges do not.

    Attributes:
        values: what it computes and reads, in the order in which merges came upon them.
    """

    __slots__ = ("_form", "_made", "_numbers", "values")
    values: tuple[Value, ...]
    _form: _Form
    _made: Group | None
    _numbers: dict[Value, int] | None

    def __init__(self, form: _Form, nodes: tuple[TraceNode, ...], values: tuple[Value, ...]) -> None:
        put = object.__setattr__
        put(self, "sizes", form.first.sizes)
        put(self, "nodes", nodes)
        put(self, "values", values)
        put(self, "_form", form)
        put(self, "_made", form.first if form.values is values else None)
        put(self, "_numbers", None)

    @property
    def structure(self) -> int:
        """The number of its form."""
        return self._form.structure

    @property
    def numbers(self) -> dict[Value, int]:
        """The place of each of ``values``."""
        numbers = self._numbers
        if numbers is None:
            numbers = dict(zip(self.values, count(), strict=False))
            object.__setattr__(self, "_numbers", numbers)
        return numbers

    def whole(self) -> Group:
        """The same group with its maps."""
        made = self._made
        if made is None:
            made = self._form.renamed(self.nodes, self.values)
            object.__setattr__(self, "_made", made)
        return made

    @property
    def axis_maps(self) -> Mapping[int, AxisMap]:
        return self.whole().axis_maps

    @property
    def schedule(self) -> SweepOrder:
        return self.whole().schedule

    @property
    def computed(self) -> Mapping[int, AxisMap]:
        return self.whole().computed

    @property
    def external(self) -> Mapping[int, tuple[Value, AxisMap]]:
        return self.whole().external

    @property
    def permuted(self) -> frozenset[int] | None:
        return self.whole().permuted


class KnownGroups:
    """Makes groups as `single`, `extended` and `merge` do, but one of a known form by renaming.

    Groups have one form if they were made by the same steps of nodes that do the same: to what these functions look at,
    they differ in the identity of their values alone. With the same values in common they give groups of one form again,
    or are refused for the same reason. A kernel of many nodes is merged many times, and each time all of it is planned.
    """

    def __init__(self, definitions: Definitions, tuning: Tuning) -> None:
        self.definitions = definitions
        self.tuning = tuning
        self._forms: dict[Hashable, _Form | str] = {}
        # Groups with nodes that were added to a known one. What form they have is found if they are merged: most never are.
        self._extended: dict[Group, tuple[KnownGroup, tuple[TraceNode, ...]]] = {}
        self._structures = count()

    def single(self, node: TraceNode) -> Group | str:
        """The group of ``node`` alone, or why no loop nest can run it."""
        new: list[Value] = []
        key, values = self._key(node, {}, new), tuple(new)
        if key not in self._forms:
            self._forms[key] = self._form(single(node, self.definitions), values)
        form = self._forms[key]
        return form if isinstance(form, str) else KnownGroup(form, (node,), values)

    def extended(self, group: Group, node: TraceNode) -> Group | None:
        """`merge` of ``group`` and the fusible ``node`` alone, where that is plain. None: only `merge` can say."""
        known = isinstance(group, KnownGroup)
        found = extended(group.whole() if isinstance(group, KnownGroup) else group, node, self.definitions, self.tuning)
        if found is not None and (known or group in self._extended):
            base, added = self._extended.pop(group, None) or (group, ())  # nothing else has ``group``
            assert isinstance(base, KnownGroup)
            self._extended[found] = base, (*added, node)
        return found

    def merge(self, first: Group, second: Group) -> Group | str:
        """One group for the nodes of both, in program order, or why that cannot be one loop nest."""
        one, other = self._known(first), self._known(second)
        if one is None or other is None:
            return merge(first, second, self.definitions, self.tuning)
        order = self._order(one, other)
        shared = tuple(map(one.numbers.get, other.values))
        key = one.structure, other.structure, order, shared
        values = (*one.values, *[value for value, k in zip(other.values, shared, strict=True) if k is None])
        if key not in self._forms:
            self._forms[key] = self._form(merge(one.whole(), other.whole(), self.definitions, self.tuning), values)
        form = self._forms[key]
        if isinstance(form, str):
            return form
        nodes = one.nodes + other.nodes
        return KnownGroup(form, nodes if order is None else tuple([nodes[k] for k in order]), values)

    def _known(self, group: Group) -> KnownGroup | None:
        """``group`` with its form; None if it was made elsewhere."""
        if isinstance(group, KnownGroup) or group not in self._extended:
            return group if isinstance(group, KnownGroup) else None
        base, added = self._extended[group]
        if not added:
            return base
        numbers, new = dict(base.numbers), list[Value]()
        key = ("extended", base.structure, *[self._key(node, numbers, new) for node in added])
        values = (*base.values, *new)
        form = self._forms.setdefault(key, self._form(group, values))
        assert not isinstance(form, str)
        known = KnownGroup(form, group.nodes, values)
        self._extended[group] = known, ()
        return known

    def _key(self, node: TraceNode, numbers: dict[Value, int], new: list[Value]) -> Hashable:
        """What ``node`` does to values of these ``numbers``. Values that have none get the next ones, and are ``new``."""
        out = node.outs[0]
        key: list[Hashable] = [node.op, out.aval.shape, out.aval.dtype]
        if node.op.kind is Kind.REDUCE:
            key += [node.attr("axis"), node.ins[0].aval.shape]
        for root, dims in self.definitions.reads(node):
            if not isinstance(root, Value):
                key.append(None)
                continue
            number = numbers.get(root)
            if number is None:
                number = numbers[root] = len(numbers)
                new.append(root)
            key += [dims, number]
        numbers[out] = len(numbers)
        new.append(out)
        return tuple(key)

    def _order(self, first: Group, second: Group) -> tuple[int, ...] | None:
        """The numbers of the nodes of both in program order; None where all of ``second`` come last."""
        position = self.definitions.position
        if position[first.nodes[-1]] < position[second.nodes[0]]:
            return None
        places = [position[node] for node in (*first.nodes, *second.nodes)]
        return tuple(sorted(range(len(places)), key=places.__getitem__))

    def _form(self, group: Group | str, values: tuple[Value, ...]) -> _Form | str:
        """The form of ``group``, which has ``values``; what is no group as it is."""
        return _Form(next(self._structures), group, values) if isinstance(group, Group) else group


def _with_names(order: SweepOrder, nodes: _Names, values: _Names) -> SweepOrder:
    """``order`` with other names for the ``nodes`` and ``values`` in it."""
    if not (order.epilogue or order.merged or order.rows or order.epilogue_values):
        return order

    def renamed(names: _Names, ids: Iterable[int]) -> frozenset[int]:
        return frozenset([names[key] for key in ids])

    late = renamed(nodes, order.epilogue), renamed(nodes, order.merged), renamed(nodes, order.rows)
    return SweepOrder(order.split, *late, renamed(values, order.epilogue_values))
