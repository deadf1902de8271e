"""Which axes of a graph's values must keep the same positions if some of these are left out.

Elementwise ops combine elements at equal positions, so axes that meet in one belong to one class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode
from jitgrad.core.op import Kind
from jitgrad.jit.sampled_graph import sorted_set

FEWEST, MOST = 2048, 8192  # elements of an array that stand for all others
SHARE = 1 / 32  # of the largest array, between these
FEWEST_OF_AXIS = 32

ValueAxis = tuple[Atom, int]
SHORT = -1  # the class of axes of length 1


class AxisClasses:
    """The classes of the axes of ``graph``'s values, as numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._above: list[int] = []  # a class that a class belongs to, or itself
        self._first: dict[Atom, int] = {}  # the class of a value's first axis; those of others follow
        for value in (*graph.inputs, *(out for node in graph.nodes for out in node.outs)):
            self._first[value] = len(self._above)
            self._above += range(len(self._above), len(self._above) + len(value.aval.shape))
        for node in graph.nodes:
            for (a, j), (b, k) in _pairs(node):
                if not isinstance(a, Literal) and not isinstance(b, Literal) and a.aval.shape[j] == b.aval.shape[k] != 1:
                    self._above[self._root(self._first[a] + j)] = self._root(self._first[b] + k)
        self._classes: dict[Atom, tuple[int, ...]] = {}

    def _root(self, k: int) -> int:
        while self._above[k] != k:
            self._above[k] = k = self._above[self._above[k]]
        return k

    def of(self, atom: Atom) -> tuple[int, ...]:
        """The class of each axis."""
        if isinstance(atom, Literal):
            return ()
        if atom not in self._classes:
            first = self._first[atom]
            self._classes[atom] = tuple([SHORT if n == 1 else self._root(first + k) for k, n in enumerate(atom.aval.shape)])
        return self._classes[atom]

    def kept_positions(self, wanted: Mapping[int, np.ndarray[Any, Any]], all_axes: bool) -> dict[int, np.ndarray[Any, Any]]:
        """For the classes of axes that are cut down: the positions that are kept, in order.

        First axes are cut, which mostly are those of independent examples; ``all_axes``: others alike.
        """
        counts: dict[int, tuple[int, int]] = {}
        largest = max((value.aval.size for value in self._first), default=0)
        target = min(max(FEWEST, int(SHARE * largest)), MOST)
        for value in self._first:
            for c, n, count in self._shortened(value, target, all_axes):
                counts[c] = n, min(count, counts.get(c, (n, n))[1])
        kept = {c: _random_positions(n, count) for c, (n, count) in counts.items() if 2 * count < n}
        for k, positions in wanted.items():
            output = self.graph.outputs[k]
            for c, index in zip(self.of(output), np.unravel_index(positions, output.aval.shape) if output.aval.shape else ()):
                if c in kept:
                    kept[c] = sorted_set(np.concatenate([kept[c], index.reshape(-1)]))
        return kept

    def _shortened(self, value: Atom, target: int, all_axes: bool) -> list[tuple[int, int, int]]:
        """Class, length, and how much of it is kept, of the axes of ``value`` that are cut down."""
        size, shape = value.aval.size, value.aval.shape
        long = [(c, n) for c, n in zip(self.of(value), shape, strict=True) if n > 2 * FEWEST_OF_AXIS]
        if size <= target or not long:
            return []
        if not all_axes:
            (c, n), *_ = long
            return [(c, n, max(FEWEST_OF_AXIS, n * target // size))]
        share = (target / size) ** (1 / len(long))
        return [(c, n, max(FEWEST_OF_AXIS, int(n * share))) for c, n in long]


@lru_cache(maxsize=64)
def _random_positions(length: int, count: int) -> np.ndarray[Any, Any]:
    """About ``count`` of ``range(length)`` in pairs: neighbours are often read together. Axes of like
    lengths keep like positions."""
    share = np.random.default_rng(length.bit_length()).uniform(size=max(1, count // 2))
    first = (share * (1 << length.bit_length())).astype(np.int64) % length
    return sorted_set(np.concatenate([first, np.minimum(first + 1, length - 1)]))


def _pairs(node: TraceNode) -> list[tuple[ValueAxis, ValueAxis]]:
    """Axes that must keep the same positions if their lengths are equal."""
    name, out = node.op.name, node.outs[0]
    x = node.ins[0] if node.ins else out
    if node.op.kind is Kind.ELEMENTWISE or name == "broadcast_to":
        return [pair for atom in node.ins for pair in _from_the_right(atom, out)]
    if node.op.kind is Kind.REDUCE:
        return _in_order(x, [k for k in range(len(x.aval.shape)) if k not in node.attr("axis")], out)
    if name == "permute_dims":
        return [((x, axis), (out, k)) for k, axis in enumerate(node.attr("axes"))]
    if name in ("expand_dims", "squeeze", "reshape"):
        return _without_ones(x, out)
    if name == "matmul" and len(x.aval.shape) == len(node.ins[1].aval.shape) == 2:
        return [((x, 0), (out, 0)), ((node.ins[1], 1), (out, 1)), ((x, 1), (node.ins[1], 0))]
    if name in ("slice", "place", "put_slice", "concat", "cumulative_sum", "copy"):
        return [pair for atom in node.ins for pair in _from_the_right(atom, out)]
    if name == "take":
        return _of_take(x, node.ins[1], out, node.attr("axis"))
    everything = [(atom, k) for atom in (*node.ins, *node.outs) for k in range(len(atom.aval.shape))]
    return [*combinations(everything, 2)]


def _from_the_right(x: Atom, out: Atom) -> list[tuple[ValueAxis, ValueAxis]]:
    more = len(out.aval.shape) - len(x.aval.shape)
    return [((x, k), (out, k + more)) for k in range(len(x.aval.shape))]


def _in_order(x: Atom, axes: Sequence[int], out: Atom) -> list[tuple[ValueAxis, ValueAxis]]:
    return [((x, axis), (out, k)) for k, axis in enumerate(axes)]


def _without_ones(x: Atom, out: Atom) -> list[tuple[ValueAxis, ValueAxis]]:
    given, shape = [[k for k, n in enumerate(a.aval.shape) if n != 1] for a in (x, out)]
    if [x.aval.shape[k] for k in given] != [out.aval.shape[k] for k in shape]:
        return []
    return [((x, j), (out, k)) for j, k in zip(given, shape, strict=True)]


def _of_take(x: Atom, index: Atom, out: Atom, axis: int) -> list[tuple[ValueAxis, ValueAxis]]:
    more = len(index.aval.shape)
    kept = [k for k in range(len(x.aval.shape)) if k != axis]
    of_x: list[tuple[ValueAxis, ValueAxis]] = [((x, k), (out, k if k < axis else k + more - 1)) for k in kept]
    return [*of_x, *(((index, k), (out, axis + k)) for k in range(more))]
