"""A plan as units that run one after the other, with what each reads and writes: the model of memory over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.lowering.layout import Buffer, BufferRole
from jitgrad.compiler.memory.arena import aligned_size
from jitgrad.compiler.placement import COPY_INTO, ZERO
from jitgrad.compiler.plan import BlockRun, KernelStep, Place, Plan, Step, buffers_of
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Graph
from jitgrad.core.op import Kind

# Moving a byte to or from memory takes about as long as so many operations of a matrix product or of a vectorised loop.
OPERATIONS_PER_BYTE = 4
_COSTLY = Tuning().costly_operations
NEVER = -1


@dataclass(frozen=True, slots=True)
class StepCost:
    """What steps take: the ``bytes`` that they move, and their arithmetic ``operations``."""

    bytes: int = 0
    operations: int = 0

    def __add__(self, other: StepCost) -> StepCost:
        return StepCost(self.bytes + other.bytes, self.operations + other.operations)

    @property
    def weight(self) -> float:
        """One number to compare costs by."""
        return self.bytes + self.operations / OPERATIONS_PER_BYTE


def total_cost(steps: Iterable[Step]) -> StepCost:
    """The cost of ``steps`` together."""
    return sum(map(step_cost, steps), StepCost())


def step_cost(step: Step) -> StepCost:
    """The cost of one step: every operand and result once, and an estimate of its arithmetic."""
    nbytes = sum(place.aval.nbytes for place in (*step.reads, *step.writes) if place.location is not None)
    if isinstance(step, KernelStep):
        return StepCost(nbytes, _operations(step.node.attr("body")))
    if step.op.contraction:
        left, out = step.reads[0].aval, step.writes[0].aval
        return StepCost(nbytes, 2 * out.size * (left.shape[-1] if left.shape else 1))
    return StepCost(nbytes)


def _operations(body: Graph) -> int:
    count = 0
    for node in body.nodes:
        if node.op.kind is Kind.ELEMENTWISE:
            count += node.out.aval.size * (_COSTLY if expensive(node.op) else 1)
        elif node.op.kind is Kind.REDUCE:
            count += node.ins[0].aval.size
    return count


@dataclass(eq=False, slots=True)
class Unit:
    """A step, or kernels that run block by block together.

    Attributes:
        reads: the temporaries that it needs from earlier units.
        writes: the temporaries that it writes and that other units touch.
        scratch: bytes of the temporaries that it alone touches.
        spare: bytes of the program's results that it writes, for which another run needs memory of its own.
        repeats: whether it may run twice: it changes nothing that it or another unit reads.
        until: number of the last unit before which it may run again and do the same; `NEVER` if it may not.
    """

    steps: tuple[Step, ...]
    run: BlockRun | None
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()
    scratch: int = 0
    spare: int = 0
    cost: float = 0.0
    repeats: bool = False
    until: float = inf

    @property
    def local(self) -> frozenset[Buffer]:
        return frozenset(self.run.local) if self.run is not None else frozenset()

    def buffers(self) -> list[Buffer]:
        """What it touches outside of the memory of a block, each once."""
        local = self.local
        return [b for b in dict.fromkeys(b for s in self.steps for b in s.buffers) if b not in local]


@dataclass(eq=False, slots=True)
class Temporary:
    """A buffer in the arena, and the numbers of the units that write it and that read it.

    Attributes:
        until: number of the last unit before which its contents can be computed again; `NEVER` if they cannot.
    """

    size: int
    writers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    until: float = NEVER

    @property
    def last(self) -> int:
        return max([*self.writers[-1:], *self.readers[-1:]])

    def next_use(self, after: int) -> float:
        """The number of the first unit after ``after`` that reads it; infinity if there is none."""
        k = bisect_right(self.readers, after)
        return self.readers[k] if k < len(self.readers) else inf


class Model:
    """The units of a plan, and its temporaries.

    A temporary can be computed again if all its writers run before its first reader, and each may run again: it is no
    kernel that changes an input, and no call of a function that is not known to be pure. That holds until the memory
    that it reads has other contents.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.units: list[Unit] = units_of(plan)
        self.temporaries: dict[Buffer, Temporary] = {}
        self._results = frozenset(plan.results)
        self._written: dict[Buffer, list[tuple[int, int, int]]] = {}  # unit, and the first and last byte that it writes
        touched: dict[Buffer, list[int]] = {}
        for k, unit in enumerate(self.units):
            for buffer in unit.buffers():
                touched.setdefault(buffer, []).append(k)
            for place in _places(unit, writes=True):
                buffer, start, stop = _extent(place)
                self._written.setdefault(buffer, []).append((k, start, stop))
        for k, unit in enumerate(self.units):
            self._describe(k, unit, touched)
        for k, unit in enumerate(self.units):
            self._examine(k, unit)

    def _describe(self, k: int, unit: Unit, touched: Mapping[Buffer, Sequence[int]]) -> None:
        """Fill in what ``unit`` reads and writes."""
        written = {_extent(place)[0] for place in _places(unit, writes=True)}
        read = {_extent(place)[0] for place in _places(unit, writes=False)}
        changed = {b for b in written & read if any(writer != k for writer, _, _ in self._written[b])}
        unit.repeats = not changed and all(_is_pure(step) for step in unit.steps)
        reads, writes = list[Buffer](), list[Buffer]()
        for buffer in unit.buffers():
            if buffer.role is not BufferRole.TEMPORARY:
                continue
            if buffer in self._results:
                unit.spare += aligned_size(buffer) if buffer in written else 0
                continue
            if len(touched[buffer]) == 1:
                unit.scratch += aligned_size(buffer)
                continue
            temporary = self.temporaries.setdefault(buffer, Temporary(aligned_size(buffer)))
            if buffer in written:
                temporary.writers.append(k)
                writes.append(buffer)
            if buffer not in written or buffer in changed:
                temporary.readers.append(k)
                reads.append(buffer)
        unit.reads, unit.writes = tuple(reads), tuple(writes)
        unit.cost = total_cost(unit.steps).weight

    def _examine(self, k: int, unit: Unit) -> None:
        """Decide until when ``unit``, and the temporaries that it completes, can be computed again."""
        reads = [_extent(place) for place in _places(unit, writes=False)]
        own = {b for b in unit.writes if b not in unit.reads}
        valid = [self._valid_until(k, *extent) for extent in reads if extent[0] not in own]
        unit.until = min(valid, default=inf) if unit.repeats else NEVER
        for buffer in unit.writes:
            temporary = self.temporaries[buffer]
            if temporary.writers[-1] == k and temporary.readers and temporary.readers[0] > k:
                temporary.until = min(self.units[w].until for w in temporary.writers)

    def _valid_until(self, k: int, buffer: Buffer, start: int, stop: int) -> float:
        """The last unit before which what unit ``k`` reads in ``buffer`` is there, or can be computed again."""
        changes = (w for w, low, high in self._written.get(buffer, ()) if w > k and low < stop and high > start)
        changed = next(changes, inf)
        temporary = self.temporaries.get(buffer)
        return changed if temporary is None else min(changed, max(temporary.last, temporary.until))


def units_of(plan: Plan) -> list[Unit]:
    """The units of ``plan`` in order."""
    runs = {run.first: run for run in plan.block_runs}
    units: list[Unit] = []
    k = 0
    while k < len(plan.steps):
        run = runs.get(k)
        stop = k + 1 if run is None else run.stop
        units.append(Unit(plan.steps[k:stop], run))
        k = stop
    return units


def _is_pure(step: Step) -> bool:
    """Whether running ``step`` again, into other memory, has no effect but its results."""
    if any(b.role is not BufferRole.TEMPORARY for b in buffers_of(step.writes)):
        return False
    return isinstance(step, KernelStep) or step.op.contraction or step.op.fills or step.op in (ZERO, COPY_INTO)


def written_by(step: Step) -> list[Buffer]:
    """The buffers that ``step`` writes, memory of its own included."""
    return [*buffers_of(step.writes), *(step.scratch if isinstance(step, KernelStep) else ())]


def _places(unit: Unit, writes: bool) -> Iterator[Place]:
    """What ``unit`` reads or writes outside of the memory of a block."""
    local = unit.local
    for step in unit.steps:
        for place in step.writes if writes else step.reads:
            if place.location is not None and place.location.buffer not in local:
                yield place


def _extent(place: Place) -> tuple[Buffer, int, int]:
    """The buffer of ``place``, and its first and last byte in it (exclusive)."""
    location = place.location
    assert location is not None
    item = place.aval.dtype.itemsize
    low, high = location.ends(place.aval.shape, item)
    return location.buffer, location.offset + low, location.offset + high + item
