"""Computes outer differences and products again for each reduction that needs loops of its own."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.passes.canonicalize_reductions import lies_between, reduce_rows
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind

_Chain = tuple[TraceNode, ...]  # elementwise nodes in program order; the last one makes the operand of a reduction
_FEW = 8  # times fewer elements, which are read again at no cost to speak of
MAX_CHAIN = 8  # ops that are computed again


def recompute_outer(graph: Graph, tuning: Tuning) -> Graph:
    """Give reductions of ``x[:, None] - y[None]`` over different axes an outer difference each.

    The gradients of pairwise distances reduce the same elements over one axis for ``x``, over another for ``y``, and the
    distances over a third. No loop nest does two of them, so that the elements would be written to memory; computed from
    the few that they are made of, they need not be.
    """
    position = {node: k for k, node in enumerate(graph.nodes)}
    chain_of = {node: sorted(_outer_chain(graph, node, tuning), key=position.__getitem__) for node in graph.nodes}
    chains = {node: tuple(chain) for node, chain in chain_of.items() if chain}
    loops = _Loops(chains)
    again = {node: chain for node, chain in chains.items() if loops.number(node)}
    if not again:
        return graph
    new = Rewriter(graph)
    copies: dict[tuple[int, Atom], Value] = {}
    for node in new.visit():
        original = graph.producer(node.out) if len(node.outs) == 1 else None
        if original not in again:
            new.keep(node)
            continue
        number = loops.number(original)
        for part in again[original]:
            ins = [copies.get((number, atom), new.current(atom)) for atom in part.ins]
            if (number, part.out) not in copies:
                copies[number, part.out] = new.emit(part.op, *ins, **dict(part.attrs))
        reduction = TraceNode(node.op, (copies[number, original.ins[0]],), node.outs, node.attrs, node.origin)
        if lies_between(reduction, tuning):
            reduce_rows(new, reduction)
        else:
            new.keep(reduction)
    return new.graph()


def _outer_chain(graph: Graph, node: TraceNode, tuning: Tuning) -> set[TraceNode]:
    """The cheap ops that make the operand of the reduction ``node`` of few elements; none if they do not."""
    if node.op.kind is not Kind.REDUCE or node.op.monoid is None or node.ins[0].aval.size < tuning.min_recomputed:
        return set()
    whole = node.ins[0].aval
    chain: set[TraceNode] = set()
    waiting: list[Atom] = [node.ins[0]]
    while waiting:
        atom = waiting.pop()
        if _FEW * atom.aval.size <= whole.size:
            continue
        producer = graph.producer(atom)
        if producer is None or len(chain) > MAX_CHAIN:
            return set()
        is_view = producer.op.kind is Kind.MOVEMENT and _FEW * producer.ins[0].aval.size <= whole.size
        if producer in chain or is_view:
            continue
        if not _is_cheap(producer) or producer.out.aval.shape != whole.shape:
            return set()
        chain.add(producer)
        waiting += producer.ins
    return chain


def _is_cheap(node: TraceNode) -> bool:
    return node.op.kind is Kind.ELEMENTWISE and node.op.scalar is not None and not expensive(node.op)


class _Loops:
    """Which reductions of common elements one loop nest can do: each such set has a number, the first of them 0."""

    def __init__(self, chains: dict[TraceNode, _Chain]) -> None:
        self.numbers: dict[TraceNode, int] = {}
        families: list[tuple[set[TraceNode], list[list[TraceNode]]]] = []  # common elements, and their reductions by loops
        for node, chain in chains.items():
            family = next((f for f in families if not f[0].isdisjoint(chain)), None)
            if family is None:
                families.append((set(chain), [[node]]))
                continue
            family[0].update(chain)
            loops = next((known for known in family[1] if all(_together(node, other) for other in known)), None)
            if loops is None:
                family[1].append([node])
            else:
                loops.append(node)
        for _, sets in families:
            self.numbers.update({node: k for k, nodes in enumerate(sets) for node in nodes})

    def number(self, node: TraceNode | None) -> int:
        return self.numbers.get(node, 0) if node is not None else 0


def _together(a: TraceNode, b: TraceNode) -> bool:
    """Whether one loop nest reduces both: over the same axes, over all, or one over rows and the other over columns."""
    first, second = _real_axes(a), _real_axes(b)
    rank = sum(n != 1 for n in a.ins[0].aval.shape)
    if first == second or len(first) == rank or len(second) == rank:
        return True
    return sorted([*first, *second]) == list(range(rank)) and (0 in first or 0 in second) and _is_run(first) and _is_run(second)


def _is_run(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[-1] + 1))


def _real_axes(node: TraceNode) -> tuple[int, ...]:
    """The axes that ``node`` reduces, counted without those of length 1."""
    real = [k for k, n in enumerate(node.ins[0].aval.shape) if n != 1]
    return tuple(real.index(k) for k in sorted(node.attr("axis")) if k in real)
