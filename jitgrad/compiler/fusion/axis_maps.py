"""Maps the dimensions of values to loop axes, through broadcasts, permutations and reductions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from jitgrad.compiler.compiler_ops import ELEMENT_AT
from jitgrad.core.fork import cached_property
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.movement import BROADCAST_TO, EXPAND_DIMS, SQUEEZE

# For every dimension of a value: the position of the axis it runs along, or NONE for a dimension of length 1 that
# is repeated along (or simply absent from) the loop, and for the dimension of a table, which is read at computed positions.
AxisMap = tuple[int, ...]
NONE = -1


class Read(NamedTuple):
    """An operand seen through renaming movement: ``root`` with, for each of its dimensions, the operand's dimension."""

    root: Atom
    dims: AxisMap


@cache
def identity(rank: int) -> AxisMap:
    """Every dimension along the axis of its own number: one object per rank, so that `compose` knows it by sight."""
    return tuple(range(rank))


def rename(node: TraceNode) -> AxisMap:
    """For each dimension of the operand of a renaming ``node``: the dimension of its result, or NONE."""
    source, result = node.ins[0].aval.shape, node.out.aval.shape
    if node.op is BROADCAST_TO:
        shift = len(result) - len(source)
        return tuple(k + shift if result[k + shift] == n else NONE for k, n in enumerate(source))
    if node.op is EXPAND_DIMS:
        added = set(node.attr("axis"))
        return tuple(k for k in range(len(result)) if k not in added)
    if node.op is SQUEEZE:
        dropped = set(node.attr("axis"))
        kept = iter(range(len(result)))
        return tuple(NONE if k in dropped else next(kept) for k in range(len(source)))
    axes = node.attr("axes")
    return tuple(axes.index(k) for k in range(len(source)))


class Definitions:
    """The positions of the nodes of one graph, and the values they read through renaming movement."""

    def __init__(self, graph: Graph) -> None:
        self.producer: Callable[[Atom], TraceNode | None] = graph.producer
        self.position: dict[TraceNode, int] = {node: k for k, node in enumerate(graph.nodes)}
        self._reads: dict[TraceNode, tuple[Read, ...]] = {}
        self._graph = graph

    @cached_property
    def by_value(self) -> dict[int, TraceNode]:
        """The node that computes a value, by the value's id."""
        return {id(out): node for node in self._graph.nodes for out in node.outs}

    def resolve(self, atom: Atom) -> Read:
        """Look through renaming movement to the value whose scalars are read."""
        dims = identity(len(atom.aval.shape))
        while isinstance(atom, Value):
            node = self.producer(atom)
            if node is None or not node.op.renames:
                break
            dims = compose(rename(node), dims)
            atom = node.ins[0]
        return Read(atom, dims)

    def reads(self, node: TraceNode) -> tuple[Read, ...]:
        """The read of each operand of ``node``; its ``dims`` are dimensions of the node's own loop.

        The loop of a reduction is over its operand, that of every other node over its result.
        """
        reads = self._reads.get(node)
        if reads is None:
            reduction, loop = node.op.kind is Kind.REDUCE, node.outs[0].aval.shape
            read = [self._read(atom, None if reduction else loop) for atom in node.ins]
            if node.op is ELEMENT_AT:
                read[0] = Read(node.ins[0], (NONE,))  # all of the table, wherever the loop is
            reads = self._reads[node] = tuple(read)
        return reads

    def _read(self, atom: Atom, loop: tuple[int, ...] | None) -> Read:
        """The read of the operand ``atom`` in a loop over ``loop`` (None: over the operand itself)."""
        if isinstance(atom, Literal):
            return Read(atom, ())
        shape = atom.aval.shape
        along = identity(len(shape)) if loop is None else align(shape, loop)
        node = self.producer(atom)
        if node is None or not node.op.renames:
            return Read(atom, along)
        root, dims = self.resolve(atom)
        return Read(root, compose(dims, along))


def compose(first: AxisMap, then: AxisMap) -> AxisMap:
    """The map ``then`` after ``first``."""
    if first is identity(len(then)):
        return then
    return tuple([NONE if k == NONE else then[k] for k in first])


def align(operand: tuple[int, ...], result: tuple[int, ...]) -> AxisMap:
    """NumPy's broadcast of ``operand``'s shape to ``result``'s: which result dimension each dimension runs along."""
    if operand == result:
        return identity(len(operand))
    shift = len(result) - len(operand)
    return tuple([k + shift if n == result[k + shift] else NONE for k, n in enumerate(operand)])
