"""The clusters of nodes that become kernels: convex sets of nodes that one loop nest can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.axis_maps import Definitions, identity
from jitgrad.compiler.fusion.cluster import Cluster, Refusal
from jitgrad.compiler.fusion.group import Group, is_fusible, why_not_fusible
from jitgrad.compiler.fusion.iterations import LONG_LOOP, equal_blocks
from jitgrad.compiler.fusion.known_groups import KnownGroups
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind

_FEW = 8  # times fewer elements, which are read again at no cost to speak of
_LONGEST_CHAIN = 16


class Fuser:
    """Greedy grouping in program order, then merging of clusters that read the same arrays.

    Ancestor sets are bit sets over clusters; a merge is allowed only if no third cluster lies on a path between the
    two, so the cluster graph stays acyclic (convexity).
    """

    def __init__(self, graph: Graph, tuning: Tuning) -> None:
        self.graph = graph
        self.tuning = tuning
        self.blocks: Mapping[TraceNode, int] = {}  # no kernel has nodes of two
        self.definitions: Definitions = Definitions(graph)
        self.groups: KnownGroups = KnownGroups(self.definitions, tuning)
        self.clusters: list[Cluster] = []
        self.live: dict[int, Cluster] = {}  # by number; those not merged into another
        self.home: dict[Value, int] = {}  # the number of the cluster that computes a value
        self.refusals: list[Refusal] = []
        self.outer: set[Value] = set()  # values of many elements that are made of few
        self._roots: dict[TraceNode, list[Value]] = {}

    def run(self) -> None:
        """Group the nodes, such that loops which take several kernels are cut into equal ones.

        What kernels a loop takes is known once it is grouped. Of a long loop the start is grouped for that.
        """
        nodes = [node for node in self.graph.nodes if is_fusible(node)]
        most = self.tuning.max_kernel_nodes
        if is_long := len(nodes) > LONG_LOOP * most:
            self.blocks = equal_blocks(nodes, self.definitions, self.kernels_of_some, most)
        self.group_nodes(self.graph.nodes)
        if not is_long and len(nodes) > most and (blocks := equal_blocks(nodes, self.definitions, self.kernels_of, most)):
            self.forget_clusters()
            self.blocks = blocks
            self.group_nodes(self.graph.nodes)

    def forget_clusters(self) -> None:
        self.clusters, self.live, self.home, self.refusals, self.outer = [], {}, {}, [], set()

    def group_nodes(self, nodes: Iterable[TraceNode]) -> None:
        for node in nodes:
            if not node.op.renames:
                self.place(self.definitions.position[node], node)
        self.merge_siblings()

    def kernels_of(self, nodes: Iterable[TraceNode]) -> list[int]:
        """The number of the cluster of each of ``nodes``."""
        return [self.find(self.home[node.outs[0]]).number for node in nodes]

    def kernels_of_some(self, nodes: Sequence[TraceNode]) -> list[int]:
        """`kernels_of` where all nodes from the first to the last of ``nodes`` are the program."""
        position = self.definitions.position
        self.group_nodes(self.graph.nodes[position[nodes[0]] : position[nodes[-1]] + 1])
        numbers = self.kernels_of(nodes)
        self.forget_clusters()
        return numbers

    # --- clusters ------------------------------------------------------------------------------------------------

    def find(self, number: int) -> Cluster:
        cluster = self.clusters[number]
        while cluster.merged_into is not None:
            cluster = self.clusters[cluster.merged_into]
        return cluster

    def roots(self, node: TraceNode) -> list[Value]:
        """The values that ``node`` reads, seen through renaming movement."""
        known = self._roots.get(node)
        if known is None:
            if node.op.kind is Kind.ELEMENTWISE or node.op.kind is Kind.REDUCE:
                found = [root for root, _ in self.definitions.reads(node)]
            else:
                found = [self.definitions.resolve(atom).root for atom in node.ins]
            known = self._roots[node] = [root for root in found if isinstance(root, Value)]
        return known

    def place(self, position: int, node: TraceNode) -> None:
        """Give ``node`` a cluster of its own, then merge it with those of its producers, latest first."""
        fusible, producers = is_fusible(node), self.producers(node)
        joined = self.worth_joining(node) if fusible else producers
        if fusible and len(joined) == len(producers) == 1 and self.append(self.find(*producers), node):
            return
        group = self.groups.single(node) if fusible else why_not_fusible(node)
        kept = group if isinstance(group, Group) else None
        new = Cluster(len(self.clusters), position, [node], kept, self.blocks.get(node))
        self.clusters.append(new)
        self.live[new.number] = new
        for out in node.outs:
            self.home[out] = new.number
        self.precede(new, producers)
        for number in sorted(joined, reverse=True):
            self.try_merge(self.find(number), self.find(new.number), producers[number], node, group)
        if new.merged_into is not None:
            self.forget(new)

    def is_outer(self, node: TraceNode) -> bool:
        """Whether ``node`` makes many elements of few, by itself or with others that do."""
        if node.op.kind is not Kind.ELEMENTWISE:
            return False
        size = node.out.aval.size
        return all(_FEW * root.aval.size <= size or root in self.outer for root in self.roots(node))

    def is_transposed_multiple(self, node: TraceNode) -> bool:
        """Whether ``node`` is a cheap op of one transposed array, which other nodes read in its own order."""
        if node.op.kind is not Kind.ELEMENTWISE or node.op.function is not None or expensive(node.op):
            return False
        large = [(root, dims) for root, dims in self.definitions.reads(node) if root.aval.shape]
        if len(large) != 1 or node.out in self.graph.outputs:
            return False
        root, dims = large[0]
        if not isinstance(root, Value) or root.aval.size != node.out.aval.size:
            return False
        turned = dims != identity(len(dims)) and sorted(dims) == list(range(len(dims)))
        return turned and any(not user.op.renames for user in self.graph.users(root))

    def leads_to_reduction(self, node: TraceNode) -> bool:
        """Whether a reduction follows ``node`` in a chain of elementwise ops."""
        for _ in range(_LONGEST_CHAIN):
            users = list(self.users(node.out))
            if any(user.op.kind is Kind.REDUCE for user in users):
                return True
            alike = [user for user in users if user.op.kind is Kind.ELEMENTWISE and user.out.aval.size == node.out.aval.size]
            if not alike:
                return False
            node = alike[-1]
        return False

    def worth_joining(self, node: TraceNode) -> dict[int, TraceNode]:
        """The producers of ``node`` that it may join.

        Many elements of few belong to the kernel of the reduction that follows, which then reads the few. With what
        computes the few, they would be written to memory, unless both reductions are of one loop nest.
        """
        producers = self.producers(node)
        if producers and self.is_transposed_multiple(node):
            reason = "what reads the transpose computes this op for less than a store"
            self.refusals += [Refusal(producer, node, reason) for producer in producers.values()]
            return {}
        if self.tuning.spare_memory:
            found = {n: self.find(n) for n in producers}
            apart = [n for n, c in found.items() if self.stays_late(node, c) or self.would_wait(c, found.values())]
            producers = {n: p for n, p in producers.items() if n not in apart}
        if not self.is_outer(node):
            return producers
        self.outer.add(node.out)
        if not producers or not self.leads_to_reduction(node):
            return producers
        large = [root for root in self.roots(node) if _FEW * root.aval.size > node.out.aval.size]
        whole = {self.find(self.home[root]).number for root in large if root in self.home}
        for number, producer in producers.items():
            if number not in whole:
                self.refusals.append(Refusal(producer, node, "a reduction follows, which can make these elements of few itself"))
        return {number: producer for number, producer in producers.items() if number in whole}

    def stays_late(self, node: TraceNode, cluster: Cluster) -> bool:
        """Whether ``node`` comes after other steps that depend on ``cluster``, and reads nothing in it but what is stored.

        As part of the cluster it would run before those steps, and its result would be kept until somebody needs it.
        """
        if not any(self.find(number) is not cluster for number in cluster.after):
            return False
        read = [root for root in self.roots(node) if root in self.home and self.find(self.home[root]) is cluster]
        return all(self.is_stored(root, cluster) for root in read)

    def would_wait(self, cluster: Cluster, producers: Iterable[Cluster]) -> bool:
        """Whether, with a node that reads from ``producers``, ``cluster`` would run after a later library call among them,
        and keep what it reads until then: the terms of a sum that others do not read, say."""
        if self.tuning.spare_memory < 2 or cluster.group is None:
            return False
        if not any(other.group is None and other.number > cluster.number for other in producers):
            return False
        read = {root for node in cluster.nodes for root in self.roots(node)}
        outside = [root for root in read if root in self.home and self.find(self.home[root]) is not cluster]
        return any(not self.is_stored(root, cluster, self.find(self.home[root])) for root in outside)

    def is_stored(self, value: Value, *clusters: Cluster) -> bool:
        """Whether a node outside of ``clusters`` that has been placed reads ``value``."""
        readers = (user for user in self.users(value) if user.outs and user.outs[0] in self.home)
        return any(self.find(self.home[user.outs[0]]) not in clusters for user in readers)

    def users(self, value: Value) -> Iterator[TraceNode]:
        """The nodes that read ``value``, seen through renaming movement."""
        for user in self.graph.users(value):
            if user.op.renames:
                yield from self.users(user.out)
            else:
                yield user

    def producers(self, node: TraceNode) -> dict[int, TraceNode]:
        """The numbers of the clusters that compute what ``node`` reads, with the last such node of each."""
        found: dict[int, TraceNode] = {}
        for root in self.roots(node):
            number = self.home.get(root)
            if number is not None:
                producer = self.graph.producer(root)
                assert producer is not None
                found[self.find(number).number] = producer
        return found

    def append(self, cluster: Cluster, node: TraceNode) -> bool:
        """Put ``node`` at the end of the only ``cluster`` it reads from, if that is plain: most nodes of a long chain."""
        if cluster.group is None or self.blocks.get(node) != cluster.block:
            return False
        group = self.groups.extended(cluster.group, node)
        if group is None:
            return False
        cluster.group = group
        cluster.nodes.append(node)
        self.home[node.outs[0]] = cluster.number
        return True

    def forget(self, newest: Cluster) -> None:
        """Drop the newest cluster, now part of another, so that ancestor sets stay as short as there are clusters."""
        home = self.find(newest.number)
        for node in newest.nodes:
            self.home.update(dict.fromkeys(node.outs, home.number))
        for number in newest.before:
            self.clusters[number].after.discard(newest.number)
            self.clusters[number].after.add(home.number)
        self.clusters.pop()

    def precede(self, cluster: Cluster, numbers: Iterable[int]) -> None:
        for number in numbers:
            cluster.before.add(number)
            self.clusters[number].after.add(cluster.number)
            cluster.ancestors |= self.clusters[number].ancestors | 1 << number

    def try_merge(
        self, a: Cluster, b: Cluster, producer: TraceNode, consumer: TraceNode, alone: Group | str
    ) -> bool:
        if a is b:
            return True
        reason: str | Group
        if b.group is None:
            reason = f"{consumer.op}: {alone}" if isinstance(alone, str) else "unfused"
        elif a.group is None:
            reason = f"{producer.op}: {why_not_fusible(producer)}"
        elif a.is_of_another_block(b):
            reason = "the steps of a loop are cut where they give equal kernels"
        elif self.path_between(a, b):
            reason = "another step must run between them"
        else:
            reason = self.groups.merge(a.group, b.group)
        if isinstance(reason, str):
            self.refusals.append(Refusal(producer, consumer, reason))
            return False
        self.join(a, b, reason)
        return True

    def path_between(self, a: Cluster, b: Cluster) -> bool:
        """Whether some third cluster depends on one and is needed by the other."""
        for low, high in ((a, b), (b, a)):
            for number in high.before:
                middle = self.find(number)
                if middle is not low and middle is not high and middle.ancestors >> low.number & 1:
                    return True
        return False

    def join(self, a: Cluster, b: Cluster, group: Group) -> None:
        """``b`` becomes part of ``a``; everything after either is now after both."""
        b.merged_into = a.number
        a.nodes += b.nodes
        a.group = group
        a.block = b.block if a.block is None else a.block
        a.position = min(a.position, b.position)
        del self.live[b.number]
        a.before = {self.find(n).number for n in a.before | b.before} - {a.number}
        a.after |= b.after
        a.ancestors = (a.ancestors | b.ancestors) & ~(1 << a.number | 1 << b.number)
        self.pass_on(a, ~(1 << b.number))

    def pass_on(self, changed: Cluster, keep: int) -> None:
        """Tell everything after ``changed`` of its ancestors; ``keep`` masks out the bit of a cluster that is gone."""
        work = [changed]
        while work:
            cluster = work.pop()
            bits = cluster.ancestors | 1 << cluster.number
            for number in cluster.after:
                later = self.find(number)
                known = (later.ancestors | bits) & keep
                if later is not cluster and known != later.ancestors:
                    later.ancestors = known
                    work.append(later)

    # --- siblings ------------------------------------------------------------------------------------------------

    def merge_siblings(self) -> None:
        """Merge clusters that read the same large array and could read it together."""
        readers: dict[Value, list[int]] = {}
        for cluster in self.clusters:
            if cluster.merged_into is None and cluster.group is not None:
                for root in dict.fromkeys(r for node in cluster.nodes for r in self.roots(node)):
                    if root.aval.size > 1:
                        readers.setdefault(root, []).append(cluster.number)
        for numbers in readers.values():
            for first, second in zip(numbers, numbers[1:], strict=False):
                self.merge_pair(self.find(first), self.find(second))

    def merge_pair(self, a: Cluster, b: Cluster) -> None:
        if a is b or a.group is None or b.group is None or a.is_of_another_block(b):
            return
        if b.ancestors >> a.number & 1 or a.ancestors >> b.number & 1:
            return  # producer and consumer: decided when the consumer was placed
        first, second = (a, b) if a.number < b.number else (b, a)
        assert first.group is not None and second.group is not None
        merged = self.groups.merge(first.group, second.group)
        if isinstance(merged, Group):
            self.join(first, second, merged)
        else:
            self.refusals.append(Refusal(first.nodes[-1], second.nodes[0], merged))
