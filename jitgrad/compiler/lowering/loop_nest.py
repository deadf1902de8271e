"""The loops of a fused group: collapsed axes, the strides of every operand, and the scope of every
value."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import NamedTuple

from jitgrad.compiler.cost import LEAST_GATHERED
from jitgrad.compiler.fusion.axis_maps import NONE, AxisMap, Definitions, Read
from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.lowering.kernel_ir import Access, KernelForm, KernelParameter, Schedule, Scope, Segment
from jitgrad.compiler.lowering.layout import OperandLayout, row_major
from jitgrad.core.aval import dtype_name
from jitgrad.core.axis_runs import AxisRuns, stops
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind


class Slot(NamedTuple):
    """An address that is known when memory is planned: that of an operand or result, by its number,
    or of scratch."""

    number: int
    scratch: bool = False


KernelArg = int | Slot

_MAX_CONSTANT_STRIDE = 64  # in elements; those of longer ones are in a cache line each, and what loads them matters less
_MAX_OFFSET_IN_TEXT = 32
# Elements: edges are whole vectors of any dtype, and the interior is as many of them as run interleaved.
_EDGE, _INTERIOR = 32, 64


@dataclass(slots=True, eq=False)
class OperandAccess:
    """The way in which the loops walk one operand, result or iota, which has no layout."""

    name: str
    value: Value
    layout: OperandLayout | None
    strides: tuple[int, ...]  # per group axis, in elements
    written: bool = False
    access: Access | None = None
    runs: Mapping[int, AxisRuns] = field(default_factory=dict)  # per group axis along which it is read at other positions
    is_table: bool = False  # any element may be read, at computed positions


@dataclass(slots=True)
class ArgTable:
    """The parameters of a kernel and the arguments of its launch."""

    params: list[KernelParameter] = field(default_factory=list)
    args: list[KernelArg] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, name: str, kind: str, arg: KernelArg, note: str = "") -> str:
        if name not in self.names:
            self.names.add(name)
            self.params.append(KernelParameter(name, kind, note))
            self.args.append(arg)
        return name


class LoopNest:
    """The loops of one group, its operands, and the `Scope` of every value.

    Attributes:
        in_place: results that take the memory of an input, and that input.
        unread: results that nothing reads after the kernel.
        operands: accesses of the values that are read and written, by the axes they run along, and
            of iota nodes.
        sweep: the number of sweeps that must be over before a value is known.
        has_edges: whether an operand goes on elsewhere along the last inner axis; known once a schedule is applied.
        interior: the part of it in which none does, if that is long enough for a loop of its own.
    """

    def __init__(
        self,
        node: TraceNode,
        layouts: Mapping[Value, OperandLayout],
        in_place: Mapping[Value, Value],
        unread: Collection[Value],
    ) -> None:
        self.group: Group = node.attr("group")
        self.body: Graph = node.attr("body")
        self.layouts = layouts
        self.in_place = in_place
        self.unread = unread
        self.definitions: Definitions = Definitions(self.body)
        self.results: dict[Value, None] = {v: None for v in self.body.outputs if isinstance(v, Value)}
        self.table: ArgTable = ArgTable()
        self.operands: dict[tuple[Value | TraceNode, AxisMap], OperandAccess] = {}
        self.sweep: dict[Value, int] = {}
        self.scope: dict[Value, Scope] = {}
        self._local_count = 0
        self._numbers: dict[int, dict[int, int]] = {}
        self._first = 0  # of the interior
        self.interior: tuple[str, str] | None = None
        self.has_edges: bool = False
        self._add_operands()
        self._collapse_axes()
        self._name_operands()
        self._classify_values()

    def apply(self, schedule: Schedule) -> None:
        """Give every operand its access, which depends on the schedule: which stride is 1 in the
        loops that run."""
        vectorized = schedule.form in (KernelForm.VECTORIZED_ROWS, KernelForm.PACKED_ROWS)
        self._find_interior()
        for operand in self.operands.values():
            lanes = self.outer_axes[-1] if vectorized else None
            operand.access = self._access(operand, operand.name in schedule.transposed, lanes)
        if schedule.interleaves:
            self._interleave()

    def producer(self, value: Value) -> TraceNode:
        """The node of the body that computes ``value``."""
        node = self.body.producer(value)
        assert node is not None
        return node

    def reads(self, node: TraceNode) -> list[tuple[Read, AxisMap]]:
        """For every operand of ``node``: the read, and the axis of each dimension of its root."""
        return self.group.operand_maps(node, self.definitions)

    def result_operand(self, value: Value) -> OperandAccess:
        """The access that writes ``value``."""
        return self.operands[value, self.group.out_map(self.producer(value))]

    # --- axes ----------------------------------------------------------------------------------------------------

    def _add_operands(self) -> None:
        computed = {node.out for node in self.group.nodes}
        for node in self.group.nodes:
            for read, axes in self.reads(node):
                if isinstance(read.root, Value) and read.root not in computed:
                    self._add_operand(read.root, axes)
            if node.op.kind is Kind.INDEX:
                self._add_iota(node)
        for node in self.group.nodes:
            if node.out in self.results:
                self._add_operand(node.out, self.group.out_map(node)).written = True

    def _add_operand(self, value: Value, axes: AxisMap) -> OperandAccess:
        if (value, axes) not in self.operands:
            layout = self.layouts[value]
            strides = self._along_group(axes, layout.strides)
            runs = {axis: own for axis, own in zip(axes, layout.runs, strict=False) if own}
            is_table = any(axis == NONE and n > 1 for axis, n in zip(axes, value.aval.shape, strict=True))
            self.operands[value, axes] = OperandAccess("", value, layout, strides, runs=runs, is_table=is_table)
        return self.operands[value, axes]

    def _add_iota(self, node: TraceNode) -> None:
        """An access without memory, by the node: its result may be written and have an access
        too."""
        axes, along, shape = self.group.out_map(node), node.attr("axis"), node.out.aval.shape
        strides = row_major(shape) if along is None else tuple(int(k == along) for k in range(len(shape)))
        self.operands[node, axes] = OperandAccess("", node.out, None, self._along_group(axes, strides))

    def _along_group(self, axes: AxisMap, strides: tuple[int, ...]) -> tuple[int, ...]:
        """``strides`` of a value's dimensions, which run along ``axes``, as strides of the group's
        axes."""
        steps = [0] * len(self.group.sizes)
        for k, axis in enumerate(axes):
            if axis != NONE:
                steps[axis] += strides[k]
        return tuple(steps)

    def _collapse_axes(self) -> None:
        """Join neighbouring axes that every operand walks as one; then decide which are outer."""
        sizes, split = self.group.sizes, self.group.schedule.split
        joined: list[list[int]] = []
        for axis in range(len(sizes)):
            if joined and axis != split and self._walks_on(joined[-1][-1], axis):
                joined[-1].append(axis)
            else:
                joined.append([axis])
        if split is None:
            outer, inner = joined[:-1], joined[-1:]
        else:
            outer = [axes for axes in joined if axes[0] < split]
            inner = [axes for axes in joined if axes[0] >= split]
        self.outer_axes: list[int] = [axes[-1] for axes in outer]  # the stride of a joined axis is that of its last part
        self.inner_axes: list[int] = [axes[-1] for axes in inner]
        self.outer_sizes: list[int] = [prod(sizes[k] for k in axes) for axes in outer]
        self.inner_sizes: list[int] = [prod(sizes[k] for k in axes) for axes in inner]
        self.inner_members: set[int] = {k for axes in inner for k in axes}
        self.outer_names: tuple[str, ...] = tuple(f"m{k}" for k in range(len(outer)))
        self.inner_names: tuple[str, ...] = tuple(f"n{k}" if len(inner) > 1 else "n" for k in range(len(inner)))

    def _walks_on(self, a: int, b: int) -> bool:
        n = self.group.sizes[b]
        operands = self.operands.values()
        if any(a in operand.runs or b in operand.runs for operand in operands):
            return False
        return all(operand.strides[a] == operand.strides[b] * n for operand in operands)

    # --- parameters ----------------------------------------------------------------------------------------------

    def _name_operands(self) -> None:
        """Pointer parameters (one per address), then sizes; `apply` adds the strides that are no
        constant."""
        ins = outs = 0
        overwriting = {source: out for out, source in self.in_place.items() if out in self.results}
        for operand in self.operands.values():
            if operand.layout is None:
                operand.name = self.new_local("i")
                continue
            if not operand.written and operand.value in overwriting:
                continue
            if operand.written:
                operand.name, outs = f"y{outs}", outs + 1
            else:
                operand.name, ins = f"x{ins}", ins + 1
            kind, slot = dtype_name(operand.value.aval.dtype) + "*", Slot(operand.layout.slot)
            self.table.add(operand.name, kind, slot, str(operand.value.aval))
        for operand in self.operands.values():
            if not operand.name:
                operand.name = self.result_operand(overwriting[operand.value]).name
        sizes = (*self.outer_sizes[1:], *self.inner_sizes)
        for name, size in zip((*self.outer_names[1:], *self.inner_names), sizes, strict=True):
            self.table.add(name, "i64", size)

    def _access(self, operand: OperandAccess, transposed: bool, lanes: int | None) -> Access:
        """``transposed``: its rows are read as columns. ``lanes``: the axis along which vectors
        run, if not the inner."""

        def stride(axis: int, letter: str, position: int) -> str:
            step = operand.strides[axis]
            if step == 0:
                return "0"
            per_row = not any(operand.strides[k] for k in self.inner_axes)
            if step == 1 and (letter == "i" or per_row or transposed or axis == lanes):
                return "1"
            if letter == "i" and _is_constant_in_text(step, operand.value.aval.dtype.itemsize):
                return str(step)
            if letter == "o" and not per_row and len(self.inner_names) == 1 and step == self.inner_sizes[0]:
                return self.inner_names[0]  # rows follow each other
            return self.table.add(f"{operand.name}_{letter}{position}", "i64", step)

        outer = tuple(stride(axis, "o", k) for k, axis in enumerate(self.outer_axes))
        inner = tuple(stride(axis, "i", k) for k, axis in enumerate(self.inner_axes))
        access = Access(operand.name, operand.value.aval.dtype, outer, inner, index=operand.layout is None)
        if not operand.runs:
            return access
        segments = tuple([self._segments(operand, axis) for axis in (*self.outer_axes, *self.inner_axes)])
        return replace(access, segments=segments, interior=self._interior_run(operand))

    def _interleave(self) -> None:
        """Read and write operands that lie between each other's elements as one array each: LLVM then makes vectors of
        all their elements in memory, and knows only one pointer to them."""
        in_place = {*self.in_place, *self.in_place.values()}
        first: dict[Hashable, OperandAccess] = {}
        for operand in self.operands.values():
            if operand.layout is not None and operand.value not in in_place:
                first.setdefault((operand.layout.slot, *_kind(operand)), operand)
        for operand in self.operands.values():
            if operand.layout is None or operand.layout.neighbour is None or operand.value in in_place:
                continue
            slot, shift = operand.layout.neighbour
            base = first.get((slot, *_kind(operand)))
            if base is not None and base.access is not None and _is_between(base.access, shift):
                operand.access = replace(base.access, shift=shift)

    # --- reads at other positions ---------------------------------------------------------------------------------

    def reads_at_offsets(self) -> bool:
        """Whether an operand is read at other positions than those of the loops."""
        return any(operand.runs for operand in self.operands.values())

    def _find_interior(self) -> None:
        """Cut the last inner axis where an operand goes on elsewhere; the interior is the longest part, in whole vectors."""
        last = self.inner_axes[-1] if self.inner_axes else NONE
        cut = [operand.runs[last] for operand in self.operands.values() if last in operand.runs]
        self.has_edges = bool(cut) or self._has_rows_of_zeros()
        if not self.has_edges:
            return
        if not cut:
            self.interior = "0", self._number(last, self.inner_sizes[-1])
            return
        parts = pairwise(sorted({0, *(stop for runs in cut for stop in stops(runs))}))
        first, stop = max(parts, key=lambda part: part[1] - part[0])
        first = -(-first // _EDGE) * _EDGE
        length = (stop - first) // _INTERIOR * _INTERIOR
        if length > 0:
            self._first = first
            self.interior = self._number(last, first), self._number(last, first + length)

    def _has_rows_of_zeros(self) -> bool:
        runs = [operand.runs.get(axis, ()) for operand in self.operands.values() for axis in self.outer_axes]
        return bool(self.inner_axes) and any(run.zeros for own in runs for run in own)

    def _interior_run(self, operand: OperandAccess) -> int:
        runs = operand.runs.get(self.inner_axes[-1], ())
        return next((k for k, stop in enumerate(stops(runs)) if stop > self._first), 0)

    def _segments(self, operand: OperandAccess, axis: int) -> tuple[Segment, ...]:
        found, begin = [], 0
        runs = operand.runs.get(axis, ())
        for run, stop in zip(runs, stops(runs), strict=True):
            first = "0" if run.zeros else self._number(axis, run.start - run.step * begin)
            found.append(Segment(self._number(axis, stop), first, run.step, run.zeros, run.length == 1))
            begin = stop
        return tuple(found)

    def _number(self, axis: int, number: int) -> str:
        """A position along an axis: near 0 part of the text, which then serves all sizes, else a parameter."""
        if abs(number) <= _MAX_OFFSET_IN_TEXT:
            return str(number)
        known = self._numbers.setdefault(axis, {})
        return self.table.add(f"e{axis}_{known.setdefault(number, len(known))}", "i64", number)

    # --- scopes --------------------------------------------------------------------------------------------------

    def scope_of(self, axes: AxisMap) -> Scope:
        """The scope of a value that runs along ``axes``."""
        along = set(axes) - {NONE}
        if along & self.inner_members:
            return Scope.ELEMENT
        return Scope.ROW if along else Scope.SCALAR

    def has_columns(self, node: TraceNode) -> bool:
        """Whether the result of ``node``, computed after all blocks, has elements and is not one
        number."""
        return any(self.scope_of((axis,)) is Scope.ELEMENT for axis in self.group.out_map(node))

    def _classify_values(self) -> None:
        order = self.group.schedule
        for node in self.group.nodes:
            sweeps = [self.sweep.get(read.root, 0) for read, _ in self.reads(node) if isinstance(read.root, Value)]
            last = max(sweeps, default=0)
            if id(node) in order.epilogue or id(node) in order.merged:
                self.scope[node.out], self.sweep[node.out] = Scope.EPILOGUE, last
            else:
                self.scope[node.out] = self.scope_of(self.group.out_map(node))
                self.sweep[node.out] = last + (id(node) in order.rows)

    # --- questions of schedules and of lowering ---------------------------------------------------------------------

    def bytes_moved(self) -> int:
        """Bytes of everything that is read and written, each address once."""
        sizes = {a.layout.slot: a.value.aval.nbytes for a in self.operands.values() if a.layout is not None}
        return sum(sizes.values())

    def lies_across(self, operand: OperandAccess) -> bool:
        """Whether elements of neighbouring rows are neighbours in memory, and elements of a row are
        not."""
        steps = {operand.strides[k] for k in self.inner_axes}
        return operand.strides[self.outer_axes[-1]] == 1 and 1 not in steps and steps != {0}

    def new_local(self, letter: str) -> str:
        self._local_count += 1
        return f"{letter}{self._local_count}"


def _kind(operand: OperandAccess) -> tuple[Hashable, ...]:
    return operand.value.aval.dtype, operand.strides, operand.written


def _is_between(access: Access, shift: int) -> bool:
    """Whether elements ``shift`` behind those of ``access`` lie between them, in a loop of constant steps."""
    return len(access.inner) == 1 and access.inner[0].isdigit() and shift < int(access.inner[0])


def _is_constant_in_text(step: int, itemsize: int) -> bool:
    """Whether the kernel's text should have the stride ``step`` of a loop over elements as a number.

    LLVM vectorises a loop over a stride that it does not know for a stride of 1 alone. One that it knows becomes
    shuffles or gathers: 0.1 to 0.3 of the time for floats. Kernels for other strides serve all of them.
    """
    return step == -1 or itemsize >= LEAST_GATHERED and 2 <= abs(step) <= _MAX_CONSTANT_STRIDE
