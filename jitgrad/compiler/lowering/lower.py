"""From a fused group to the loop IR: every statement placed in the prologue, a row, a sweep or the epilogue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

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
from jitgrad.compiler.lowering.layout import Buffer, BufferRole, Location
from jitgrad.compiler.lowering.loop_nest import ArgSlot, LoopNest, OperandAccess
from jitgrad.compiler.lowering.sweeps import SweepPlan
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.ir import Literal, TraceNode, Value
from jitgrad.core.op import Kind

# ``scheduler(nest, unread)``: how the target runs a loop nest whose results ``unread`` (ids) nothing reads after it.
Scheduler = Callable[[LoopNest, Collection[int]], Schedule]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel, its schedule, and the arguments of its two functions for these shapes.

    Attributes:
        scratch: buffers that the kernel asks for: partial results and rows that sweeps keep for each other.
        spans: what each iteration touches, where the iterations are independent; else None.
        duplicate_of: an earlier one with the same kernel but for its notes, for other buffers.
    """

    kernel: Kernel
    schedule: Schedule
    words: tuple[ArgSlot, ...]
    epilogue_words: tuple[ArgSlot, ...]
    scratch: tuple[Buffer, ...]
    spans: tuple[Footprint, ...] | None
    duplicate_of: Lowered | None = None


def lower(
    node: TraceNode,
    locate: Callable[[Value], Location],
    in_place: dict[int, Value],
    scheduler: Scheduler,
    unread: Collection[int] = (),
) -> Lowered:
    """Lower the fused ``node``; ``locate`` says where its operands and results are stored."""
    nest = LoopNest(node, locate, in_place)
    schedule = scheduler(nest, unread)
    nest.apply(schedule)
    return _Builder(nest, schedule).build()


def bits(number: bool | int | float, dtype: Dtype) -> int:
    """``number`` as a word of a kernel's argument table: an integer, or the bit pattern of a float."""
    if dtype.kind != "f":
        return int(number)
    return int(np.array(number, dtype).view(f"i{dtype.itemsize}"))


class _Builder:
    """Places statements; ``scope`` says which locals exist where."""

    def __init__(self, frame: LoopNest, schedule: Schedule) -> None:
        self.frame = frame
        self.schedule = schedule
        self.nodes = frame.group.nodes
        self.row_locals: dict[int, str] = {}  # of values with one number, or one per row
        self.row_loads: dict[str, str] = {}  # access name -> local, for reads outside the inner loop
        self.prologue: list[Statement] = []
        self.grain, self.chunks = schedule.block_size, schedule.blocks
        self.plan = SweepPlan(frame, schedule)
        self.merges: dict[int, Accumulate] = {}
        self.counts: dict[int, str] = {}  # parameters of numbers that follow from shapes

    # --- reading -------------------------------------------------------------------------------------------------

    def operands(self, node: TraceNode) -> list[tuple[Read, AxisMap]]:
        return list(self.frame.group.operand_maps(node, self.frame.definitions))

    def compute(
        self, node: TraceNode, into: list[Statement], loop: dict[str, str] | None, inner: dict[int, str]
    ) -> str:
        """Append ``node`` to ``into``; ``loop`` and ``inner`` hold the loads and locals of the inner loop, if in one."""
        args: list[tuple[str | bool | int | float, Dtype]] = []
        for read, axes in self.operands(node):
            if isinstance(read.root, Literal):
                args.append((self.number(read.root), read.root.aval.dtype))
            else:
                args.append((self.local(read, axes, into, loop, inner), read.root.aval.dtype))
        if node.op.kind is Kind.INDEX:
            return self.load(self.frame.windows[id(node), self.frame.group.out_map(node)], into, loop, node)
        name = self.frame.new_local("t")
        into.append(Compute(name, node, tuple(args)))
        return name

    def number(self, literal: Literal) -> str | bool | int | float:
        """The value of ``literal``, or the parameter that has it."""
        if not literal.shape_derived:
            return literal.value
        name = self.counts.setdefault(id(literal), f"c{len(self.counts)}")
        dtype = literal.aval.dtype
        return self.frame.table.add(name, dtype_name(dtype), bits(literal.value, dtype), "follows from a shape")

    def local(
        self, read: Read, axes: AxisMap, into: list[Statement], loop: dict[str, str] | None, inner: dict[int, str]
    ) -> str:
        key = id(read.root)
        if key in inner:
            return inner[key]
        if key in self.row_locals:
            return self.row_locals[key]
        assert isinstance(read.root, Value)
        return self.load(self.frame.windows[key, axes], into, loop, None)

    def load(self, window: OperandAccess, into: list[Statement], loop: dict[str, str] | None, node: TraceNode | None) -> str:
        """The local that holds what ``window`` shows here, loaded on first use in the widest scope that can."""
        access = window.access
        assert access is not None
        note = str(window.value.aval) if node is None else f"{node.op}  {node.origin}"
        if set(access.inner) <= {"0"}:
            if set(access.outer) <= {"0"} and loop is not None or access.name in self.row_loads:
                into = self.prologue
            seen = self.row_loads.get(f"{access.name}{access.outer}")
            if seen is not None:
                return seen
            if set(access.outer) <= {"0"}:
                into = self.prologue
            elif loop is not None:
                into = self.before
            name = self.row_loads[f"{access.name}{access.outer}"] = self.frame.new_local("a")
            into.append(Load(name, access, note))
            return name
        assert loop is not None, "an element is read outside the inner loop"
        key = f"{access.name}{access.outer}{access.inner}"
        if key not in loop:
            loop[key] = self.frame.new_local("a")
            into.append(Load(loop[key], access, note))
        return loop[key]

    def store(self, value: Value, local: str, into: list[Statement]) -> None:
        window = self.frame.windows[id(value), self.out_map(value)]
        assert window.access is not None
        into.append(Store(window.access, local, value.aval.dtype, str(value.aval)))

    def out_map(self, value: Value) -> AxisMap:
        return self.frame.group.out_map(self.frame.definitions.by_value[id(value)])

    # --- the whole kernel ------------------------------------------------------------------------------------------

    def build(self) -> Lowered:
        frame = self.frame
        self.before: list[Statement] = []
        for node in self.nodes:
            if frame.kind[id(node.out)] == Scope.SCALAR:
                self.place_number(node)
        sweeps = tuple(self.sweep(level) for level in range(self.plan.last + 1))
        sweeps = tuple(s for s in sweeps if s.before or s.body)
        loaded = {s.access.name for sweep in sweeps for s in sweep.body if isinstance(s, Load)}
        schedule = replace(self.schedule, nontemporal=self.schedule.nontemporal - loaded)
        epilogue = self.epilogue()
        names = "_".join(dict.fromkeys(node.op.name for node in self.nodes))
        main = (*self.prologue, *(x for s in sweeps for x in (*s.before, *s.body)))
        sizes = (*frame.outer_names[1:], *frame.inner_names, *self.plan.dense_names) if frame.outer_names else ()
        params, words = self.used(main, sizes)
        kernel = Kernel(
            name=names[:60].rstrip("_"),
            params=params,
            outer=frame.outer_names,
            inner=frame.inner_names,
            prologue=read_before_written(self.prologue),
            sweeps=sweeps,
            epilogue=epilogue[0] if epilogue else None,
            ops=tuple(node.op.name for node in self.nodes),
            origins=tuple(dict.fromkeys(node.origin for node in self.nodes)),
        )
        scratch = tuple(self.plan.scratch)
        spans = None if epilogue or scratch else footprints(frame)
        return Lowered(kernel, schedule, words, epilogue[1] if epilogue else (), scratch, spans)

    def place_number(self, node: TraceNode) -> None:
        self.row_locals[id(node.out)] = local = self.compute(node, self.prologue, None, {})
        if id(node.out) in self.frame.outputs:
            self.store(node.out, local, self.prologue)

    # --- one sweep -----------------------------------------------------------------------------------------------

    def sweep(self, level: int) -> Sweep:
        frame = self.frame
        self.before = []
        for node in self.nodes:
            key = id(node.out)
            if frame.kind[key] == Scope.ROW and frame.level[key] == level and id(node) not in frame.group.schedule.rows:
                self.row_locals[key] = self.compute(node, self.before, None, {})
            if frame.kind[key] == Scope.ROW and frame.level[key] == level and key in frame.outputs:
                self.store(node.out, self.row_locals[key], self.before)
            by_row = (level, Scope.ROW), (level, Scope.SCALAR)
            if id(node) in frame.group.schedule.merged and self.plan.reduced_at(node) in by_row:
                self.accumulate(node, self.before, None, {})
        body: list[Statement] = []
        loop: dict[str, str] = {}
        inner = self.reload(level, body, loop)
        for node in self.nodes:
            key = id(node.out)
            if key in self.plan.needed[level]:
                inner[key] = self.compute(node, body, loop, inner)
                self.keep(node.out, level, inner[key], body)
            if node.op.kind is Kind.REDUCE and self.plan.reduced_at(node) == (level, Scope.ELEMENT):
                self.accumulate(node, body, loop, inner)
        return Sweep(read_before_written(self.before), read_before_written(body))

    def reload(self, level: int, body: list[Statement], loop: dict[str, str]) -> dict[int, str]:
        """Element values of earlier sweeps that this one reads from memory."""
        frame, found = self.frame, dict[int, str]()
        needed = [node for node in self.nodes if id(node.out) in self.plan.needed[level]]  # in order: text is identity
        wanted = [id(r.root) for node in needed for r, _ in self.operands(node)]
        wanted += [
            id(self.operands(n)[0][0].root)
            for n in self.nodes
            if n.op.kind is Kind.REDUCE and self.plan.reduced_at(n) == (level, Scope.ELEMENT)
        ]
        for key in dict.fromkeys(wanted):
            if key in self.plan.needed[level] or frame.kind.get(key) != Scope.ELEMENT:
                continue
            access = self.plan.spills.get(key) or frame.windows[key, self.out_map(frame.outputs[key])].access
            assert access is not None
            found[key] = frame.new_local("a")
            body.append(Load(found[key], access, "from the sweep before"))
        return found

    def keep(self, value: Value, level: int, local: str, body: list[Statement]) -> None:
        if self.frame.level[id(value)] != level:
            return
        if id(value) in self.frame.outputs:
            self.store(value, local, body)
        elif id(value) in self.plan.spills:
            body.append(Store(self.plan.spills[id(value)], local, value.aval.dtype, "kept for the next sweep"))

    def accumulate(
        self, node: TraceNode, into: list[Statement], loop: dict[str, str] | None, inner: dict[int, str]
    ) -> None:
        """Fold the operand of a reduction into its accumulator."""
        frame, out = self.frame, node.out.aval.dtype
        read, axes = self.operands(node)[0]
        local: str | bool | int | float
        if isinstance(read.root, Literal):
            local, found = self.number(read.root), read.root.aval.dtype
        else:
            local, found = self.local(read, axes, into, loop, inner), read.root.aval.dtype
        name, note = frame.new_local("r"), f"{node.op}  {node.origin}"
        assert node.op.monoid is not None
        if id(node) in frame.group.schedule.rows:
            self.row_locals[id(node.out)] = name
            into.append(Accumulate(name, AccumulatorScope.ROW, node.op.monoid, local, found, out, out, note))
            return
        column = any(frame.axes_kind((axis,)) == Scope.ELEMENT for axis in frame.group.out_map(node))
        dtype = out if column else node.op.monoid.accumulator(out)
        row = prod(frame.inner_sizes) if column else 1
        buffer = Buffer(BufferRole.TEMPORARY, self.chunks * row * dtype.itemsize, "partial results")
        self.plan.scratch.append(buffer)
        partial = frame.table.add(f"p{len(self.merges)}", dtype_name(dtype) + "*", (buffer, 0), "one partial per chunk")
        frame.table.add("grain", "i64", self.grain)
        if column:
            self.plan.dense_inner()
        where = AccumulatorScope.COLUMN if column else AccumulatorScope.BLOCK
        statement = Accumulate(name, where, node.op.monoid, local, found, dtype, out, note, partial)
        self.merges[id(node)] = statement
        into.append(statement)

    # --- the epilogue ----------------------------------------------------------------------------------------------

    def epilogue(self) -> tuple[Epilogue, tuple[ArgSlot, ...]] | None:
        """Merge the partial results and run what reads them: first numbers, then columns."""
        frame = self.frame
        if not self.merges:
            return None
        main_prologue, self.prologue = self.prologue, []
        main_loads, self.row_loads = self.row_loads, {}
        locals_before, self.row_locals = self.row_locals, {}
        scalars, columns, loop, inner = list[Statement](), list[Statement](), dict[str, str](), dict[int, str]()
        for node in self.nodes:
            late = id(node) in frame.group.schedule.epilogue
            if not late and id(node) not in frame.group.schedule.merged:
                continue
            column = any(frame.axes_kind((axis,)) == Scope.ELEMENT for axis in frame.group.out_map(node))
            into = columns if column else scalars
            if late:
                local = self.compute(node, into, loop if column else None, inner)
            else:
                local = self.merges[id(node)].name
            (inner if column else self.row_locals)[id(node.out)] = local
            if id(node.out) in frame.outputs:
                self.store(node.out, local, into)
        before, body = read_before_written([*self.prologue, *scalars]), read_before_written(columns)
        self.prologue, self.row_loads, self.row_locals = main_prologue, main_loads, locals_before
        frame.table.add("chunks", "i64", self.chunks)
        merges = tuple(self.merges.values())
        size = "row" if "row" in frame.table.names else (frame.inner_names[0] if frame.inner_names else "")
        extra = ["chunks", *(m.partial for m in merges)]
        if any(m.where is AccumulatorScope.COLUMN for m in merges):
            extra += [*frame.inner_names, *self.plan.dense_names]
        params, words = self.used((*before, *body), extra)
        return Epilogue(params, merges, before, body, size), words

    # --- parameters that are really used -------------------------------------------------------------------------

    def used(
        self, statements: Iterable[Statement], always: Iterable[str]
    ) -> tuple[tuple[KernelParameter, ...], tuple[ArgSlot, ...]]:
        """The part of the parameter table that ``statements`` mention."""
        names = set(always)
        for s in statements:
            if isinstance(s, (Load, Store)):
                names |= {s.access.name, *s.access.outer, *s.access.inner}
                if s.access.outer == PER_BLOCK:
                    names.add("grain")
                    self.frame.table.add("grain", "i64", self.grain)
            elif isinstance(s, Accumulate):
                names |= {*((s.local,) if isinstance(s.local, str) else ()), *((s.partial, "grain") if s.partial else ())}
            elif isinstance(s, Compute):
                names |= {arg for arg, _ in s.args if isinstance(arg, str)}
        table = self.frame.table
        chosen = [k for k, p in enumerate(table.params) if p.name in names]
        return tuple(table.params[k] for k in chosen), tuple(table.words[k] for k in chosen)
