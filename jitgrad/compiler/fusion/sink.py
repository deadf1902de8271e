"""Sinks operations from the kernel that computes their operands into the kernel that reads their results.

Fusion puts every op behind its operands. ``u = step(u); a = 4 * u`` becomes one kernel that writes both, although only the
kernel of the next step reads ``a``, beside ``u`` itself. There it costs one multiplication; written and read it costs twice
the bytes of ``u``. Compilers call this code sinking. Nothing is computed twice: an op leaves the one kernel for the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.cheapest_cut import cheapest_cut
from jitgrad.compiler.fusion.cluster import Cluster, ordered
from jitgrad.compiler.fusion.fuser import Fuser
from jitgrad.compiler.fusion.group import Group, accesses
from jitgrad.compiler.fusion.schedule import scheduled
from jitgrad.core.ir import Atom, TraceNode, Value
from jitgrad.core.op import Kind


def sink(fuser: Fuser) -> None:
    """Move elementwise ops into the later kernel that alone reads what they lead to, where that moves fewer bytes."""
    results = {fuser.definitions.resolve(atom).root for atom in fuser.graph.outputs}
    for cluster in ordered(fuser.live, fuser.find):
        for reader in _readers(cluster, fuser):
            _Sinking(cluster, reader, results, fuser).run()


def _readers(cluster: Cluster, fuser: Fuser) -> list[Cluster]:
    """The other kernels that read what ``cluster`` computes."""
    if cluster.group is None or len(cluster.nodes) < 2:
        return []
    found = [fuser.find(fuser.home[user.outs[0]]) for node in cluster.nodes for user in fuser.users(node.outs[0])]
    return [other for other in dict.fromkeys(found) if other is not cluster and other.group is not None]


class _Sinking:
    """What ``source`` computes for ``reader`` alone, and the part of it that is cheaper to compute there."""

    def __init__(self, source: Cluster, reader: Cluster, results: Collection[Atom], fuser: Fuser) -> None:
        self.source = source
        self.reader = reader
        self.results = results
        self.fuser = fuser
        self.here = {node.outs[0] for node in source.nodes}
        self.read = dict.fromkeys(root for node in reader.nodes for root in fuser.roots(node))
        self.own = self._own()

    def run(self) -> None:
        """Move what saves bytes, if ``reader`` stays the loop that it is with it, and ``source`` without it."""
        wanted = [value for value in self.read if value in self.own]
        if not wanted:
            return
        cut = set(cheapest_cut(wanted, self._operands, self._cost))
        moved = self._closed(self._behind(cut, wanted))
        if not moved or len(moved) == len(self.source.nodes) or self._saved(moved) <= 0:
            return
        with_them, without = self._joined(moved), self._left(moved)
        if with_them is not None and without is not None:
            self._move(moved, with_them, without)

    def _own(self) -> dict[Value, TraceNode]:
        """The nodes whose results only ``reader`` and other such nodes read, by their results."""
        assert self.reader.group is not None
        size, own = prod(self.reader.group.sizes), dict[Value, TraceNode]()
        for node in sorted(self.source.nodes, key=self.fuser.definitions.position.__getitem__, reverse=True):
            if node.op.kind is not Kind.ELEMENTWISE or node.out in self.results or node.out.aval.size != size:
                continue
            if self.reader.group.schedule.rows and expensive(node.op):
                continue  # several sweeps might each compute it
            if all(self._is_own(user, own) for user in self.fuser.users(node.out)):
                own[node.out] = node
        return own

    def _is_own(self, user: TraceNode, own: Collection[Value]) -> bool:
        return user.outs[0] in own or self._home(user.outs[0]) is self.reader

    def _home(self, value: Value) -> Cluster | None:
        number = self.fuser.home.get(value)
        return None if number is None else self.fuser.find(number)

    def _operands(self, value: Value) -> list[Value]:
        return self.fuser.roots(self.own[value]) if value in self.own else []

    def _cost(self, value: Value) -> int:
        """The bytes to write and to read for ``reader`` to have ``value`` from memory."""
        if value not in self.here:
            return 0 if value in self.read else value.aval.nbytes
        if value in self.own:
            return 2 * value.aval.nbytes
        if value in self.read:
            return 0  # it is read in any case
        stored = value in self.results or self.fuser.is_stored(value, self.source, self.reader)
        return value.aval.nbytes if stored else 2 * value.aval.nbytes

    def _behind(self, cut: Collection[Value], wanted: Iterable[Value]) -> set[TraceNode]:
        """The nodes on the ways from ``wanted`` to ``cut``."""
        found, waiting = set[Value](), [value for value in wanted if value not in cut]
        while waiting:
            value = waiting.pop()
            if value not in found:
                found.add(value)
                waiting += [x for x in self._operands(value) if x in self.own and x not in cut]
        return {self.own[value] for value in found}

    def _closed(self, nodes: Iterable[TraceNode]) -> list[TraceNode]:
        """Those of ``nodes``, last first, whose results nothing needs that stays behind."""
        kept: dict[Value, TraceNode] = {}
        for node in sorted(nodes, key=self.fuser.definitions.position.__getitem__, reverse=True):
            if all(self._is_own(user, kept) for user in self.fuser.users(node.out)):
                kept[node.out] = node
        return list(kept.values())

    def _saved(self, moved: list[TraceNode]) -> int:
        """The bytes that are neither written nor read once ``moved`` are computed in ``reader``, less those read for them."""
        gone = {node.out for node in moved}
        needed = dict.fromkeys(root for node in moved for root in self.fuser.roots(node) if root not in gone)
        now = sum(2 * value.aval.nbytes for value in gone if value in self.read)
        return now - sum(0 if value in self.read else self._cost(value) for value in needed)

    def _joined(self, moved: list[TraceNode]) -> Group | None:
        """``reader``'s group with ``moved`` before it, if they fit into its loops."""
        group = self.reader.group
        for node in moved:
            alone = self.fuser.groups.single(node)
            assert group is not None and isinstance(alone, Group)
            found = self.fuser.groups.merge(alone, group)
            if isinstance(found, str) or found.sizes != group.sizes:
                return None
            group = found
        return group

    def _left(self, moved: list[TraceNode]) -> Group | None:
        """``source``'s group without ``moved``."""
        group, gone = self.source.group, set(moved)
        assert group is not None
        nodes = tuple(node for node in group.nodes if node not in gone)
        maps = {id(node): group.axis_maps[id(node)] for node in nodes}
        if group.permuted is None:
            found = scheduled(group.sizes, nodes, maps, self.fuser.definitions)
            return found if isinstance(found, Group) else None
        computed, external = accesses(nodes, maps, self.fuser.definitions)
        return Group(group.sizes, nodes, maps, group.schedule, computed, external, group.permuted)

    def _move(self, moved: list[TraceNode], reader: Group, source: Group) -> None:
        self.reader.group, self.source.group = reader, source
        self.reader.nodes, self.source.nodes = list(reader.nodes), list(source.nodes)
        self.fuser.home.update((node.out, self.reader.number) for node in moved)
        roots = (root for node in moved for root in self.fuser.roots(node))
        homes = [home for home in map(self._home, roots) if home is not None and home is not self.reader]
        self.fuser.precede(self.reader, {home.number for home in homes})
