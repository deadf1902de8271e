"""Which element values each sweep of a row computes, and which it reads again because an earlier sweep kept them."""

from __future__ import annotations

from math import prod

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.axis_maps import AxisMap, Read
from jitgrad.compiler.lowering.kernel_ir import PER_BLOCK, Access, KernelForm, Schedule, Scope
from jitgrad.compiler.lowering.layout import Buffer, BufferRole
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.op import Kind

# An element value of an earlier sweep that takes more operations than this is kept in memory, not computed again.
CHEAP_OPERATIONS = 6


class SweepPlan:
    """The sweeps of one loop frame, planned last sweep first.

    ``needed`` holds the ids of the element values that each sweep computes, ``spills`` where values lie that a later
    sweep reads again, ``scratch`` the memory this takes.
    """

    def __init__(self, frame: LoopNest, schedule: Schedule) -> None:
        self.frame = frame
        self.nodes = frame.group.nodes
        self.schedule = schedule
        self.scratch: list[Buffer] = []
        self.spills: dict[int, Access] = {}
        self.lent: dict[int, int] = {}  # results whose memory holds spilled values: the sweep that writes the first
        self.needed: dict[int, set[int]] = {}
        self.last = max(frame.level.values(), default=0)
        for level in range(self.last, -1, -1):
            roots = self.roots(level)
            roots += [key for key in self.spills if frame.level[key] == level]
            self.needed[level] = self.closure(level, roots)

    def operands(self, node: TraceNode) -> list[tuple[Read, AxisMap]]:
        return list(self.frame.group.operand_maps(node, self.frame.definitions))

    def out_map(self, value: Value) -> AxisMap:
        return self.frame.group.out_map(self.frame.definitions.by_value[id(value)])

    def roots(self, level: int) -> list[int]:
        """Ids of the element values that must exist in sweep ``level``: results, and what is reduced there."""
        frame, found = self.frame, []
        for node in self.nodes:
            key = id(node.out)
            if frame.kind[key] == Scope.ELEMENT and key in frame.outputs and frame.level[key] == level:
                found.append(key)
            if node.op.kind is Kind.REDUCE and self.reduced_at(node) == (level, Scope.ELEMENT):
                found.append(id(self.operands(node)[0][0].root))
        return found

    def reduced_at(self, node: TraceNode) -> tuple[int, Scope]:
        """(sweep, scope) of the loop that a reduction runs in: its own axes count, an operand may be a broadcast."""
        read, _ = self.operands(node)[0]
        kind = self.frame.axes_kind(self.frame.group.axis_maps[id(node)])
        return self.frame.level.get(id(read.root), 0), kind

    def closure(self, level: int, roots: list[int]) -> set[int]:
        frame, needed, work = self.frame, set[int](), list(roots)
        while work:
            key = work.pop()
            if key in needed or frame.kind.get(key) != Scope.ELEMENT:
                continue
            if frame.level[key] < level:
                if key in frame.outputs or key in self.spills:
                    continue
                if self.worth_keeping(key, level) and (access := self.spill_access(key, level)) is not None:
                    self.spills[key] = access
                    continue
            needed.add(key)
            work += [id(read.root) for read, _ in self.operands(frame.definitions.by_value[key])]
        return needed

    def worth_keeping(self, key: int, level: int) -> bool:
        """Whether computing an element value of an earlier sweep again would cost more than reading it again."""
        frame, seen, work = self.frame, set[int](), [key]
        while work:
            k = work.pop()
            if k in seen or frame.kind.get(k) != Scope.ELEMENT or k in self.spills or (k != key and k in frame.outputs):
                continue
            seen.add(k)
            node = frame.definitions.by_value[k]
            if expensive(node.op) or len(seen) > CHEAP_OPERATIONS:
                return True
            work += [id(read.root) for read, _ in self.operands(node)]
        return False

    def spill_access(self, key: int, level: int) -> Access | None:
        """Memory for one row of an element value that sweep ``level`` reads again.

        The memory of a result that is written in that sweep or later serves, else scratch of one row per chunk. Rows
        that go through all sweeps together have no scratch: None.
        """
        frame = self.frame
        dtype = frame.definitions.by_value[key].out.aval.dtype
        for out in frame.outputs.values():
            free = frame.kind[id(out)] == Scope.ELEMENT and self.free_until(out) >= level and id(out) not in frame.in_place
            if free and out.aval.dtype == dtype:
                access = frame.windows[id(out), self.out_map(out)].access
                assert access is not None
                if "0" not in access.inner and access.name not in self.schedule.nontemporal:
                    self.lent[id(out)] = frame.level[key]
                    return access
        if self.schedule.form is KernelForm.VECTORIZED_ROWS:
            return None
        row = prod(frame.inner_sizes)
        name = f"s{len(self.scratch)}"
        buffer = Buffer(BufferRole.TEMPORARY, row * dtype.itemsize * self.schedule.blocks, "row scratch")
        self.scratch.append(buffer)
        frame.table.add(name, dtype_name(dtype) + "*", (buffer, 0), "one row of scratch per chunk")
        return Access(name, dtype, PER_BLOCK, self.dense_inner())

    def free_until(self, out: Value) -> int:
        """The last sweep that may read a spilled value from the memory of ``out``; -1: none.

        What is read for the last time in a sweep makes room there for what is kept in it, which was planned before. That
        pays where a chunk is one long row: short ones reuse their chunk's scratch, which stays in the first-level cache.
        """
        if id(out) not in self.lent:
            return self.frame.level[id(out)]
        return self.lent[id(out)] if self.schedule.blocks == prod(self.frame.outer_sizes) else -1

    def dense_inner(self) -> tuple[str, ...]:
        """Stride parameters of a row that lies densely in memory."""
        frame, names = self.frame, []
        for k in range(len(frame.inner_sizes) - 1):
            names.append(frame.table.add(f"w{k}", "i64", prod(frame.inner_sizes[k + 1 :])))
        if len(frame.inner_sizes) > 1:
            frame.table.add("row", "i64", prod(frame.inner_sizes))
        return (*names, "1")

    @property
    def dense_names(self) -> tuple[str, ...]:
        return tuple(n for n in self.frame.table.names if n == "row" or (n[0] == "w" and n[1:].isdigit()))
