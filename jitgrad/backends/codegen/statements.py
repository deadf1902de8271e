"""Statements of the loop IR as lines of kernel text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from jitgrad.backends.codegen.offsets import (
    NO_END,
    Part,
    all_of,
    in_segment,
    inside,
    masked_text,
    position_text,
    single_positions,
)
from jitgrad.backends.codegen.scalar import accumulated, render, typed
from jitgrad.backends.codegen.source import Emitter
from jitgrad.compiler.lowering.kernel_ir import (
    PER_BLOCK,
    Access,
    Accumulate,
    AccumulatorScope,
    Compute,
    Load,
    Segment,
    Statement,
    Store,
)
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.monoid import Monoid
from jitgrad.eager.float16 import HALF


def initial(monoid: Monoid, dtype: Dtype) -> str:
    """The neutral element of ``monoid`` as text."""
    return typed(monoid.for_dtype(dtype).neutral(dtype), dtype)


def fold_statement(monoid: Monoid, dtype: Dtype, accumulator: str, value: str, *, reorder: bool = True) -> str:
    """``accumulator`` combined with ``value``; ``reorder`` lets floats run in vector lanes."""
    monoid = monoid.for_dtype(dtype)
    if not monoid.on_floats or dtype.kind == "f":
        text = monoid.on_floats if monoid.on_floats and reorder else monoid.combine
        return text.format(a=accumulator, x=value)
    return f"to_{dtype_name(dtype)}({monoid.combine.format(a=accumulator, x=value)})"  # integers wrap around


def index(strides: Sequence[str], variables: Sequence[str]) -> str:
    """The text of a linear element index, ``""`` for zero."""
    if set(strides) <= {"0"}:
        return ""
    terms = [v if s == "1" else f"{v} * {s}" for s, v in zip(strides, variables, strict=True) if s != "0"]
    return " + ".join(terms)


def outer_index(access: Access, rows: Sequence[str]) -> str:
    """The text of the index of a row's first element, ``""`` for zero."""
    if not access.segments:
        return index(access.outer, rows)
    own = zip(access.segments, rows, strict=False)
    return index(access.outer, [position_text(segments, v) if segments else v for segments, v in own])


def outer_inside(access: Access, rows: Sequence[str]) -> str:
    """1 for the rows of ``access`` that are not zeros, as text; "" if none is."""
    own = zip(access.segments[: len(access.outer)], rows, strict=False)
    return all_of(inside(segments, v) for segments, v in own if segments)


def as_value(text: str, dtype: Dtype) -> str:
    """The value of ``text``, an element in memory, where a bool is a byte and a float16 its
    bits."""
    if dtype == HALF:
        return f"as_half({text})"
    return f"to_bool({text})" if dtype.kind == "b" else text


def as_stored(local: str, dtype: Dtype) -> str:
    """``local`` as it is written to memory of ``dtype``."""
    return f"as_bits({local})" if dtype == HALF else local


class Body:
    """Writes statements inside given loops, whose variables it knows."""

    def __init__(
        self,
        out: Emitter,
        rows: Sequence[str],
        columns: Sequence[str],
        row_pointers: bool,
        overwritten: Collection[str] = (),
        nontemporal: Collection[str] = (),
        part: Part = Part.ANYWHERE,
    ) -> None:
        self.out = out
        self.overwritten = overwritten  # buffers that the loop both reads and writes
        self.nontemporal = nontemporal  # buffers that are stored past the caches
        self.rows = rows
        self.columns = columns
        self.row_pointers = row_pointers
        self.part = part

    def place(self, access: Access) -> tuple[str, str]:
        """The pointer and the index of the element of ``access``."""
        if access.segments:
            return self._place_at_offset(access)
        inner = index(access.inner, self.columns) if self.columns else ""
        if access.shift:
            inner = f"{inner} + {access.shift}"
        if self.row_pointers and (access.outer != () and set(access.outer) != {"0"}) and self.columns:
            return f"{access.name}r", inner or "0"
        outer = index(access.outer, self.rows) if access.outer and access.outer != PER_BLOCK else ""
        return access.name, " + ".join(t for t in (outer, inner) if t) or "0"

    def _place_at_offset(self, access: Access) -> tuple[str, str]:
        """`place` for an access whose positions are not those of the loops."""
        inner = access.segments[len(access.outer) :]
        found = [position_text(own, v) if own else v for own, v in zip(inner, self.columns, strict=False)]
        if self.part is Part.INTERIOR and inner[-1]:
            found[-1] = in_segment(inner[-1][access.interior], self.columns[-1])
        return self._with_last(access, found)

    def _with_last(self, access: Access, columns: Sequence[str]) -> tuple[str, str]:
        """The pointer and the index of the element at these positions of the inner axes."""
        inner = index(access.inner, columns) if self.columns else ""
        if self.row_pointers and self.columns:
            return f"{access.name}r", inner or "0"
        outer = outer_index(access, self.rows) if self.rows else ""
        return access.name, " + ".join(t for t in (outer, inner) if t) or "0"

    def _condition(self, access: Access) -> str:
        """Where ``access`` reads memory and no zeros, as a product of numbers; "" for everywhere the loop runs."""
        inner = list(access.segments[len(access.outer) :]) if self.columns else []
        if self.part is Part.ANYWHERE:
            rows = outer_inside(access, self.rows) if self.rows else ""
            return all_of([rows, *[inside(own, v) for own, v in zip(inner, self.columns, strict=False) if own]])
        rows = self.row_flag(access) if self.part is Part.ROW else ""
        return all_of([rows, *[inside(own, v) for own, v in zip(inner[:-1], self.columns, strict=False) if own]])

    def _value_at_offset(self, access: Access) -> str:
        """`value` for an access whose positions are not those of the loops."""
        zero, last = typed(0, access.dtype), access.segments[-1] if self.columns else ()
        if self.part is Part.INTERIOR and last and last[access.interior].zeros:
            return zero
        if self.part is Part.ROW and last or self.part is Part.EDGES and (last or self.row_flag(access)):
            segments = last or (Segment(NO_END, "0", 1, False, False),)
            text = masked_text(segments, self.columns[-1], partial(self._masked_load, access), f"{access.name}l", zero)
        else:
            text = as_value(self.address(access), access.dtype)
        condition = self._condition(access)
        return f"select(({condition}) > 0, {text}, {zero})" if condition else text

    def row_flag(self, access: Access) -> str:
        """The name of the variable that is 0 in rows in which ``access`` reads zeros; "" if there is none."""
        return f"{access.name}z" if self.row_pointers and outer_inside(access, self.rows) else ""

    def _masked_load(self, access: Access, position: str, low: str, high: str) -> str:
        pointer, at = self._with_last(access, [*self._but_last(access), position])
        flag = self.row_flag(access)
        if flag and self.part is Part.EDGES:
            high = f"select({flag} > 0, {high}, 0)"  # a number of the row: a select of vectors by one bit is a branch
        return as_value(f"load_between({pointer}, {at}, {self.columns[-1]}, {low}, {high})", access.dtype)

    def _but_last(self, access: Access) -> list[str]:
        inner = access.segments[len(access.outer) : -1]
        return [position_text(own, v) if own else v for own, v in zip(inner, self.columns, strict=False)]

    def load_single(self, access: Access) -> None:
        """Load the elements at the edges of the last axis that each serve one segment of ``access``."""
        for k, text in single_positions(access.segments[-1]):
            pointer, at = self._with_last(access, [*self._but_last(access), text])
            loaded = as_value(f"{pointer}[{at}]", access.dtype)
            flag = self.row_flag(access)
            value = f"select({flag} > 0, {loaded}, {typed(0, access.dtype)})" if flag else loaded
            self.out.line(f"{access.name}l{k} = {value}")

    def address(self, access: Access) -> str:
        pointer, at = self.place(access)
        return f"{pointer}[{at}]"

    def value(self, access: Access) -> str:
        if access.index:
            terms = [index(access.outer, self.rows) if self.rows else "", index(access.inner, self.columns)]
            return f"to_{dtype_name(access.dtype)}({' + '.join(t for t in terms if t) or 0})"
        if access.segments:
            return self._value_at_offset(access)
        text = self.address(access)
        if access.name in self.overwritten:
            text = f"freeze({text})"
        return as_value(text, access.dtype)

    def statement(self, s: Statement) -> None:
        if isinstance(s, Load):
            self.out.line(f"{s.local} = {self.value(s.access)}", s.note)
        elif isinstance(s, Compute):
            self.out.line(f"{s.local} = {render(s.node, s.args)}", f"{s.node.op}  {s.node.origin}".rstrip())
        elif isinstance(s, Store):
            (pointer, at), value = self.place(s.access), as_stored(s.local, s.access.dtype)
            past = s.access.name in self.nontemporal
            self.out.line(f"stream({pointer}, {at}, {value})" if past else f"{pointer}[{at}] = {value}", s.note)
        else:
            self.accumulate(s)

    def accumulate(self, s: Accumulate) -> None:
        dtype = lane_dtype(s)
        value = accumulated(s, dtype)
        if s.where is AccumulatorScope.COLUMN:
            target = f"{s.name}[{index(dense(s, len(self.columns)), self.columns)}]"
            self.out.line(f"{target} = {fold_statement(s.monoid, dtype, target, value, reorder=False)}", s.note)
        elif self.columns:
            name = lane_name(s)
            self.out.line(f"{name} = {fold_statement(s.monoid, dtype, name, value)}", s.note)
        else:
            value = accumulated(s, s.dtype)
            self.out.line(f"{s.name} = {fold_statement(s.monoid, s.dtype, s.name, value, reorder=False)}", s.note)


def dense(s: Accumulate, rank: int) -> tuple[str, ...]:
    """Stride parameters of a row of partial results."""
    return (*(f"w{k}" for k in range(rank - 1)), "1")


def in_sum_blocks(s: Statement) -> bool:
    """Whether ``s`` is a float sum over the inner loop, which is cut into sum blocks."""
    return isinstance(s, Accumulate) and s.where is not AccumulatorScope.COLUMN and s.monoid.in_f64 and s.result.kind == "f"


def lane_name(s: Accumulate) -> str:
    return f"{s.name}b" if in_sum_blocks(s) else s.name


def total_name(s: Accumulate) -> str:
    """The float64 total of a row's sum blocks; it has a name of its own, since each name has one
    dtype."""
    return f"{s.name}s" if in_sum_blocks(s) and s.where is AccumulatorScope.ROW else s.name


def lane_dtype(s: Accumulate) -> Dtype:
    return s.result if s.where is not AccumulatorScope.BLOCK or in_sum_blocks(s) else s.dtype


def row_variables(sizes: Sequence[str]) -> tuple[str, ...]:
    """Names for the position of a row along outer axes of these sizes."""
    return tuple(f"o{k}" for k in range(len(sizes))) if len(sizes) > 1 else ("r",)


def positions(out: Emitter, rest: str, sizes: Sequence[str]) -> None:
    """Write ``o0``, ``o1``, ... for the row whose number is in the variable ``rest``, which is used
    up."""
    for k in range(len(sizes) - 1, 0, -1):
        out.line(f"o{k} = {rest} % {sizes[k]}")
        out.line(f"{rest} = {rest} // {sizes[k]}")
    out.line(f"o0 = {rest}")
