"""Runs a plan on paper in limited memory: what is dropped when memory is short is computed again before its next use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf

from jitgrad.compiler.lowering.layout import Buffer, BufferRole
from jitgrad.compiler.recompute.units import Model, Unit, written_by

_MAX_REPEATS = 8  # times as many runs of units as a plan has: beyond that, there is too little memory
_MAX_CONE = 64  # units that a value is made of, of which an estimate of its cost counts so many


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of the unit with the number ``unit``, on other buffers where ``buffers`` says so.

    ``again``: it has run before.
    """

    unit: int
    buffers: Mapping[Buffer, Buffer]
    again: bool


class NoRoom(Exception):
    """Some unit cannot run in the memory given."""


def simulate(model: Model, limit: int) -> list[Execution]:
    """The runs of the units of ``model`` with at most ``limit`` bytes of temporaries at a time.

    What is needed is computed again from what there is, and that from what it needs in turn. If memory is short, the value
    goes for which the cost of computing it again, divided by its size and by the time until it is needed, is least. The cost
    includes that of other dropped values that it needs. This spreads what is kept over a chain, with some ``sqrt(n)`` of
    ``n`` values for a second run of most units (M. Kirisame et al., "Dynamic tensor rematerialization", 2021, section 3;
    here the time until the next use is known).

    Raises:
        NoRoom: if some unit and what it needs take more, or too much would be computed again.
    """
    return _Simulation(model, limit).run()


class _Simulation:
    def __init__(self, model: Model, limit: int) -> None:
        self.model, self.limit = model, limit
        self.present: dict[Buffer, Buffer] = {}  # temporaries in memory, and the buffer in which each is now
        self.used = 0
        self.now = 0  # the number of the unit that runs, or for which others run again
        self.pinned: set[Buffer] = set()
        self.runs: list[Execution] = []
        self._heap: list[tuple[float, int, Buffer]] = []  # of values that may go; scores may be out of date
        self._entries: dict[Buffer, int] = {}  # the number of the valid entry
        self._numbers = count()
        self._repeats = 0

    def run(self) -> list[Execution]:
        for k, unit in enumerate(self.model.units):
            self.now = k
            self.pinned = {*unit.reads, *unit.writes}
            missing = [b for b in unit.reads if b not in self.present]
            if missing:
                self._compute_again(missing)
            self.pinned = {*unit.reads, *unit.writes}
            self._take(unit.scratch, [b for b in unit.writes if b not in self.present])
            self._emit(k, {}, again=False)
            self.used -= unit.scratch
            self.pinned = set()
            self._release(dict.fromkeys((*unit.reads, *unit.writes)), k)
        return self.runs

    # --- memory ---------------------------------------------------------------------------------------------------

    def _take(self, scratch: int, new: Iterable[Buffer], again: bool = False) -> None:
        """Make room for ``scratch`` bytes and for the temporaries ``new``."""
        added = {b: Buffer(b.role, b.nbytes, b.label) if again else b for b in new}
        size = scratch + sum(self.model.temporaries[b].size for b in added)
        while self.used + size > self.limit:
            self._drop(self._cheapest())
        self.present.update(added)
        self.used += size

    def _drop(self, buffer: Buffer) -> None:
        del self.present[buffer]
        self.used -= self.model.temporaries[buffer].size

    def _release(self, buffers: Iterable[Buffer], after: int) -> None:
        """Drop those of ``buffers`` that no unit after ``after`` touches; the others may go if memory is short."""
        for buffer in buffers:
            temporary = self.model.temporaries[buffer]
            if buffer not in self.present or buffer in self.pinned:
                continue
            if temporary.last <= after:
                self._drop(buffer)
            elif temporary.writers[-1] <= after and temporary.next_use(after) <= temporary.until:
                self._push(buffer)
            else:
                self._entries.pop(buffer, None)

    def _push(self, buffer: Buffer) -> None:
        number = self._entries[buffer] = next(self._numbers)
        heappush(self._heap, (self._score(buffer), number, buffer))

    def _cheapest(self) -> Buffer:
        """The value to drop."""
        passed = []
        try:
            while self._heap:
                _, number, buffer = heappop(self._heap)
                if buffer not in self.present or self._entries.get(buffer) != number:
                    continue
                if buffer in self.pinned:
                    passed.append(buffer)
                    continue
                score = self._score(buffer)
                if not self._heap or score <= self._heap[0][0]:
                    return buffer
                heappush(self._heap, (score, number, buffer))
        finally:
            for buffer in passed:
                self._push(buffer)
        raise NoRoom

    def _score(self, buffer: Buffer) -> float:
        temporary = self.model.temporaries[buffer]
        wait = temporary.next_use(self.now) - self.now
        return sum(self.model.units[k].cost for k in self._cone([buffer], _MAX_CONE)) / (temporary.size * max(1.0, wait))

    # --- computing again ------------------------------------------------------------------------------------------

    def _cone(self, targets: Iterable[Buffer], most: float = inf) -> set[int]:
        """The numbers of the units that compute ``targets`` from what is present; at most some ``most`` of them."""
        cone: set[int] = set()
        waiting = list(targets)
        while waiting and len(cone) < most:
            for k in self.model.temporaries[waiting.pop()].writers:
                if k not in cone:
                    cone.add(k)
                    waiting += [b for b in self.model.units[k].reads if b not in self.present]
        return cone

    def _compute_again(self, targets: Sequence[Buffer]) -> None:
        """Run the units again that compute ``targets``, in their order."""
        order = sorted(self._cone(targets))
        self._repeats += len(order)
        if self._repeats > _MAX_REPEATS * len(self.model.units):
            raise NoRoom
        last = {b: i for i, k in enumerate(order) for b in self.model.units[k].reads}
        last.update(dict.fromkeys(self.pinned, len(order)))
        wanted = {b for b in last if b not in self.present}
        self.pinned = set(last)
        for i, k in enumerate(order):
            unit = self.model.units[k]
            self._repeat(k, wanted)
            self.pinned -= {b for b in unit.reads if last[b] == i}
            self._release(dict.fromkeys((*unit.reads, *unit.writes)), self.now - 1)

    def _repeat(self, k: int, wanted: Collection[Buffer]) -> None:
        """Run unit ``k`` again: values that are there already, and those that nobody needs, get memory for this run alone."""
        unit, temporaries = self.model.units[k], self.model.temporaries
        first = [b for b in unit.writes if b not in self.present and self._is_wanted(b, wanted)]
        own = {b for b in unit.writes if b in wanted and temporaries[b].writers[0] < k} | set(first)
        others = [b for b in unit.writes if b not in own]
        extra = unit.scratch + unit.spare + sum(temporaries[b].size for b in others)
        self._take(extra, first, again=True)
        apart = [b for b in _memory_of_its_own(unit) if b not in own]
        self._emit(k, {b: Buffer(b.role, b.nbytes, b.label) for b in apart}, again=True)
        self.used -= extra

    def _is_wanted(self, buffer: Buffer, wanted: Collection[Buffer]) -> bool:
        temporary = self.model.temporaries[buffer]
        return buffer in wanted or (len(temporary.writers) == 1 and temporary.next_use(self.now - 1) < inf)

    def _emit(self, k: int, apart: Mapping[Buffer, Buffer], again: bool) -> None:
        unit = self.model.units[k]
        buffers = {b: new for b in (*unit.reads, *unit.writes) if (new := self.present.get(b, b)) is not b}
        self.runs.append(Execution(k, {**buffers, **apart}, again))


def _memory_of_its_own(unit: Unit) -> list[Buffer]:
    """What another run of ``unit`` must not share with the first: all that it writes, and its blocks."""
    written = [b for step in unit.steps for b in written_by(step) if b.role is BufferRole.TEMPORARY]
    return list(dict.fromkeys([*written, *unit.local]))
