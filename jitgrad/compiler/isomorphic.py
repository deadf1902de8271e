"""Many parts of a program that are alike, such as one update per tensor: what passes make of one holds for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, exact

# Fewer parts than these are worth no folding: the kernel that makes the numbers which they share could be one of theirs.
MANY = 32


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """Nodes that no value connects to the rest of a program, but for numbers that many read."""

    nodes: tuple[TraceNode, ...]
    inputs: tuple[Value, ...]  # in the order of their first use
    results: tuple[int, ...]  # positions among the program's outputs


@dataclass(frozen=True, eq=False, slots=True)
class OutlinedGraph:
    """A program with one part of each kind in place of many: ``graphs`` are the rest, then one part of every kind.

    ``kinds`` holds the parts of each kind, in program order. ``shared`` are the numbers that parts read and the rest
    computes: the last outputs of the rest.
    """

    whole: Graph
    graphs: tuple[Graph, ...]
    kinds: tuple[tuple[_Part, ...], ...]
    shared: tuple[Value, ...]
    rest_results: tuple[int, ...]

    def shown(self, graphs: Sequence[Graph]) -> Graph:
        """What has become of the graphs, as one: every kind of part once."""
        if len(graphs) == 1:
            return graphs[0]
        inputs = {id(v): v for v in chain.from_iterable(g.inputs for g in (self.whole, *graphs))}
        made = {id(v) for g in graphs for n in g.nodes for v in n.outs}
        nodes = tuple(chain.from_iterable(g.nodes for g in graphs))
        outputs = tuple(chain.from_iterable(g.outputs for g in graphs))
        return Graph(self.whole.name, tuple(v for v in inputs.values() if id(v) not in made), nodes, outputs)

    def cuts(self) -> Iterator[tuple[TraceNode, TraceNode, int]]:
        """What makes each shared number, what reads it first in each kind of part, and how many parts of the kind do."""
        makers = {id(out): node for graph in self.graphs[:1] for node in graph.nodes for out in node.outs}
        for value in self.shared:
            for kind in self.kinds:
                reader = next((n for n in kind[0].nodes if any(a is value for a in n.ins)), None)
                if reader is not None:
                    yield makers[id(value)], reader, len(kind)

    def inline(self, graphs: Sequence[Graph]) -> Graph | None:
        """The whole program, of what passes made of the ``graphs``.

        None if they found out that a number which parts share is known: that of a part could use it.
        """
        if len(graphs) == 1:
            return graphs[0]
        rest, *kinds = graphs
        numbers = rest.outputs[len(self.rest_results) :]
        if any(isinstance(atom, Literal) for atom in numbers):
            return None
        shared: dict[int, Atom] = {id(old): new for old, new in zip(self.shared, numbers, strict=True)}
        outputs: list[Atom] = list(self.whole.outputs)
        for position, atom in zip(self.rest_results, rest.outputs, strict=False):
            outputs[position] = atom
        order = {id(node): k for k, node in enumerate(self.whole.nodes)}
        listed = [(order[id(part.nodes[0])], part, graph) for kind, graph in zip(self.kinds, kinds, strict=True) for part in kind]
        nodes = list(rest.nodes)
        for _, part, graph in sorted(listed, key=lambda entry: entry[0]):
            results = _instance(graph, [shared.get(id(v), v) for v in part.inputs], nodes)
            for position, atom in zip(part.results, results, strict=True):
                outputs[position] = atom
        return replace(self.whole, nodes=tuple(nodes), outputs=tuple(outputs))


def _instance(graph: Graph, inputs: Sequence[Atom], nodes: list[TraceNode]) -> list[Atom]:
    """Append ``graph`` with other ``inputs`` to ``nodes``; its outputs. Attributes, also bodies of kernels, are shared."""
    now: dict[int, Atom] = {id(old): new for old, new in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        outs = tuple([Value(out.aval) for out in node.outs])
        ins = tuple([now.get(id(atom), atom) for atom in node.ins])
        now.update(zip(map(id, node.outs), outs, strict=True))
        nodes.append(TraceNode(node.op, ins, outs, node.attrs, node.origin))
    return [now.get(id(atom), atom) for atom in graph.outputs]


def outline(graph: Graph) -> OutlinedGraph:
    """Find the kinds of parts of which ``graph`` has `MANY`, or more.

    Parts are alike if they cannot be told apart but for where their inputs come from: the same ops, attributes, literals,
    shapes, dtypes and weak types, wired in the same way, from the same lines. Nothing in a part reads what another makes,
    and a part that makes a number which others read is no such part. So whatever passes do to one, they may do to each,
    and all parts can run after the rest.
    """
    shared = _shared_numbers(graph)
    parts = _parts(graph, shared) if len(graph.nodes) >= MANY else []
    kinds: dict[Hashable, list[_Part]] = {}
    for part in parts:
        try:
            kinds.setdefault(_key(part, graph.outputs), []).append(part)
        except TypeError:  # an attribute that cannot be hashed: like no other
            continue
    many = tuple(tuple(kind) for kind in kinds.values() if len(kind) >= MANY)
    return _folded(graph, many, shared) if many else alone(graph)


def alone(graph: Graph) -> OutlinedGraph:
    """``graph`` as it is."""
    return OutlinedGraph(graph, (graph,), (), (), ())


def _folded(graph: Graph, kinds: tuple[tuple[_Part, ...], ...], shared: dict[int, Value]) -> OutlinedGraph:
    taken = {id(node) for kind in kinds for part in kind for node in part.nodes}
    elsewhere = {k for kind in kinds for part in kind for k in part.results}
    rest = tuple([node for node in graph.nodes if id(node) not in taken])
    made = {id(out) for node in rest for out in node.outs}
    read = {id(v) for kind in kinds for part in kind for v in part.inputs}
    numbers = tuple(v for v in shared.values() if id(v) in made and id(v) in read)
    results = tuple(k for k in range(len(graph.outputs)) if k not in elsewhere)
    outputs = (*(graph.outputs[k] for k in results), *numbers)
    examples = [kind[0] for kind in kinds]
    needed = {id(atom) for atom in chain(outputs, chain.from_iterable(node.ins for node in rest))}
    inputs = tuple([v for v in graph.inputs if id(v) in needed])
    graphs = [Graph(graph.name, p.inputs, p.nodes, tuple(graph.outputs[k] for k in p.results)) for p in examples]
    return OutlinedGraph(graph, (Graph(graph.name, inputs, rest, outputs), *graphs), kinds, numbers, results)


def _shared_numbers(graph: Graph) -> dict[int, Value]:
    """By id, the values of one element that many nodes read: a learning rate, say."""
    counts = Counter(map(id, chain.from_iterable([node.ins for node in graph.nodes])))
    often = {key for key, count in counts.items() if count >= MANY}
    if not often:
        return {}
    values = chain(graph.inputs, chain.from_iterable([node.outs for node in graph.nodes]))
    return {id(v): v for v in values if id(v) in often and v.aval.size == 1}


def _parts(graph: Graph, shared: dict[int, Value]) -> list[_Part]:
    """The parts of ``graph`` that come in numbers, by their lengths, and make nothing that others read."""
    homes = _Homes(shared)
    for node in graph.nodes:
        homes.place(node)
    nodes: dict[int, list[TraceNode]] = {}
    for node, home in zip(graph.nodes, homes.of_nodes(), strict=True):
        nodes.setdefault(home, []).append(node)
    lengths = Counter(map(len, nodes.values()))
    nodes = {home: listed for home, listed in nodes.items() if lengths[len(listed)] >= MANY}
    if not nodes:
        return []
    results: dict[int, list[int]] = {home: [] for home in nodes}
    for position, atom in enumerate(graph.outputs):
        home = homes.of_value(atom)
        if home in results:
            results[home].append(position)
    parts = [_Part(tuple(listed), tuple(_read(listed)), tuple(results[home])) for home, listed in nodes.items()]
    return [part for part in parts if _stands_alone(part, shared)]


def _stands_alone(part: _Part, shared: dict[int, Value]) -> bool:
    """Whether ``part`` makes no number for others, and reads more than numbers: kernels of those alone are best large."""
    if any(id(out) in shared for node in part.nodes for out in node.outs):
        return False
    return any(v.aval.size > 1 for v in part.inputs)


def _read(nodes: Sequence[TraceNode]) -> Iterator[Value]:
    """What ``nodes`` read and do not make, in the order of first use."""
    seen: set[int] = set()
    for node in nodes:
        for atom in node.ins:
            if id(atom) not in seen and type(atom) is Value:
                seen.add(id(atom))
                yield atom
        seen.update(map(id, node.outs))


class _Homes:
    """Which values and nodes hang together, where ``apart`` (by id) does not connect them."""

    def __init__(self, apart: dict[int, Value]) -> None:
        self.apart = apart
        self.of: dict[int, int] = {}  # by the id of a value
        self.parent: list[int] = []
        self.placed: list[int] = []  # per node

    def place(self, node: TraceNode) -> None:
        of, home = self.of, -1
        new: list[int] = []
        for atom in node.ins:
            key = id(atom)
            known = of.get(key)
            if known is not None:
                known = self.find(known)
                if home >= 0 and known != home:
                    self.parent[max(home, known)] = known = min(home, known)
                home = known
            elif type(atom) is Value and key not in self.apart:
                new.append(key)
        if home < 0:
            home = len(self.parent)
            self.parent.append(home)
        for key in new:
            of[key] = home
        for out in node.outs:
            if id(out) not in self.apart:
                of[id(out)] = home
        self.placed.append(home)

    def find(self, home: int) -> int:
        parent = self.parent
        while (above := parent[home]) != home:
            parent[home] = parent[above]
            home = above
        return home

    def of_nodes(self) -> list[int]:
        return [self.find(home) for home in self.placed]

    def of_value(self, atom: Atom) -> int:
        known = self.of.get(id(atom))
        return -1 if known is None else self.find(known)


def _key(part: _Part, outputs: Sequence[Atom]) -> Hashable:
    """Everything of ``part`` that passes and kernels can depend on, values by number; and the lines it comes from."""
    numbers = {id(value): k for k, value in enumerate(part.inputs)}
    looks = [(v.aval.shape, v.aval.dtype, v.aval.weak) for v in part.inputs]
    nodes = []
    for node in part.nodes:
        ins = tuple([numbers.get(id(atom), atom) for atom in node.ins])
        for out in node.outs:
            numbers[id(out)] = len(looks)
            looks.append((out.aval.shape, out.aval.dtype, out.aval.weak))
        origin = node.origin
        nodes.append((node.op, exact(node.attrs) if node.attrs else (), ins, len(node.outs), origin.file, origin.line))
    return tuple(nodes), tuple(looks), tuple([numbers[id(outputs[k])] for k in part.results])
