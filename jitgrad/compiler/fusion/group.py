"""A set of nodes that may become one kernel: its loop axes, what it computes and reads, and its
schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jitgrad.compiler.fusion.axis_maps import AxisMap, Definitions, Read, compose
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.eager.float16 import HALF, has_kernel_form, in_kernels
from jitgrad.ops.indexing import PUT_SLICE

_KERNEL_DTYPES = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")))


def is_fusible(node: TraceNode) -> bool:
    """Whether ``node`` can be part of a kernel at all."""
    op = node.op
    if op.kind is Kind.ELEMENTWISE:
        if op.scalar is None and op.function is None:
            return False
        avals = [a.aval for a in node.ins]
        computed_in = op.dtypes(avals, **dict(node.attrs))[0] if node.attrs else op.dtypes(avals)[0]
        used = {*computed_in, node.outs[0].aval.dtype, *[a.dtype for a in avals]}
        if HALF in used:
            return in_kernels() and has_kernel_form(op) and _KERNEL_DTYPES.issuperset(used - {HALF})
        return _KERNEL_DTYPES.issuperset(used)
    if op.kind is Kind.REDUCE:
        aval = node.ins[0].aval  # of float16 only truth: `upcast_fp16_reductions` has put the others in float32
        known = aval.dtype in _KERNEL_DTYPES or (aval.dtype == HALF != node.out.aval.dtype and in_kernels())
        # over axes of length 1 it has no loop of its own: `simplify` makes a reshape of it
        long = any(aval.shape[k] > 1 for k in node.attr("axis"))
        return op.monoid is not None and known and aval.size > 0 and long
    return op.kind is Kind.INDEX


def why_not_fusible(node: TraceNode) -> str:
    """Why ``node`` runs as a call of its own."""
    if node.op.kind is Kind.ELEMENTWISE:
        return "it has no scalar form" if node.op.scalar is None else "kernels do not handle its dtypes"
    if node.op.kind is Kind.MOVEMENT:
        return "it is a view: nothing to compute"
    if node.op is PUT_SLICE:
        return "it changes a part of an array, which must be complete before"
    return "it is a library call"


@dataclass(frozen=True, slots=True)
class SweepOrder:
    """How a group's loops run: the first ``split`` axes are outer (rows), the rest inner; None: any
    split will do."""

    split: int | None = None
    epilogue: frozenset[int] = frozenset()  # ids of nodes that run once, after all blocks, on merged reductions
    merged: frozenset[int] = frozenset()  # ids of reductions whose partial results are merged after all blocks
    rows: frozenset[int] = frozenset()  # ids of reductions over the inner axes, one result per row
    epilogue_values: frozenset[int] = frozenset()  # ids of values that are known only after all blocks


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Nodes of one kernel. ``axis_maps`` maps each node's own loop dimensions to the group's axes.

    A node's own loop dimensions are those of its result, or for a reduction those of its operand.
    ``computed`` holds the axes of the values made here, ``external`` those of values from elsewhere
    as they are first read.

    ``permuted`` is a set for a group of elementwise nodes that all run over all axes in their order:
    the ids of what they read in any other order. Such groups need no planning.
    """

    sizes: tuple[int, ...]
    nodes: tuple[TraceNode, ...]
    axis_maps: Mapping[int, AxisMap]
    schedule: SweepOrder
    computed: Mapping[int, AxisMap]
    external: Mapping[int, tuple[Value, AxisMap]]
    permuted: frozenset[int] | None = None

    def out_map(self, node: TraceNode) -> AxisMap:
        """The axis of every dimension of ``node``'s result."""
        return self.computed[id(node.outs[0])]

    def operand_maps(self, node: TraceNode, definitions: Definitions) -> list[tuple[Read, AxisMap]]:
        """For every operand of ``node``: what is read, and the axis of each dimension of that."""
        frame = self.axis_maps[id(node)]
        return [(read, compose(read.dims, frame)) for read in definitions.reads(node)]


def accesses(
    nodes: tuple[TraceNode, ...], axis_maps: Mapping[int, AxisMap], definitions: Definitions
) -> tuple[dict[int, AxisMap], dict[int, tuple[Value, AxisMap]]]:
    """(axes of the values computed by ``nodes``, values read from elsewhere with the axes they are
    first read by)."""
    computed = {id(node.outs[0]): out_axes(node, axis_maps[id(node)]) for node in nodes}
    external: dict[int, tuple[Value, AxisMap]] = {}
    for node in nodes:
        for read in definitions.reads(node):
            key = id(read.root)
            if key not in computed and key not in external and isinstance(read.root, Value):
                external[key] = (read.root, compose(read.dims, axis_maps[id(node)]))
    return computed, external


def out_axes(node: TraceNode, frame: AxisMap) -> AxisMap:
    """The axis of every dimension of ``node``'s result."""
    if node.op.kind is not Kind.REDUCE:
        return frame
    reduced = set(node.attr("axis"))
    return tuple(axis for k, axis in enumerate(frame) if k not in reduced)
