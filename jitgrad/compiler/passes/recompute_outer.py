"""Computes values of many elements that are made of few again, for each user that another kernel runs."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.canonicalize_reductions import lies_between, reduce_rows
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind

_Chain = tuple[TraceNode, ...]  # elementwise nodes in an order in which they can run; the last one makes the value
_FEW = 8  # times fewer elements, which are read again at no cost to speak of
MAX_CHAIN = 8  # ops that are computed again


def recompute_outer(graph: Graph, tuning: Tuning) -> Graph:
    """Give users of ``x[:, None] - y[None]`` that no kernel holds together an outer difference each.

    The gradients of pairwise distances reduce the same elements over one axis for ``x``, over another for ``y``, and the
    distances over a third. No loop nest does two of them. Nor does one do what needs a reduction over all rows, or a library
    call, and what leads to it: the values and the gradients of a soft histogram, say. The elements would be written to
    memory and read again; computed from the few that they are made of, they need not be.
    """
    chains = _outer_chains(graph, tuning)
    numbers = _numbers(graph, chains, tuning) if chains else {}
    if not any(numbers.values()):
        return graph
    new = Rewriter(graph)
    copies: dict[tuple[int, Atom], Value] = {}
    for node in new.visit():
        original = graph.producer(node.outs[0]) if node.outs else None
        number = numbers.get(original, 0) if original is not None else 0
        if original is None or not number:
            new.keep(node)
            continue
        for atom in _read_outer(original, chains):
            for part in chains[atom]:
                if (number, part.out) not in copies:
                    ins = tuple([copies.get((number, a), new.current(a)) for a in part.ins])
                    copies[number, part.out] = new.emit(part.op, *ins, **dict(part.attrs))
        ins = tuple([copies.get((number, a), new.current(a)) for a in original.ins])
        user = TraceNode(node.op, ins, node.outs, node.attrs, node.origin)
        if user.op.kind is Kind.REDUCE and lies_between(user, tuning):
            reduce_rows(new, user)
        else:
            new.keep(user)
    return new.graph()


# --- what is made of few elements ------------------------------------------------------------------------------------


def _outer_chains(graph: Graph, tuning: Tuning) -> dict[Atom, _Chain]:
    """The values of many elements made of few, each with the ops that make it, itself included."""
    chains: dict[Atom, _Chain] = {}
    for node in graph.nodes:
        if node.op.kind is not Kind.ELEMENTWISE or node.op.scalar is None or node.out.aval.size < tuning.min_recomputed:
            continue
        parts = [atom for atom in node.ins if not _is_few(graph, atom, node.out.aval.size)]
        if all(atom in chains and atom.aval.shape == node.out.aval.shape for atom in parts):
            chain = (*dict.fromkeys(part for atom in parts for part in chains[atom]), node)
            if len(chain) <= MAX_CHAIN and _is_worth(chain, node.out, tuning):
                chains[node.out] = chain
    return chains


def _is_few(graph: Graph, atom: Atom, size: int) -> bool:
    """Whether ``atom`` is, or only repeats or moves, so few elements that ``size`` are many."""
    producer = graph.producer(atom)
    moved = producer is not None and producer.op.kind is Kind.MOVEMENT and _FEW * producer.ins[0].aval.size <= size
    return moved or _FEW * atom.aval.size <= size


def _is_worth(chain: _Chain, out: Value, tuning: Tuning) -> bool:
    """Whether the ops take less time than writing and reading ``out``; calls do only where that is no cache's time."""
    calls = sum(expensive(node.op) for node in chain)
    if calls and out.aval.nbytes < tuning.min_recomputed_bytes:
        return False
    operations = len(chain) + (tuning.costly_operations - 1) * calls
    return not calls or operations <= tuning.gathered_operations * 2 * out.aval.dtype.itemsize


def _read_outer(node: TraceNode, chains: dict[Atom, _Chain]) -> list[Atom]:
    """The operands of ``node`` that are made of few, and many beside its loops."""
    size = _loop_size(node)
    return [atom for atom in dict.fromkeys(node.ins) if atom in chains and _FEW * atom.aval.size > size]


def _loop_size(node: TraceNode) -> int:
    return node.ins[0].aval.size if node.op.kind is Kind.REDUCE else max(out.aval.size for out in node.outs)


# --- which users one loop nest can serve -----------------------------------------------------------------------------


def _numbers(graph: Graph, chains: dict[Atom, _Chain], tuning: Tuning) -> dict[TraceNode, int]:
    """The number of the copy of their operands that users read; 0 for the original."""
    levels = _levels(graph, tuning)
    families: dict[TraceNode, _Family] = {}
    numbers: dict[TraceNode, int] = {}
    for node in graph.nodes:
        read = _read_outer(node, chains)
        if not read or (node.outs[0] in chains and node.op.kind is Kind.ELEMENTWISE):
            continue
        chain = list(dict.fromkeys(part for atom in read for part in chains[atom]))
        family = next((families[part] for part in chain if part in families), None) or _Family()
        for part in chain:
            families.setdefault(part, family)
        if is_fusible(node):
            numbers[node] = family.number(node, levels[node])
    return numbers


class _Family:
    """Users of common elements: those that one loop nest can serve have a number in common, the first of them 0."""

    def __init__(self) -> None:
        self.sets: list[tuple[int, list[TraceNode]]] = []  # the level of users, and the reductions among them

    def number(self, node: TraceNode, level: int) -> int:
        reduces = node.op.kind is Kind.REDUCE
        for k, (known, reductions) in enumerate(self.sets):
            if known == level and (not reduces or all(_together(node, other) for other in reductions)):
                if reduces and all(_form(node) != _form(other) for other in reductions):
                    reductions.append(node)
                return k
        self.sets.append((level, [node] if reduces else []))
        return len(self.sets) - 1


def _levels(graph: Graph, tuning: Tuning) -> dict[TraceNode, int]:
    """How many times kernels before a node must be complete at least: for library calls, and for reductions of all rows."""
    after: dict[Atom, int] = {}  # the level of what reads a value
    most: dict[Atom, int] = {}  # the most elements of what leads to it
    levels: dict[TraceNode, int] = {}
    for node in graph.nodes:
        levels[node] = level = max([after.get(atom, 0) for atom in node.ins], default=0)
        largest = max([most.get(atom, atom.aval.size) for atom in node.ins], default=0)
        waits = largest >= tuning.min_recomputed and _is_complete_late(node)
        for out in node.outs:
            after[out] = level + waits
            most[out] = max(largest, out.aval.size)
    return levels


def _is_complete_late(node: TraceNode) -> bool:
    """Whether nothing can read the result before all kernels that lead to it have run."""
    if node.op.kind is Kind.MOVEMENT:
        return False
    return not is_fusible(node) or (node.op.kind is Kind.REDUCE and 0 in _real_axes(node))


def _together(a: TraceNode, b: TraceNode) -> bool:
    """Whether one loop nest reduces both: over the same axes, over all, or one over rows and the other over columns."""
    first, second = _real_axes(a), _real_axes(b)
    rank = sum(n != 1 for n in a.ins[0].aval.shape)
    if first == second or len(first) == rank or len(second) == rank:
        return True
    return sorted([*first, *second]) == list(range(rank)) and (0 in first or 0 in second) and _is_run(first) and _is_run(second)


def _is_run(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[-1] + 1))


def _form(node: TraceNode) -> tuple[int, tuple[int, ...]]:
    """The number of axes that ``node`` goes over, and those that it reduces, all without axes of length 1."""
    return sum(n != 1 for n in node.ins[0].aval.shape), _real_axes(node)


def _real_axes(node: TraceNode) -> tuple[int, ...]:
    """The axes that ``node`` reduces, counted without those of length 1."""
    real = [k for k, n in enumerate(node.ins[0].aval.shape) if n != 1]
    return tuple(real.index(k) for k in sorted(node.attr("axis")) if k in real)
