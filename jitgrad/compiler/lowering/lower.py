"""From a fused group to a kernel: every statement goes to the prologue, a row, a sweep or the
epilogue.

Lowering reads layouts, not addresses: a kernel's arguments are numbers and `Slot`s, and scratch
memory is a number of bytes. What it cannot do without are the strides of all operands, which of
them share memory, and which results start at cache lines. So `jitgrad.compiler.placement` decides
these first, and `jitgrad.compiler.plan` lays out memory afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from jitgrad.compiler.compiler_ops import ELEMENT_AT
from jitgrad.compiler.fusion.axis_maps import AxisMap, Read
from jitgrad.compiler.lowering.footprint import Footprint, footprints
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Accumulate,
    AccumulatorScope,
    Compute,
    Epilogue,
    Kernel,
    KernelParameter,
    Load,
    Schedule,
    Scope,
    Statement,
    Store,
    Sweep,
    read_before_written,
)
from jitgrad.compiler.lowering.layout import OperandLayout
from jitgrad.compiler.lowering.loop_nest import KernelArg, LoopNest, OperandAccess, Slot
from jitgrad.compiler.lowering.sweeps import Scratch, SweepPlan
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.ir import Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind

Scheduler = Callable[[LoopNest], Schedule]
UNREAD = -1  # the number of an input whose memory a kernel may write, and does not read


@dataclass(frozen=True, eq=False, slots=True)
class PlacedGroup:
    """A fused node, and all that its kernel depends on besides.

    Attributes:
        layouts: of the values it reads, then of its results.
        in_place: for results that take the memory of an input: the numbers of result and input.
        unread: the numbers of the results that nothing reads after it.
    """

    node: TraceNode
    layouts: tuple[OperandLayout, ...]
    in_place: tuple[tuple[int, int], ...] = ()
    unread: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Lowered:
    """A kernel, its schedule, and the arguments of its two functions for these shapes.

    Attributes:
        scratch: the memory that the kernel asks for: partial results, and rows that sweeps store
            for each other.
        footprints: the memory that each iteration touches, but for scratch and what the epilogue
            touches; None if the iterations run along several axes.
    """

    kernel: Kernel
    schedule: Schedule
    args: tuple[KernelArg, ...]
    epilogue_args: tuple[KernelArg, ...]
    scratch: tuple[Scratch, ...]
    footprints: tuple[Footprint[Slot], ...] | None

    @property
    def is_independent(self) -> bool:
        """Whether any cut of the iterations gives the same results: nothing is kept per block."""
        return self.kernel.epilogue is None and not self.scratch


def lower(group: PlacedGroup, scheduler: Scheduler) -> Lowered:
    """The kernel of ``group``; ``scheduler`` says how the target runs its loop nest."""
    body: Graph = group.node.attr("body")
    results = [out for out in body.outputs if isinstance(out, Value)]
    layouts = dict(zip((*body.inputs, *results), group.layouts, strict=True))
    in_place = {results[k]: Value(results[k].aval) if j == UNREAD else body.inputs[j] for k, j in group.in_place}
    nest = LoopNest(group.node, layouts, in_place, [results[k] for k in group.unread])
    schedule = scheduler(nest)
    nest.apply(schedule)
    return _Builder(nest, schedule).build()


def bits(number: bool | int | float, dtype: Dtype) -> int:
    """``number`` as an entry of an argument table: an integer, or the bit pattern of a float."""
    if dtype.kind != "f":
        return int(number)
    return int(np.array(number, dtype).view(f"i{dtype.itemsize}"))


class _Builder:
    """Places statements, and knows the locals of each scope."""

    def __init__(self, nest: LoopNest, schedule: Schedule) -> None:
        self.nest = nest
        self.schedule = schedule
        self.order = nest.group.schedule
        self.nodes = nest.group.nodes
        self.row_locals: dict[Value, str] = {}  # of values with one number, or one per row
        self.row_loads: dict[str, str] = {}  # access name -> local, for reads outside the inner loop
        self.prologue: list[Statement] = []
        self.before: list[Statement] = []  # of the sweep that is being built
        self.plan = SweepPlan(nest, schedule)
        self.merges: dict[TraceNode, Accumulate] = {}
        self.counts: dict[int, str] = {}  # by the id of a literal: the parameter of a number that follows from shapes

    # --- reading -------------------------------------------------------------------------------------------------

    def compute(
        self, node: TraceNode, into: list[Statement], loop: dict[str, str] | None, inner: dict[Value, str]
    ) -> str:
        """Append ``node`` to ``into``; ``loop`` and ``inner`` hold the loads and locals of the
        inner loop, if in one."""
        args: list[tuple[str | bool | int | float, Dtype]] = []
        for position, (read, axes) in enumerate(self.nest.reads(node)):
            if node.op is ELEMENT_AT and not position and isinstance(read.root, Value):
                args.append((self.nest.operands[read.root, axes].name, read.root.aval.dtype))  # its address
            else:
                args.append((self.argument(read, axes, into, loop, inner), read.root.aval.dtype))
        if node.op.kind is Kind.INDEX:
            return self.load(self.nest.operands[node, self.nest.group.out_map(node)], into, loop, node)
        name = self.nest.new_local("t")
        into.append(Compute(name, node, tuple(args)))
        return name

    def argument(
        self, read: Read, axes: AxisMap, into: list[Statement], loop: dict[str, str] | None, inner: dict[Value, str]
    ) -> str | bool | int | float:
        """The local of a value that is read, or a number."""
        root = read.root
        if isinstance(root, Literal):
            return self.number(root)
        if (local := inner.get(root) or self.row_locals.get(root)) is not None:
            return local
        return self.load(self.nest.operands[root, axes], into, loop, None)

    def number(self, literal: Literal) -> str | bool | int | float:
        """The value of ``literal``, or the parameter that has it."""
        assert not isinstance(literal.value, complex)  # kernels compute with real numbers
        if not literal.shape_derived:
            return literal.value
        name = self.counts.setdefault(id(literal), f"c{len(self.counts)}")
        dtype = literal.aval.dtype
        return self.nest.table.add(name, dtype_name(dtype), bits(literal.value, dtype), "follows from a shape")

    def load(
        self, operand: OperandAccess, into: list[Statement], loop: dict[str, str] | None, node: TraceNode | None
    ) -> str:
        """The local of the element of ``operand`` here, loaded on first use in the widest scope
        that can."""
        access = operand.access
        assert access is not None
        note = str(operand.value.aval) if node is None else f"{node.op}  {node.origin}"
        if access.stays_along(inner=True):
            key = f"{access.name}{access.outer}"
            if key in self.row_loads:
                return self.row_loads[key]
            if access.stays_along(inner=False):
                into = self.prologue
            elif loop is not None:
                into = self.before
            name = self.row_loads[key] = self.nest.new_local("a")
            into.append(Load(name, access, note))
            return name
        assert loop is not None, "an element is read outside the inner loop"
        key = f"{access.name}{access.outer}{access.inner}{access.shift}"
        if key not in loop:
            loop[key] = self.nest.new_local("a")
            into.append(Load(loop[key], access, note))
        return loop[key]

    def store(self, value: Value, local: str, into: list[Statement]) -> None:
        access = self.nest.result_operand(value).access
        assert access is not None
        into.append(Store(access, local, value.aval.dtype, str(value.aval)))

    # --- the whole kernel ------------------------------------------------------------------------------------------

    def build(self) -> Lowered:
        nest = self.nest
        for node in self.nodes:
            if nest.scope[node.out] is Scope.SCALAR:
                self.place_number(node)
        sweeps = tuple(self.sweep(k) for k in range(self.plan.last + 1))
        sweeps = tuple(s for s in sweeps if s.before or s.body)
        loaded = {s.access.name for sweep in sweeps for s in sweep.body if isinstance(s, Load)}
        schedule = replace(self.schedule, nontemporal=self.schedule.nontemporal - loaded)
        epilogue, epilogue_args = self.epilogue() if self.merges else (None, ())
        names = "_".join(dict.fromkeys(node.op.name for node in self.nodes))
        main = (*self.prologue, *(x for s in sweeps for x in (*s.before, *s.body)))
        sizes = (*nest.outer_names[1:], *nest.inner_names, *self.plan.dense_names) if nest.outer_names else ()
        sizes += nest.interior or ()
        params, args = self.used(main, sizes)
        kernel = Kernel(
            name=names[:60].rstrip("_"),
            params=params,
            outer=nest.outer_names,
            inner=nest.inner_names,
            prologue=read_before_written(self.prologue),
            sweeps=sweeps,
            epilogue=epilogue,
            ops=tuple(node.op.name for node in self.nodes),
            interior=nest.interior,
            has_edges=nest.has_edges,
        )
        return Lowered(kernel, schedule, args, epilogue_args, tuple(self.plan.scratch), footprints(nest))

    def place_number(self, node: TraceNode) -> None:
        self.row_locals[node.out] = local = self.compute(node, self.prologue, None, {})
        if node.out in self.nest.results:
            self.store(node.out, local, self.prologue)

    # --- one sweep -----------------------------------------------------------------------------------------------

    def sweep(self, number: int) -> Sweep:
        nest = self.nest
        self.before = []
        for node in self.nodes:
            value = node.out
            if nest.scope[value] is Scope.ROW and nest.sweep[value] == number:
                if id(node) not in self.order.rows:
                    self.row_locals[value] = self.compute(node, self.before, None, {})
                if value in nest.results:
                    self.store(value, self.row_locals[value], self.before)
            by_row = (number, Scope.ROW), (number, Scope.SCALAR)
            if id(node) in self.order.merged and self.plan.reduced_at(node) in by_row:
                self.accumulate(node, self.before, None, {})
        body: list[Statement] = []
        loop: dict[str, str] = {}
        inner = self.reload(number, body)
        for node in self.nodes:
            if node.out in self.plan.computed[number]:
                inner[node.out] = self.compute(node, body, loop, inner)
                self.store_element(node.out, number, inner[node.out], body)
            if self.plan.reduces_elements(node, number):
                self.accumulate(node, body, loop, inner)
        return Sweep(read_before_written(self.before), read_before_written(body))

    def reload(self, sweep: int, body: list[Statement]) -> dict[Value, str]:
        """Element values of earlier sweeps that this one reads from memory."""
        nest, computed = self.nest, self.plan.computed[sweep]
        nodes = [node for node in self.nodes if node.out in computed]  # in order: text is identity
        roots = [read.root for node in nodes for read, _ in nest.reads(node)]
        roots += [nest.reads(node)[0][0].root for node in self.nodes if self.plan.reduces_elements(node, sweep)]
        reloaded: dict[Value, str] = {}
        for value in dict.fromkeys(root for root in roots if isinstance(root, Value)):
            if value in computed or nest.scope.get(value) is not Scope.ELEMENT:
                continue
            access = self.plan.spills.get(value) or nest.result_operand(value).access
            assert access is not None
            reloaded[value] = nest.new_local("a")
            body.append(Load(reloaded[value], access, "from the sweep before"))
        return reloaded

    def store_element(self, value: Value, sweep: int, local: str, body: list[Statement]) -> None:
        """Store an element value that is a result, or that a later sweep reads again."""
        if self.nest.sweep[value] != sweep:
            return
        if value in self.nest.results:
            self.store(value, local, body)
        elif value in self.plan.spills:
            body.append(Store(self.plan.spills[value], local, value.aval.dtype, "kept for the next sweep"))

    def accumulate(
        self, node: TraceNode, into: list[Statement], loop: dict[str, str] | None, inner: dict[Value, str]
    ) -> None:
        """Fold the operand of a reduction into its accumulator."""
        nest, out, monoid = self.nest, node.out.aval.dtype, node.op.monoid
        assert monoid is not None
        (read, axes), *_ = nest.reads(node)
        operand, dtype = self.argument(read, axes, into, loop, inner), read.root.aval.dtype
        name, note = nest.new_local("r"), f"{node.op}  {node.origin}"
        if id(node) in self.order.rows:
            self.row_locals[node.out] = name
            into.append(Accumulate(name, AccumulatorScope.ROW, monoid, operand, dtype, out, out, note))
            return
        column = nest.has_columns(node)
        accumulator = out if column else monoid.accumulator(out)
        nbytes = self.schedule.blocks * (prod(nest.inner_sizes) if column else 1) * accumulator.itemsize
        partial, kind = f"p{len(self.merges)}", dtype_name(accumulator)
        self.plan.add_scratch(partial, kind, nbytes, "partial results", "one partial per block")
        nest.table.add("block_size", "i64", self.schedule.block_size)
        if column:
            self.plan.dense_inner()
        scope = AccumulatorScope.COLUMN if column else AccumulatorScope.BLOCK
        statement = Accumulate(name, scope, monoid, operand, dtype, accumulator, out, note, partial)
        self.merges[node] = statement
        into.append(statement)

    # --- the epilogue ----------------------------------------------------------------------------------------------

    def epilogue(self) -> tuple[Epilogue, tuple[KernelArg, ...]]:
        """Merge the partial results and run what reads them: first numbers, then columns."""
        nest = self.nest
        main_prologue, self.prologue = self.prologue, []
        main_loads, self.row_loads = self.row_loads, {}
        main_locals, self.row_locals = self.row_locals, {}
        scalars, columns, loop, inner = list[Statement](), list[Statement](), dict[str, str](), dict[Value, str]()
        for node in self.nodes:
            if node not in self.merges and id(node) not in self.order.epilogue:
                continue
            column = nest.has_columns(node)
            into = columns if column else scalars
            if node in self.merges:
                local = self.merges[node].name
            else:
                local = self.compute(node, into, loop if column else None, inner)
            (inner if column else self.row_locals)[node.out] = local
            if node.out in nest.results:
                self.store(node.out, local, into)
        before, body = read_before_written([*self.prologue, *scalars]), read_before_written(columns)
        self.prologue, self.row_loads, self.row_locals = main_prologue, main_loads, main_locals
        nest.table.add("blocks", "i64", self.schedule.blocks)
        merges = tuple(self.merges.values())
        size = "row" if "row" in nest.table.names else (nest.inner_names[0] if nest.inner_names else "")
        extra = ["blocks", *(m.partial for m in merges)]
        if any(m.where is AccumulatorScope.COLUMN for m in merges):
            extra += [*nest.inner_names, *self.plan.dense_names]
        params, args = self.used((*before, *body), extra)
        return Epilogue(params, merges, before, body, size), args

    # --- parameters that are really used -------------------------------------------------------------------------

    def used(
        self, statements: Iterable[Statement], always: Iterable[str]
    ) -> tuple[tuple[KernelParameter, ...], tuple[KernelArg, ...]]:
        """The part of the parameter table that ``statements`` mention."""
        names = set(always)
        for s in statements:
            if isinstance(s, (Load, Store)):
                names |= set(s.access.names)
                if s.access.outer == PER_BLOCK:
                    names.add(self.nest.table.add("block_size", "i64", self.schedule.block_size))
            elif isinstance(s, Accumulate):
                names |= {s.local} if isinstance(s.local, str) else set()
                names |= {s.partial, "block_size"} if s.partial else set()
            elif isinstance(s, Compute):
                names |= {arg for arg, _ in s.args if isinstance(arg, str)}
        table = self.nest.table
        chosen = [k for k, p in enumerate(table.params) if p.name in names]
        return tuple(table.params[k] for k in chosen), tuple(table.args[k] for k in chosen)
