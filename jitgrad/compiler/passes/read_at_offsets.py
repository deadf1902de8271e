"""Lets kernels read padded, rolled and placed values from where they come from, at other positions.

``pad(x, 1)[2:]`` is ``x`` one row further on, among zeros, and ``roll(x, 1)`` is ``x`` in two runs. Written to memory, each
takes a kernel for every border, and the bytes of the whole once more. A kernel that reads ``x`` itself computes the position
along each axis: once a row for outer axes, and along the last one for the few elements at the edges alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from jitgrad.compiler.compiler_ops import IDENTITY, INSERT_SLICES, OFFSET_READ, Index
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Shape
from jitgrad.core.axis_runs import AxisRun, AxisRuns, joined, size, sliced, whole, zero_run
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.eager.float16 import HALF
from jitgrad.ops.movement import BROADCAST_TO, SLICE

_FEW = 8  # times fewer elements, of which no row has to be long


class _Read(NamedTuple):
    """A value that is ``root`` at the positions ``axes``; ``joined`` if it is no slice of it."""

    root: Value
    axes: tuple[AxisRuns, ...]
    joined: bool


def read_at_offsets(graph: Graph, tuning: Tuning) -> Graph:
    """``f(insert_slices(x))`` becomes ``f(offset_read(x))``, which `fuse` takes for a view, if kernels are all that reads it."""
    if not tuning.reads_at_offsets or not any(node.op is INSERT_SLICES for node in graph.nodes):
        return graph
    reads = _find_reads(graph)
    unwritten = _unwritten(graph, reads, tuning)
    if not unwritten:
        return graph
    new = Rewriter(graph)
    views: dict[tuple[Atom, tuple[AxisRuns, ...]], Atom] = {}
    for node in new.visit():
        if is_fusible(node) and not unwritten.isdisjoint(node.ins):
            ins = tuple([_view(new, reads[a], views) if a in unwritten and isinstance(a, Value) else a for a in node.ins])
            node = TraceNode(node.op, ins, node.outs, node.attrs, node.origin)
        new.keep(node)
    return eliminate_dead(new.graph())


def _view(new: Rewriter, read: _Read, views: dict[tuple[Atom, tuple[AxisRuns, ...]], Atom]) -> Atom:
    key = read.root, read.axes
    if key not in views:
        runs = [own[0] if len(own) == 1 and not own[0].zeros and own[0].step else None for own in read.axes]
        plain = tuple([(run.start, run.step, run.length) for run in runs if run is not None])
        if _is_zero(read):
            dtype = read.root.aval.dtype
            zero = Literal(dtype.type(0).item(), dtype)
            views[key] = new.emit(BROADCAST_TO, zero, shape=tuple(map(size, read.axes)))
        elif len(plain) < len(runs):
            views[key] = new.emit(OFFSET_READ, read.root, axes=read.axes)
        elif plain == tuple([(0, 1, n) for n in read.root.aval.shape]):
            views[key] = read.root
        else:
            views[key] = new.emit(SLICE, read.root, index=plain)
    return views[key]


def _unwritten(graph: Graph, reads: dict[Value, _Read], tuning: Tuning) -> set[Atom]:
    """The joined values that need not be in memory: kernels read them, or others of the kind are made of them."""
    results, found = set(graph.outputs), set[Atom]()
    edges: dict[Atom, set[Atom]] = {}  # what kernels read of a value with jumps along the last axis
    for node in reversed(graph.nodes):
        value = node.outs[0]
        if value not in reads or not reads[value].joined or value in results:
            continue
        users = graph.users(value)
        others = [user for user in users if user.outs[0] not in found]
        edges[value] = set().union(*[edges[user.outs[0]] for user in users if user.outs[0] in found])
        if others and _has_edges(reads[value]):
            edges[value].add(value)
        in_kernels = all(is_fusible(user) and user.op is not IDENTITY for user in others)
        elementwise = all(user.op.kind is Kind.ELEMENTWISE for user in others)
        fast = elementwise if _is_zero(reads[value]) else is_fast(reads[value].root, reads[value].axes, tuning)
        costly = node.op is INSERT_SLICES and _are_costly(len(edges[value]), value, tuning)
        if in_kernels and (not others or fast) and not costly:
            found.add(value)
    for node in graph.nodes:  # a part of what is in memory is read there
        if any(isinstance(a, Value) and a in reads and reads[a].joined and a not in found for a in node.ins):
            found.discard(node.outs[0])
    return found


def _find_reads(graph: Graph) -> dict[Value, _Read]:
    reads: dict[Value, _Read] = {}
    for node in graph.nodes:
        if not node.ins or not all(isinstance(atom, Value) and _is_in_memory(graph, atom) for atom in node.ins):
            continue
        read = _read(node, [reads.get(a) or _itself(a) for a in node.ins if isinstance(a, Value)])
        if read is not None and _is_readable(read):
            reads[node.out] = read
    return reads


def _itself(value: Value) -> _Read:
    return _Read(value, tuple([whole(n) for n in value.aval.shape]), False)


def _is_in_memory(graph: Graph, value: Value) -> bool:
    """Whether ``value`` is no number that is repeated along axes."""
    node = graph.producer(value)
    while node is not None and node.op.renames:
        if isinstance(node.ins[0], Literal):
            return False
        node = graph.producer(node.ins[0])
    return True


def _read(node: TraceNode, operands: Sequence[_Read]) -> _Read | None:
    """What the result of ``node`` is of what its operands are."""
    first = operands[0]
    if node.op is SLICE:
        pairs = zip(first.axes, node.attr("index"), strict=True)
        return first._replace(axes=tuple([sliced(runs, *entry) for runs, entry in pairs]))
    if node.op is BROADCAST_TO:
        return _repeated(first, node.out.aval.shape)
    if node.op is IDENTITY:
        return first if first.joined else None
    if node.op is not INSERT_SLICES or any(read.root is not first.root for read in operands):
        return None
    return _join(operands, node.attr("indices"), node.attr("shape"))


def _repeated(read: _Read, shape: Shape) -> _Read | None:
    """``read`` repeated along axes on which it has one element."""
    own = [size(runs) for runs in read.axes]
    if len(own) != len(shape) or not all(shape):
        return None
    pairs = zip(read.axes, own, shape, strict=True)
    return read._replace(axes=tuple([runs if n == m else (runs[0]._replace(step=0, length=m),) for runs, n, m in pairs]))


def _join(parts: Sequence[_Read], indices: Sequence[Index], shape: Shape) -> _Read | None:
    """Parts of one value next to each other along one axis, among zeros along all."""
    if any(step != 1 for index in indices for _, step, _ in index) or any(not n for index in indices for _, _, n in index):
        return None
    along = [list(zip(indices, axis, strict=True)) for axis in zip(*[part.axes for part in parts], strict=True)]
    differ = [k for k, own in enumerate(along) if len({(index[k], runs) for index, runs in own}) > 1]
    if len(differ) > 1:
        return None
    axes = []
    for k, n in enumerate(shape):
        several = zip(parts, indices, strict=True) if k in differ else [(parts[0], indices[0])]
        axes.append(_among_zeros(sorted([(index[k][0], part.axes[k]) for part, index in several]), n))
    return _Read(parts[0].root, tuple(axes), True)


def _among_zeros(parts: Sequence[tuple[int, AxisRuns]], length: int) -> AxisRuns:
    """``parts``, each from a position on, of an axis of ``length``."""
    runs: list[AxisRun] = []
    for start, own in parts:
        runs += [zero_run(start - size(tuple(runs))), *own]
    return joined([*runs, zero_run(length - size(tuple(runs)))])


def _is_readable(read: _Read) -> bool:
    """Whether kernels know its dtype, and there is something to read."""
    dtype = read.root.aval.dtype
    return dtype != HALF and dtype.kind != "c" and read.root.aval.size > 0


def _is_zero(read: _Read) -> bool:
    """Whether nothing but zeros is read."""
    return any(all(run.zeros for run in runs) for runs in read.axes)


def _has_edges(read: _Read) -> bool:
    """Whether a row of it is read in several runs."""
    return len(read.axes) > 0 and len(read.axes[-1]) > 1


def _are_costly(edges: int, value: Value, tuning: Tuning) -> bool:
    """Whether a kernel takes longer for the edges of so many reads of ``value`` than for reading it from memory."""
    counted = edges - tuning.free_edge_reads
    row_bytes = prod(value.aval.shape[-1:]) * value.aval.dtype.itemsize
    return edges <= tuning.max_edge_reads and row_bytes < counted * tuning.edge_read_bytes


def is_fast(root: Value, axes: tuple[AxisRuns, ...], tuning: Tuning) -> bool:
    """Whether kernels read ``root`` at ``axes`` about as fast as from memory: the rows between two jumps are long, and their
    edges short.

    Of a small part it does not matter.
    """
    shape = tuple(map(size, axes))
    if any(len(runs) > tuning.max_runs for runs in axes):
        return False
    if _FEW * prod(shape) <= root.aval.size:
        return True
    jumps = [k for k, runs in enumerate(axes) if len(runs) > 1]
    last = jumps[-1] if jumps else 0
    row = prod(shape[last:]) if last == len(shape) - 1 else prod(shape[last + 1 :])
    edges = sum(run.length for run in axes[-1] if abs(run.step) > 1) if last == len(shape) - 1 else 0
    return row >= tuning.min_offset_row and edges <= shape[-1] // _FEW
