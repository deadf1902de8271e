"""Which loop axis each dimension of a value runs along, through broadcasts, permutations and reductions."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind

# For every dimension of a value: the position of the axis it runs along, or NONE for a dimension of length 1 that
# is repeated along (or simply absent from) the loop.
AxisMap = tuple[int, ...]
NONE = -1

# Movement that only renames dimensions: free inside a kernel, because it changes no scalar.
RENAMING = frozenset({"broadcast_to", "expand_dims", "squeeze", "permute_dims"})


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
    name = node.op.name
    if name == "broadcast_to":
        shift = len(result) - len(source)
        return tuple(k + shift if result[k + shift] == n else NONE for k, n in enumerate(source))
    if name == "expand_dims":
        added = set(node.attr("axis"))
        return tuple(k for k in range(len(result)) if k not in added)
    if name == "squeeze":
        dropped = set(node.attr("axis"))
        kept = iter(range(len(result)))
        return tuple(NONE if k in dropped else next(kept) for k in range(len(source)))
    axes = node.attr("axes")
    return tuple(axes.index(k) for k in range(len(source)))


class Definitions:
    """Where the values of one graph come from, and what its nodes read; each looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.by_value = {id(out): node for node in graph.nodes for out in node.outs}
        self.position = {id(node): k for k, node in enumerate(graph.nodes)}
        self._reads: dict[int, tuple[Read, ...]] = {}

    def resolve(self, atom: Atom) -> Read:
        """Look through renaming movement to the value whose scalars are read."""
        dims = identity(len(atom.aval.shape))
        while isinstance(atom, Value):
            node = self.by_value.get(id(atom))
            if node is None or node.op.name not in RENAMING:
                break
            dims = compose(rename(node), dims)
            atom = node.ins[0]
        return Read(atom, dims)

    def reads(self, node: TraceNode) -> tuple[Read, ...]:
        """What each operand of ``node`` reads, with the dimension of the node's own loop that each dimension runs along.

        The loop of a reduction is over its operand, that of every other node over its result.
        """
        found = self._reads.get(id(node))
        if found is None:
            reduction, loop = node.op.kind is Kind.REDUCE, node.outs[0].aval.shape
            found = self._reads[id(node)] = tuple([self._read(atom, None if reduction else loop) for atom in node.ins])
        return found

    def _read(self, atom: Atom, loop: tuple[int, ...] | None) -> Read:
        """What the operand ``atom`` reads in a loop over ``loop`` (None: over the operand itself)."""
        if isinstance(atom, Literal):
            return Read(atom, ())
        shape = atom.aval.shape
        along = identity(len(shape)) if loop is None else align(shape, loop)
        node = self.by_value.get(id(atom))
        if node is None or node.op.name not in RENAMING:
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
