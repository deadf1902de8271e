"""Finds the loops that a program unrolled, and where to cut them so that their kernels are the same.

A loop of Python leaves the same nodes again and again. Of a kernel's largest number of nodes each kernel would end in the
middle of another iteration, so that all are compiled. Cut after equal numbers of iterations they have one structure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from jitgrad.compiler.fusion.axis_maps import Definitions, Read
from jitgrad.core.ir import Literal, TraceNode, Value, exact

_PERIODS = 6  # tried, the most frequent first
_LEAST_ITERATIONS = 4
_LEAST_KERNELS = 3  # the first and the last one often differ from those between
LONG_LOOP = 6  # times more nodes than a kernel may have, of which the kernels are like those of more
_SMALL = 4  # times fewer nodes than a kernel may have, which compile quickly
_NodeKey = tuple[Hashable, ...]


class Section(NamedTuple):
    """Nodes ``start`` to ``stop``, of which each repeats the one ``period`` earlier but those of the first period."""

    start: int
    stop: int
    period: int

    @property
    def iterations(self) -> int:
        return (self.stop - self.start) // self.period


def equal_blocks(
    nodes: Sequence[TraceNode], definitions: Definitions, kernels: Callable[[Sequence[TraceNode]], list[int]], most: int
) -> dict[TraceNode, int]:
    """For the fusible ``nodes`` of a program, in order, the number of a block that no kernel may leave.

    Args:
        kernels: gives for some of the nodes, which follow each other, the numbers of the kernels that compute them if
            nothing is cut. Of a long loop it is asked for the start alone.
        most: nodes of a kernel.

    Returns:
        An empty dict where no loop takes several kernels of several iterations each.
    """
    program = _Program(nodes, definitions)
    cuts, outside = list[int](), set(range(len(nodes)))
    for section in _sections(program):
        seen = section._replace(stop=min(section.stop, section.start + LONG_LOOP * most))
        found = _cuts(section, seen, kernels(nodes[seen.start : seen.stop]), most, nodes, definitions)
        if found:
            cuts += found
            outside.difference_update(range(section.start, section.stop))
    if not cuts:
        return {}
    blocks = [bisect_right(cuts, k) for k in range(len(nodes))]
    alike = Counter([program.keys[k] for k in outside])
    for k in outside:  # what every iteration reads of its own, such as a multiple of a row, was computed in other places
        read_in = {blocks[reader] for reader in program.readers[k]}
        if len(read_in) == 1 and alike[program.keys[k]] >= _LEAST_ITERATIONS and program.reads_memory(k):
            (blocks[k],) = read_in
    return dict(zip(nodes, blocks, strict=True))


class _Program:
    """The nodes of a program in order, comparable with each other."""

    def __init__(self, nodes: Sequence[TraceNode], definitions: Definitions) -> None:
        self.length = len(nodes)
        self.positions: dict[Value, int] = {out: k for k, node in enumerate(nodes) for out in node.outs}
        self.reads: list[tuple[Read, ...]] = [definitions.reads(node) for node in nodes]
        self.readers: list[list[int]] = [[] for _ in nodes]
        for k, reads in enumerate(self.reads):
            for root, _ in reads:
                if isinstance(root, Value) and root in self.positions:
                    self.readers[self.positions[root]].append(k)
        self.keys: list[_NodeKey] = [self._key(node, reads) for node, reads in zip(nodes, self.reads, strict=True)]

    def _key(self, node: TraceNode, reads: Sequence[Read]) -> _NodeKey:
        """What nodes have in common that do the same to other values."""
        operands: list[Hashable] = []
        for root, dims in reads:
            operands.append(root.key() if isinstance(root, Literal) else (root in self.positions, root.aval.shape, dims))
        aval = node.outs[0].aval
        return node.op, str(exact(node.attrs)) if node.attrs else None, aval.shape, aval.dtype, *operands

    def reads_memory(self, k: int) -> bool:
        """Whether no kernel computes what node ``k`` reads."""
        return not any(isinstance(root, Value) and root in self.positions for root, _ in self.reads[k])

    def repeats(self, k: int, period: int, start: int) -> bool:
        """Whether node ``k`` does what the one a ``period`` earlier does, to values a period later or from before ``start``."""
        if self.keys[k] != self.keys[k - period]:
            return False
        for (root, _), (earlier, _) in zip(self.reads[k], self.reads[k - period], strict=True):
            if isinstance(root, Value) and isinstance(earlier, Value) and root in self.positions:
                here, there = self.positions[root], self.positions[earlier]
                if here - there != period and max(here, there) >= start:
                    return False
        return True


def _sections(program: _Program) -> list[Section]:
    """Loops of at least `_LEAST_ITERATIONS`, the longest ones of those that overlap."""
    last: dict[_NodeKey, int] = {}
    gaps = Counter[int]()
    for k, key in enumerate(program.keys):
        if key in last:
            gaps[k - last[key]] += 1
        last[key] = k
    found = [section for period, _ in gaps.most_common(_PERIODS) for section in _with_period(program, period)]
    chosen: list[Section] = []
    for section in sorted(found, key=lambda section: (section.start - section.stop, section.period)):
        if all(section.stop <= other.start or other.stop <= section.start for other in chosen):
            chosen.append(section)
    return sorted(chosen)


def _with_period(program: _Program, period: int) -> list[Section]:
    found, start = [], period  # of the nodes that repeat an earlier one
    for k in range(period, program.length + 1):
        if k < program.length and program.repeats(k, period, start - period):
            continue
        section = Section(start - period, k, period)
        if section.iterations >= _LEAST_ITERATIONS:
            found.append(section)
        start = k + 1
    return found


def _cuts(
    section: Section, seen: Section, kernels: Sequence[int], most: int, nodes: Sequence[TraceNode], definitions: Definitions
) -> list[int]:
    """Where to cut ``section``; nowhere if ``kernels``, which compute the nodes of ``seen`` if nothing is cut, are few or
    small. That is the start of ``section``."""
    sizes = Counter(kernels).values()
    if len(sizes) < _LEAST_KERNELS or _SMALL * max(sizes) < most or 2 * len(sizes) > seen.iterations:
        return []
    largest = max(sizes) // section.period  # in iterations, of which it has two or more
    first = section.start + _offset(section, nodes, definitions)
    whole = (section.stop - first) // section.period
    size = min(range(largest - largest // 4, largest + 1), key=lambda n: (whole % n, -n))
    return list(range(first, first + whole // size * size * section.period + 1, size * section.period))


def _offset(section: Section, nodes: Sequence[TraceNode], definitions: Definitions) -> int:
    """From where on in an iteration to cut, such that the fewest values are written by one kernel for the next."""
    window = nodes[section.start + section.period : section.start + 3 * section.period]
    last_read = {root: k for k, node in enumerate(window) for root, _ in definitions.reads(node)}
    crossing = [0] * section.period
    for k, node in enumerate(window):
        for cut in range(k + 1, last_read.get(node.outs[0], 0) + 1):
            crossing[cut % section.period] += 1
    return crossing.index(min(crossing))
