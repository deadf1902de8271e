"""The loop IR: one kernel as typed scalar statements in sweeps over rows, independent of the
target.

A kernel runs over ``outer x inner`` axes. For every row (a point of the outer axes) it runs its
sweeps one after the other, each a loop over the inner axes; between them stand the row's own
statements. What is reduced over a row is a scalar in the next sweep. What is reduced over the rows
(or over everything) is accumulated per block of rows and merged by the kernel's epilogue, which
runs once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from jitgrad.core.aval import Dtype
from jitgrad.core.ir import TraceNode
from jitgrad.core.monoid import Monoid


class Scope(Enum):
    """Where in a kernel a value exists."""

    SCALAR = "one number"
    ROW = "one number per row"
    ELEMENT = "one number per element"
    EPILOGUE = "known when all blocks are done"


class AccumulatorScope(Enum):
    """How much one accumulator of a reduction covers."""

    ROW = "a row"
    BLOCK = "a block of rows or elements"
    COLUMN = "a column of a block of rows"


PER_BLOCK = ("block",)  # ``Access.outer`` of scratch memory: each block has a row of its own


class Segment(NamedTuple):
    """The positions of a loop before ``stop``, at which position ``first + step * k`` of an axis is read, ``k`` being that
    of the loop; or zeros. ``stop`` and ``first`` are numbers or names of parameters; ``single``: there is one position."""

    stop: str
    first: str
    step: int
    zeros: bool
    single: bool


@dataclass(frozen=True, slots=True)
class Access:
    """A buffer as the loops walk it.

    ``outer`` and ``inner`` hold, per axis, the name of the stride parameter (in elements), ``"1"``
    or ``"0"``; ``index`` marks an iota: no memory, the linear index itself is the value.

    ``segments`` hold, per outer and then per inner axis, what is read at other positions than those
    of the loop; () along axes where nothing is. ``interior`` is the number of the last axis's
    segment that `Kernel.interior` is in. ``shift`` is added to every index: accesses of one name
    that differ in it are interleaved.
    """

    name: str
    dtype: Dtype
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    index: bool = False
    base: str = ""  # iota: name of the parameter that is added
    segments: tuple[tuple[Segment, ...], ...] = ()
    interior: int = 0
    shift: int = 0

    def stays_along(self, inner: bool) -> bool:
        """Whether it is the same element all along the inner axes, or along the outer ones."""
        steps = self.inner if inner else self.outer
        count = len(self.outer)
        return set(steps) <= {"0"} and not any(self.segments[count:] if inner else self.segments[:count])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of parameters that it needs, among numbers."""
        ends = [text for own in self.segments for s in own for text in (s.stop, s.first)]
        return (self.name, *self.outer, *self.inner, *ends)


@dataclass(frozen=True, slots=True)
class Load:
    local: str
    access: Access
    note: str = ""


@dataclass(frozen=True, slots=True)
class Compute:
    """``local = op(*args)``; args are locals with their dtypes, or literals."""

    local: str
    node: TraceNode
    args: tuple[tuple[str | bool | int | float, Dtype], ...]


@dataclass(frozen=True, slots=True)
class Store:
    access: Access
    local: str
    dtype: Dtype
    note: str = ""


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Fold ``local`` into the accumulator ``name`` with ``monoid``."""

    name: str
    where: AccumulatorScope
    monoid: Monoid
    local: str | bool | int | float  # or a number
    local_dtype: Dtype
    dtype: Dtype  # of the accumulator
    result: Dtype  # of the reduction's result
    note: str
    partial: str = ""  # parameter that receives the block's partial result


Statement = Load | Compute | Store | Accumulate


def read_before_written(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """``statements`` of one scope, with stores over an input that is loaded further down moved
    behind that load."""
    last = {s.access.name: k for k, s in enumerate(statements) if isinstance(s, Load)}
    waiting: dict[int, list[Statement]] = {}
    found: list[Statement] = []
    for k, s in enumerate(statements):
        if isinstance(s, Store) and last.get(s.access.name, k) > k:
            waiting.setdefault(last[s.access.name], []).append(s)
        else:
            found += [s, *waiting.pop(k, ())]
    return tuple(found)


def overwritten(statements: Iterable[Statement]) -> frozenset[str]:
    """Names of the buffers that ``statements``, of one loop, both read and write."""
    names: tuple[set[str], set[str]] = set(), set()
    for s in statements:
        if isinstance(s, (Load, Store)):
            names[isinstance(s, Store)].add(s.access.name)
    return frozenset(names[0] & names[1])


@dataclass(frozen=True, slots=True)
class Sweep:
    """Row statements, then a loop over the inner axes (none if ``body`` is empty)."""

    before: tuple[Statement, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """One word of the argument table: ``kind`` is a dtype name, with ``*`` for a pointer."""

    name: str
    kind: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What runs once after all blocks: merge the partial results, then scalar and column
    statements."""

    params: tuple[KernelParameter, ...]
    merges: tuple[Accumulate, ...]
    scalars: tuple[Statement, ...]
    columns: tuple[Statement, ...]
    inner: str  # name of the size parameter of a column


@dataclass(frozen=True, slots=True)
class Kernel:
    """One fused group, lowered. Two kernels with the same text are the same kernel.

    ``has_edges``: along the last inner axis an operand goes on elsewhere, or is zeros in some rows;
    ``interior`` is the part of the axis, if any is worth a loop, in which each operand is read in
    one segment of a row that is not zeros.
    """

    name: str
    params: tuple[KernelParameter, ...]
    outer: tuple[str, ...]  # names of the size parameters; empty: a flat loop over blocks of ``inner[0]``
    inner: tuple[str, ...]
    prologue: tuple[Statement, ...]
    sweeps: tuple[Sweep, ...]
    epilogue: Epilogue | None
    ops: tuple[str, ...] = ()
    interior: tuple[str, str] | None = None
    has_edges: bool = False

    @property
    def statements(self) -> list[Statement]:
        """Those of all scopes."""
        statements = [*self.prologue, *(s for sweep in self.sweeps for s in (*sweep.before, *sweep.body))]
        return statements if self.epilogue is None else [*statements, *self.epilogue.scalars, *self.epilogue.columns]


class KernelForm(Enum):
    """How a kernel's loops run over its rows; without rows there is one loop over elements."""

    ROWS = "rows"  # row by row, each sweep a loop over the row's elements
    SHORT_ROWS = "short rows"  # many rows at a time, transposed so that each is a lane of vectors
    VECTORIZED_ROWS = "vectorized rows"  # rows run across memory: neighbouring rows are the lanes of vectors
    PACKED_ROWS = "packed rows"  # the same where few rows are neighbours: several such groups fill the lanes
    TILED_TRANSPOSE = "tiled transpose"  # operands whose rows run across memory are transposed tile by tile


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a target runs one kernel: everything that depends on the machine, and nothing of what is
    computed.

    Attributes:
        iterations: rows, or elements without rows. They are cut into blocks of ``block_size``,
            which threads share.
        transposed: names of the operands that form TILED_TRANSPOSE transposes.
        nontemporal: names of the results that are stored past the caches.
        row_vectors: of an iteration of the loops over a row; None leaves that to the code generator.
        interleaves: whether operands that lie between each other's elements are read and written as one array.
        together: rows that go through all sweeps together, for each of which a block has scratch; 1 where such rows are
            too long for that.
    """

    form: KernelForm
    iterations: int
    block_size: int
    transposed: tuple[str, ...] = ()
    nontemporal: frozenset[str] = frozenset()
    row_vectors: int | None = None
    interleaves: bool = False
    together: int = 1

    @property
    def blocks(self) -> int:
        return max(1, -(-self.iterations // self.block_size))

    @property
    def keeps_rows(self) -> bool:
        """Whether sweeps may leave values for each other in scratch."""
        return self.together > 1 or self.form not in (KernelForm.VECTORIZED_ROWS, KernelForm.PACKED_ROWS)
