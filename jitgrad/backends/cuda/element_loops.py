"""Statements over the elements of a row, or of a flat loop, of which a thread takes one or a vector
at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jitgrad.backends.codegen.scalar import accumulated, cast, typed
from jitgrad.backends.codegen.statements import (
    Body,
    as_stored,
    as_value,
    fold_statement,
    in_sum_blocks,
    initial,
    lane_dtype,
    lane_name,
    total_name,
)
from jitgrad.backends.cuda.grid_writer import GridWriter
from jitgrad.backends.cuda.schedule import VECTOR_BYTES, CudaSchedule
from jitgrad.compiler.lowering.kernel_ir import Access, Accumulate, AccumulatorScope, Kernel, Load, Statement, Store
from jitgrad.core.aval import Dtype, dtype_name

# Numbers that a thread adds in their own dtype before the sum goes to its float64 total.
SUM_RUN = 32
# Sums of float64 numbers in one kernel, beyond which they are added to their totals at once: a run takes two registers more.
MAX_SUMS_IN_RUNS = 16
_F64 = np.dtype(np.float64)


class Elements(Body):
    """Statements of one element, or of element ``u`` of a vector.

    Args:
        vectors: the registers that hold elements, and which of them is this one, by buffer.
        mask: a condition under which the element exists; "" if it always does.
    """

    def __init__(self, writer: ElementWriter, columns: Sequence[str], vectors: Mapping[str, tuple[str, str]], mask: str) -> None:
        super().__init__(writer.out, writer.rows, columns, bool(writer.kernel.outer))
        self.writer = writer
        self.vectors = vectors
        self.mask = mask

    def place(self, access: Access) -> tuple[str, str]:
        if access.name in self.vectors:
            return self.vectors[access.name]
        return super().place(access)

    def accumulate(self, s: Accumulate) -> None:
        dtype = lane_dtype(s)
        value = accumulated(s, dtype)
        if self.mask:
            value = f"select({self.mask}, {value}, {initial(s.monoid, dtype)})"
        if s.where is AccumulatorScope.COLUMN:
            target, kept = self.writer.column_sum(s)
            total = fold_statement(s.monoid, dtype, as_value(target, kept), value, reorder=False)
            self.out.line(f"{target} = {as_stored(total, kept)}", s.note)
            return
        name = total_name(s) if s.name in self.writer.without_runs else lane_name(s)
        self.out.line(f"{name} = {fold_statement(s.monoid, dtype, name, value, reorder=False)}", s.note)


class ElementWriter(GridWriter):
    """Writes loops over elements, for forms that differ in what they loop over.

    Elements that a thread takes together are loaded and stored in one access where the addresses
    allow it, which the kernel checks.
    """

    stop = ""  # the number of elements, where the last vector may be shorter

    def __init__(self, kernel: Kernel, schedule: CudaSchedule) -> None:
        super().__init__(kernel, schedule)
        wide = [s.name for s in self.accumulators if in_sum_blocks(s) and lane_dtype(s) == _F64]
        self.without_runs: frozenset[str] = frozenset(wide if len(wide) > MAX_SUMS_IN_RUNS else ())

    def sums_in_runs(self, statements: Sequence[Statement]) -> list[Accumulate]:
        """The float sums among ``statements`` that are cut into runs."""
        sums = [s for s in statements if isinstance(s, Accumulate) and in_sum_blocks(s)]
        return [s for s in sums if s.name not in self.without_runs]

    def column_sum(self, s: Accumulate) -> tuple[str, Dtype]:
        """Where the thread accumulates what it has of a column, and the dtype there."""
        return f"{s.name}[j + u]" if self.vector > 1 else f"{s.name}[j]", s.result

    @property
    def vector(self) -> int:
        return self.schedule.vector

    @property
    def vectors(self) -> list[Access]:
        """The accesses whose elements a thread takes as vectors."""
        return [a for a in self.accesses if a.inner == ("1",)] if self.vector > 1 else []

    def first_register(self, access: Access) -> str:
        """The text of the first of the registers that hold a vector; "" for 0."""
        return ""

    def register(self, access: Access) -> tuple[str, str]:
        """The registers of element ``u`` of a vector, and which of them it is."""
        first = self.first_register(access)
        return f"{access.name}u", f"{first} + u" if first else "u"

    @property
    def aligned_vectors(self) -> list[Access]:
        """The accesses whose vectors are read or written in one access where memory allows it."""
        return self.vectors

    def open_vectors(self) -> None:
        """Registers for vectors."""
        for a in self.vectors:
            self.out.line(f"{a.name}u = scratch_{dtype_name(a.dtype)}({self.vector})")

    def check_alignment(self) -> None:
        """Write ``whole``: whether the vectors of a row start at multiples of their size."""
        if self.vectors:
            fits = [f"is_aligned({self.pointer(a)}, {self.bytes_of(a)})" for a in self.aligned_vectors]
            self.out.line(f"whole = {' and '.join(fits)}")

    def bytes_of(self, access: Access) -> int:
        return min(VECTOR_BYTES, access.dtype.itemsize * self.vector)

    def elements(self, statements: Sequence[Statement]) -> None:
        """The elements from ``j`` on that a thread takes at a time."""
        if self.vector == 1:
            self.column_position()
            place = Elements(self, self.columns, {}, "")
            for s in statements:
                place.statement(s)
            return
        names = {a.name: self.register(a) for a in self.vectors}
        whole = f"whole and j + {self.vector} <= {self.stop}" if self.stop else "whole"
        self.transfer(self.loaded(statements), whole, load=True)
        mask = f"j + u < {self.stop}" if self.stop else ""
        place = Elements(self, ("(j + u)",), names, mask)
        with self.out.block(f"for u in range({self.vector}):"):
            for s in statements:
                place.statement(s)
        self.transfer(self.stored(statements), whole, load=False)

    def loaded(self, statements: Sequence[Statement]) -> list[Access]:
        """What is read as vectors before the statements run."""
        names = {a.name for a in self.vectors}
        return list({s.access.name: s.access for s in statements if isinstance(s, Load) and s.access.name in names}.values())

    def stored(self, statements: Sequence[Statement]) -> list[Access]:
        """What is written as vectors after the statements."""
        names = {a.name for a in self.vectors}
        return list({s.access.name: s.access for s in statements if isinstance(s, Store) and s.access.name in names}.values())

    def transfer(self, accesses: Sequence[Access], whole: str, *, load: bool) -> None:
        """Copy vectors from memory to registers, or back."""
        if not accesses:
            return
        out = self.out
        with out.block(f"if {whole}:"):
            for a in accesses:
                self.copy(a, load=load)
        with out.block("else:"), out.block(f"for u in range({self.vector}):"):
            if load:
                at = f"min(j + u, {self.stop} - 1)" if self.stop else "j + u"
                for a in accesses:
                    name, place = self.register(a)
                    out.line(f"{name}[{place}] = {self.pointer(a)}[{at}]")
            elif self.stop:
                with out.block(f"if j + u < {self.stop}:"):
                    self.store_one_by_one(accesses)
            else:
                self.store_one_by_one(accesses)

    def store_one_by_one(self, accesses: Sequence[Access]) -> None:
        for a in accesses:
            name, place = self.register(a)
            self.out.line(f"{self.pointer(a)}[j + u] = {name}[{place}]")

    def copy(self, access: Access, *, load: bool) -> None:
        """One vector, in several accesses if one cannot hold it."""
        count = VECTOR_BYTES // access.dtype.itemsize if access.dtype.itemsize * self.vector > VECTOR_BYTES else self.vector
        for first in range(0, self.vector, count):
            more = f" + {first}" if first else ""
            memory = f"at({self.pointer(access)}, j{more})"
            place = " + ".join(filter(None, (self.first_register(access), str(first or ""))))
            register = f"at({access.name}u, {place})" if place else f"{access.name}u"
            to, source = (register, memory) if load else (memory, register)
            self.out.line(f"copy_vector({to}, {source}, {count})")

    def sum_loop(self, statements: Sequence[Statement], first: str, last: str, step: int, runs: bool) -> None:
        """The loop of a thread over ``first + k * step`` up to ``last``.

        Float sums are cut into ``runs`` if a thread may take many elements.
        """
        out, sums = self.out, self.sums_in_runs(statements)
        if not sums:
            with out.block(f"for j in range({first}, {last}, {step}):"):
                self.elements(statements)
            return
        if not runs:
            self.run(statements, sums, first, last, step)
            return
        length = step * max(1, SUM_RUN // self.vector)
        with out.block(f"for b in range({first}, {last}, {length}):"):
            self.run(statements, sums, "b", f"min(b + {length}, {last})", step)

    def run(self, statements: Sequence[Statement], sums: Sequence[Accumulate], first: str, last: str, step: int) -> None:
        """One run of float sums: in the values' own dtype, then added to the float64 totals."""
        self.open_run(sums)
        with self.out.block(f"for j in range({first}, {last}, {step}):"):
            self.elements(statements)
        self.close_run(sums)

    def open_run(self, sums: Sequence[Accumulate]) -> None:
        for s in sums:
            self.out.line(f"{lane_name(s)} = {typed(0, lane_dtype(s))}")

    def close_run(self, sums: Sequence[Accumulate]) -> None:
        for s in sums:
            self.out.line(f"{total_name(s)} = {total_name(s)} + {cast(lane_name(s), lane_dtype(s), _F64)}")


def wide_dtype(s: Accumulate) -> Dtype:
    """The dtype in which the parts of a row's reduction are merged."""
    return _F64 if in_sum_blocks(s) else s.dtype
