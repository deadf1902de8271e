"""Adds up the placed terms of a sum by themselves where they do not overlap, so that they become one array."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.passes.slices import disjoint
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.ops.arithmetic import ADD
from jitgrad.ops.movement import PLACE


def join_places(graph: Graph, tuning: Tuning) -> Graph:
    """``(x + place(a)) + place(b)`` becomes ``x + (place(a) + place(b))`` where the places do not overlap.

    The gradients of ``y[:, 0]`` and ``y[:, 1]`` follow that of ``y`` in a sum. `insert_slices` makes one array of a sum of
    places alone, and an array among zeros of each other one. An element of the sum has one term that is not a zero between
    the others, so no rounding changes. Joined are places that fill the whole, and those in rows so short that kernels
    do not read them at offsets.
    """
    chains = _chains(graph)
    joined = {root: groups for root, terms in chains.items() if (groups := _groups(graph, terms, tuning))}
    if not joined:
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        if node.outs[0] not in joined:
            new.keep(node)
            continue
        sums = [_added(new, group) for group in joined[node.outs[0]]]
        new.define(node.out, ADD, _added(new, sums[:-1]), sums[-1])
    return eliminate_dead(new.graph())


def _added(new: Rewriter, atoms: Sequence[Atom]) -> Atom:
    total = new.current(atoms[0])
    for atom in atoms[1:]:
        total = new.emit(ADD, total, new.current(atom))
    return total


def _chains(graph: Graph) -> dict[Value, list[Atom]]:
    """The terms of each sum of three or more of its shape and dtype, in the order in which they are added."""
    chains: dict[Value, list[Atom]] = {}
    inner: set[Value] = set()
    results = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.op is not ADD or node.out in inner:
            continue
        later: list[Atom] = []
        step: TraceNode | None = node
        while step is not None:
            following = None
            for atom, other in (step.ins, step.ins[::-1]):
                producer = graph.producer(atom)
                if producer is not None and _continues(producer, node, results) and len(graph.users(producer.out)) == 1:
                    following = producer
                    inner.add(producer.out)
                    later.append(other)
                    break
            if following is None:
                later += step.ins[::-1]
            step = following
        if len(later) > 2:
            chains[node.out] = later[::-1]
    return chains


def _continues(producer: TraceNode, root: TraceNode, results: set[Atom]) -> bool:
    return producer.op is ADD and producer.out.aval == root.out.aval and producer.out not in results


def _groups(graph: Graph, terms: Sequence[Atom], tuning: Tuning) -> list[list[Atom]]:
    """``terms`` with neighbouring places in lists of their own; nothing if there is no use in that."""
    groups: list[list[Atom]] = []
    for is_place, run in groupby(terms, lambda atom: _is_place(graph, atom)):
        neighbours = list(run)
        together = is_place and len(neighbours) > 1 and _become_one(graph, neighbours, tuning)
        groups += [neighbours] if together else [[atom] for atom in neighbours]
    return groups if len(groups) > 1 and len(groups[0]) == 1 and len(groups) < len(terms) else []


def _is_place(graph: Graph, atom: Atom) -> bool:
    producer = graph.producer(atom)
    return producer is not None and producer.op is PLACE and len(graph.users(producer.out)) == 1


def _become_one(graph: Graph, places: Sequence[Atom], tuning: Tuning) -> bool:
    nodes = [node for node in map(graph.producer, places) if node is not None]
    indices = [node.attr("index") for node in nodes]
    shape = places[0].aval.shape
    if any(atom.aval != places[0].aval for atom in places):
        return False
    if any(not disjoint(a, b) for k, a in enumerate(indices) for b in indices[:k]):
        return False
    fills = sum(prod(n for _, _, n in index) for index in indices) == prod(shape)
    return fills or shape[-1] < tuning.min_offset_row
