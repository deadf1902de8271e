"""Outlines equal parts of a program, such as one update per tensor, so that passes rewrite one part for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value, exact


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
        """The graphs after a pass as one, with every kind of part once."""
        if len(graphs) == 1:
            return graphs[0]
        inputs = dict.fromkeys(chain.from_iterable(g.inputs for g in (self.whole, *graphs)))
        computed = {v for g in graphs for n in g.nodes for v in n.outs}
        nodes = tuple(chain.from_iterable(g.nodes for g in graphs))
        outputs = tuple(chain.from_iterable(g.outputs for g in graphs))
        return Graph(self.whole.name, tuple(v for v in inputs if v not in computed), nodes, outputs)

    def cuts(self) -> Iterator[tuple[TraceNode, TraceNode, int]]:
        """(producer of a shared number, its first reader in a kind of part, number of such parts), for all of them."""
        for value in self.shared:
            for kind in self.kinds:
                reader = next((n for n in kind[0].nodes if any(a is value for a in n.ins)), None)
                producer = self.graphs[0].producer(value)
                if reader is not None and producer is not None:
                    yield producer, reader, len(kind)

    def inline(self, graphs: Sequence[Graph]) -> Graph | None:
        """The whole program, from the ``graphs`` after the passes.

        None if the passes computed a number that parts share: the passes of a part could use it.
        """
        if len(graphs) == 1:
            return graphs[0]
        rest, *kinds = graphs
        numbers = rest.outputs[len(self.rest_results) :]
        if any(isinstance(atom, Literal) for atom in numbers):
            return None
        shared: dict[Value, Atom] = dict(zip(self.shared, numbers, strict=True))
        outputs: list[Atom] = list(self.whole.outputs)
        for position, atom in zip(self.rest_results, rest.outputs, strict=False):
            outputs[position] = atom
        order = {node: k for k, node in enumerate(self.whole.nodes)}
        listed = [(order[p.nodes[0]], p, graph) for kind, graph in zip(self.kinds, kinds, strict=True) for p in kind]
        nodes = list(rest.nodes)
        for _, part, graph in sorted(listed, key=lambda entry: entry[0]):
            copies, results = graph.copied([shared.get(v, v) for v in part.inputs])
            nodes += copies
            for position, atom in zip(part.results, results, strict=True):
                outputs[position] = atom
        return replace(self.whole, nodes=tuple(nodes), outputs=tuple(outputs))


def outline(graph: Graph, tuning: Tuning) -> OutlinedGraph:
    """Find the kinds of parts of which ``graph`` has many.

    Parts are isomorphic if they differ in their inputs alone: the same ops, attributes, literals, shapes, dtypes and weak
    types, wired in the same way, from the same lines. No part reads a value of another one, and a part that computes a
    number which others read is not outlined. So a rewrite of one part holds for each, and all can run after the rest.
    """
    many = tuning.min_isomorphic_parts
    shared = _shared_numbers(graph, many)
    parts = _parts(graph, shared, many) if len(graph.nodes) >= many else []
    kinds: dict[Hashable, list[_Part]] = {}
    for part in parts:
        try:
            kinds.setdefault(_key(part, graph.outputs), []).append(part)
        except TypeError:  # an attribute that cannot be hashed: equal to no other
            continue
    frequent = tuple(tuple(kind) for kind in kinds.values() if len(kind) >= many)
    return _outlined(graph, frequent, shared) if frequent else alone(graph)


def alone(graph: Graph) -> OutlinedGraph:
    """``graph`` as it is."""
    return OutlinedGraph(graph, (graph,), (), (), ())


def _outlined(graph: Graph, kinds: tuple[tuple[_Part, ...], ...], shared: set[Atom]) -> OutlinedGraph:
    outlined = {node for kind in kinds for part in kind for node in part.nodes}
    elsewhere = {k for kind in kinds for part in kind for k in part.results}
    rest = tuple([node for node in graph.nodes if node not in outlined])
    read = {v for kind in kinds for part in kind for v in part.inputs}
    numbers = tuple(out for node in rest for out in node.outs if out in shared and out in read)
    results = tuple(k for k in range(len(graph.outputs)) if k not in elsewhere)
    outputs = (*(graph.outputs[k] for k in results), *numbers)
    examples = [kind[0] for kind in kinds]
    needed = set(chain(outputs, chain.from_iterable(node.ins for node in rest)))
    inputs = tuple([v for v in graph.inputs if v in needed])
    graphs = [Graph(graph.name, p.inputs, p.nodes, tuple(graph.outputs[k] for k in p.results)) for p in examples]
    return OutlinedGraph(graph, (Graph(graph.name, inputs, rest, outputs), *graphs), kinds, numbers, results)


def _shared_numbers(graph: Graph, many: int) -> set[Atom]:
    """The values of one element that many nodes read: a learning rate, say."""
    counts = Counter(chain.from_iterable([node.ins for node in graph.nodes]))
    return {atom for atom, count in counts.items() if count >= many and type(atom) is Value and atom.aval.size == 1}


def _parts(graph: Graph, shared: set[Atom], many: int) -> list[_Part]:
    """The connected parts of ``graph`` with lengths that many of them have, and that compute no shared number."""
    homes = _Homes(shared)
    for node in graph.nodes:
        homes.place(node)
    nodes: dict[int, list[TraceNode]] = {}
    for node, home in zip(graph.nodes, homes.of_nodes(), strict=True):
        nodes.setdefault(home, []).append(node)
    lengths = Counter(map(len, nodes.values()))
    nodes = {home: listed for home, listed in nodes.items() if lengths[len(listed)] >= many}
    if not nodes:
        return []
    results: dict[int, list[int]] = {home: [] for home in nodes}
    for position, atom in enumerate(graph.outputs):
        home = homes.of_value(atom)
        if home in results:
            results[home].append(position)
    parts = [_Part(tuple(listed), tuple(_read(listed)), tuple(results[home])) for home, listed in nodes.items()]
    return [part for part in parts if _stands_alone(part, shared)]


def _stands_alone(part: _Part, shared: set[Atom]) -> bool:
    """Whether ``part`` computes no shared number, and reads more than numbers: kernels of those alone are best large."""
    if any(out in shared for node in part.nodes for out in node.outs):
        return False
    return any(v.aval.size > 1 for v in part.inputs)


def _read(nodes: Sequence[TraceNode]) -> Iterator[Value]:
    """The values that ``nodes`` read and do not compute, in the order of first use."""
    known: set[Atom] = set()
    for node in nodes:
        for atom in node.ins:
            if atom not in known and type(atom) is Value:
                known.add(atom)
                yield atom
        known.update(node.outs)


class _Homes:
    """The connected parts of a program, in which the values ``apart`` do not connect nodes."""

    def __init__(self, apart: set[Atom]) -> None:
        self.apart = apart
        self.of: dict[Atom, int] = {}
        self.parent: list[int] = []
        self.placed: list[int] = []  # per node

    def place(self, node: TraceNode) -> None:
        of, home = self.of, -1
        new: list[Value] = []
        for atom in node.ins:
            if type(atom) is not Value:
                continue
            own = of.get(atom)
            if own is not None:
                own = self.find(own)
                if home >= 0 and own != home:
                    self.parent[max(home, own)] = own = min(home, own)
                home = own
            elif atom not in self.apart:
                new.append(atom)
        if home < 0:
            home = len(self.parent)
            self.parent.append(home)
        for value in (*new, *node.outs):
            if value not in self.apart:
                of[value] = home
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
        home = self.of.get(atom)
        return -1 if home is None else self.find(home)


def _key(part: _Part, outputs: Sequence[Atom]) -> Hashable:
    """Everything of ``part`` that passes and kernels can depend on, values by number; and the lines it comes from."""
    numbers: dict[Atom, int] = {value: k for k, value in enumerate(part.inputs)}
    avals = [(v.aval.shape, v.aval.dtype, v.aval.weak) for v in part.inputs]
    nodes = []
    for node in part.nodes:
        ins = tuple([numbers.get(atom, atom) for atom in node.ins])
        for out in node.outs:
            numbers[out] = len(avals)
            avals.append((out.aval.shape, out.aval.dtype, out.aval.weak))
        origin = node.origin
        nodes.append((node.op, exact(node.attrs) if node.attrs else (), ins, len(node.outs), origin.file, origin.line))
    return tuple(nodes), tuple(avals), tuple([numbers[outputs[k]] for k in part.results])
