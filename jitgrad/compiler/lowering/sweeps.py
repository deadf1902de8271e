"""The element values that each sweep of a row computes, and those that it reads again from
memory."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.lowering.kernel_ir import PER_BLOCK, Access, Schedule, Scope
from jitgrad.compiler.lowering.loop_nest import LoopNest, Slot
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import Atom, TraceNode, Value
from jitgrad.core.op import Kind

# An element value of an earlier sweep that takes more operations than this is stored, not computed
# again.
CHEAP_OPERATIONS = 6


class Scratch(NamedTuple):
    """Memory that a kernel asks for."""

    nbytes: int
    label: str


class SweepPlan:
    """The sweeps of one loop nest, planned last sweep first.

    Attributes:
        computed: the element values that each sweep computes.
        spills: accesses to the memory of values that a later sweep reads again.
        scratch: the memory that partial results and some spills take.
    """

    def __init__(self, nest: LoopNest, schedule: Schedule) -> None:
        self.nest = nest
        self.nodes: tuple[TraceNode, ...] = nest.group.nodes
        self.schedule = schedule
        self.scratch: list[Scratch] = []
        self.spills: dict[Value, Access] = {}
        self._lent: dict[Value, int] = {}  # results whose memory holds spilled values: the sweep that writes the first
        self.computed: dict[int, set[Value]] = {}
        self.last: int = max(nest.sweep.values(), default=0)
        for sweep in range(self.last, -1, -1):
            roots = self._roots(sweep)
            roots += [value for value in self.spills if nest.sweep[value] == sweep]
            self.computed[sweep] = self._closure(sweep, roots)

    def add_scratch(self, name: str, kind: str, nbytes: int, label: str, note: str) -> str:
        """Ask for scratch memory; its pointer is parameter ``name``."""
        self.scratch.append(Scratch(nbytes, label))
        return self.nest.table.add(name, kind + "*", Slot(len(self.scratch) - 1, scratch=True), note)

    def reduced_at(self, node: TraceNode) -> tuple[int, Scope]:
        """(sweep, scope) of the loop that a reduction runs in: its own axes count, an operand may
        be a broadcast."""
        (read, _), *_ = self.nest.reads(node)
        sweep = self.nest.sweep.get(read.root, 0) if isinstance(read.root, Value) else 0
        return sweep, self.nest.scope_of(self.nest.group.axis_maps[id(node)])

    def reduces_elements(self, node: TraceNode, sweep: int) -> bool:
        """Whether ``node`` is a reduction of element values in ``sweep``."""
        return node.op.kind is Kind.REDUCE and self.reduced_at(node) == (sweep, Scope.ELEMENT)

    def _roots(self, sweep: int) -> list[Atom]:
        """The element values that must exist in ``sweep``: results, and the operands of
        reductions."""
        nest, roots = self.nest, list[Atom]()
        for node in self.nodes:
            value = node.out
            if nest.scope[value] is Scope.ELEMENT and value in nest.results and nest.sweep[value] == sweep:
                roots.append(value)
            if self.reduces_elements(node, sweep):
                roots.append(nest.reads(node)[0][0].root)
        return roots

    def _closure(self, sweep: int, roots: list[Atom]) -> set[Value]:
        nest, computed, pending = self.nest, set[Value](), list(roots)
        while pending:
            value = pending.pop()
            if not isinstance(value, Value) or value in computed or nest.scope.get(value) is not Scope.ELEMENT:
                continue
            if nest.sweep[value] < sweep:
                if value in nest.results or value in self.spills:
                    continue
                if self._worth_spilling(value) and (access := self._spill_access(value, sweep)) is not None:
                    self.spills[value] = access
                    continue
            computed.add(value)
            pending += [read.root for read, _ in nest.reads(nest.producer(value))]
        return computed

    def _worth_spilling(self, value: Value) -> bool:
        """Whether computing an element value of an earlier sweep again would cost more than reading
        it again."""
        nest, visited = self.nest, set[Value]()
        pending: list[Atom] = [value]
        while pending:
            v = pending.pop()
            if not isinstance(v, Value) or v in visited or nest.scope.get(v) is not Scope.ELEMENT:
                continue
            if v in self.spills or (v is not value and v in nest.results):
                continue
            visited.add(v)
            node = nest.producer(v)
            if expensive(node.op) or len(visited) > CHEAP_OPERATIONS:
                return True
            pending += [read.root for read, _ in nest.reads(node)]
        return False

    def _spill_access(self, value: Value, sweep: int) -> Access | None:
        """Memory for one row of an element value that ``sweep`` reads again.

        The memory of a result that is written in that sweep or later serves, else scratch per
        block. Rows that go through all sweeps together may be too long for that: None.
        """
        nest, dtype = self.nest, value.aval.dtype
        for out in nest.results:
            free = nest.scope.get(out) is Scope.ELEMENT and self._free_until(out) >= sweep and out not in nest.in_place
            if free and out.aval.dtype == dtype:
                access = nest.result_operand(out).access
                assert access is not None
                if "0" not in access.inner and access.name not in self.schedule.nontemporal:
                    self._lent[out] = nest.sweep[value]
                    return access
        if not self.schedule.keeps_rows:
            return None
        nbytes = prod(nest.inner_sizes) * dtype.itemsize * self.schedule.blocks * self.schedule.together
        name, rows = f"s{len(self.scratch)}", f"{self.schedule.together} rows" if self.schedule.together > 1 else "one row"
        self.add_scratch(name, dtype_name(dtype), nbytes, "row scratch", f"{rows} of scratch per block")
        return Access(name, dtype, PER_BLOCK, self.dense_inner())

    def _free_until(self, out: Value) -> int:
        """The last sweep that may read a spilled value from the memory of ``out``; -1: none.

        A sweep that reads a value for the last time may then store another there, which was planned
        before. That pays where a block is one long row: short rows reuse their block's scratch,
        which stays in the first-level cache.
        """
        if out not in self._lent:
            return self.nest.sweep[out]
        return self._lent[out] if self.schedule.blocks == prod(self.nest.outer_sizes) else -1

    def dense_inner(self) -> tuple[str, ...]:
        """Stride parameters of a row without gaps."""
        nest, names = self.nest, []
        for k in range(len(nest.inner_sizes) - 1):
            names.append(nest.table.add(f"w{k}", "i64", prod(nest.inner_sizes[k + 1 :])))
        if len(nest.inner_sizes) > 1:
            nest.table.add("row", "i64", prod(nest.inner_sizes))
        return (*names, "1")

    @property
    def dense_names(self) -> tuple[str, ...]:
        names = [p.name for p in self.nest.table.params]
        return tuple(n for n in names if n == "row" or (n[0] == "w" and n[1:].isdigit()))
