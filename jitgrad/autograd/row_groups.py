"""Finds the recorded steps that one pass over rows can compute: see `jitgrad.eager.row_programs`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jitgrad.autograd.applied_op import AppliedOp
from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.monoid import SUM_MONOID
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.float16 import rounds_once
from jitgrad.eager.large_arrays import LARGE_ELEMENTS
from jitgrad.eager.loops import NUMPY_LOOPS
from jitgrad.eager.row_programs import FLOATS, MONOIDS, RowProgram, RowScope, RowStep, RowValue
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.operand import is_number

_FEWEST = 3  # steps without a reduction that are worth a call of their own
_MOST = 48  # operands and results of a call
_BOOL = np.dtype(np.bool_)


@dataclass(slots=True)
class RowGroup:
    """Steps that one call computes: their operands and results as tensors, and the numbers that follow the operands."""

    size: tuple[int, int]
    program: RowProgram
    operands: list[Tensor]
    numbers: list[np.ndarray[Any, Any]]
    results: list[Tensor]


class _Frame(NamedTuple):
    """The shape of arrays whose rows are along the last axis; of one row in a call if it has one axis."""

    shape: Shape

    @property
    def rows(self) -> tuple[Shape, ...]:
        """The shapes of a number for each row."""
        return (self.shape[:-1], (*self.shape[:-1], 1)) if len(self.shape) > 1 else ()

    def scope(self, shape: Shape, out: Shape) -> RowScope | None:
        """What an operand of ``shape`` has an element for, beside a result of shape ``out``."""
        if math.prod(shape) == 1:
            return RowScope.NUMBER
        if out != self.shape:
            return RowScope.ROW if shape == out and out in self.rows else None
        if shape == out:
            return RowScope.ELEMENT
        if shape in self.rows[1:]:
            return RowScope.ROW
        columns = shape[-1:] == self.shape[-1:] and math.prod(shape) == shape[-1]
        return RowScope.COLUMN if columns and self.rows else None


def _frame(steps: Sequence[AppliedOp]) -> _Frame | None:
    """That of the first reduction of rows or columns, or the most common one of elementwise ops."""
    for step in steps:
        if step.op.kind is Kind.REDUCE and step.op.monoid in MONOIDS:
            shape, axis = step.avals[0].shape, step.attrs["axis"]
            if _has_rows(shape) and axis in ((len(shape) - 1,), tuple(range(len(shape) - 1))):
                return _Frame(shape)
    shapes = Counter([step.out.aval.shape for step in steps if step.op.kind is Kind.ELEMENTWISE])
    if not shapes:
        return None
    shape = max(shapes, key=lambda s: (shapes[s], math.prod(s)))
    return _Frame(shape) if _has_rows(shape) or (len(shape) == 1 and shape[0] > 1) else None


def _has_rows(shape: Shape) -> bool:
    return len(shape) > 1 and shape[-1] > 1 and math.prod(shape[:-1]) > 1


def _rounds_alike(op: OpDef, dtypes: Sequence[Dtype], out: Dtype, elements: int) -> bool:
    """Whether machine code of ``op`` has the bits of NumPy's functions."""
    if any(d not in FLOATS and d != _BOOL for d in (*dtypes, out)):
        return False
    if op.name in NUMPY_LOOPS:
        return dtypes[0] == out != _BOOL
    if op.scalar is None or op.function is not None:
        return False
    many_passes = getattr(op.eager, "takes_many_passes", False) and elements >= LARGE_ELEMENTS
    return (op.one_loop is True and not many_passes) or rounds_once(op.scalar)


@dataclass(slots=True)
class _Draft:
    """A group under construction: its values are numbered as they come, operands among them."""

    values: list[RowValue] = field(default_factory=list)
    operands: dict[tuple[int, RowScope], tuple[int, Tensor]] = field(default_factory=dict)
    numbers: list[tuple[int, np.ndarray[Any, Any]]] = field(default_factory=list)
    made: dict[int, int] = field(default_factory=dict)  # by the ids of results of steps
    applied: list[AppliedOp] = field(default_factory=list)
    steps: list[RowStep] = field(default_factory=list)

    def new(self, scope: RowScope, dtype: Dtype) -> int:
        self.values.append(RowValue(scope, dtype))
        return len(self.values) - 1

    def operand(self, x: Tensor, scope: RowScope) -> int:
        """The number of the operand ``x``."""
        key = id(x._data), scope
        if key not in self.operands:
            self.operands[key] = self.new(scope, x.aval.dtype), x
        return self.operands[key][0]


class _Grouping:
    """Puts steps into groups one after the other. A step that cannot be in a group comes before or after all of one.

    ``levels`` has, by the ids of results, the group that the step is in, or before which it is computed.
    """

    def __init__(self, steps: Sequence[AppliedOp], frame: _Frame, refused: Collection[int]) -> None:
        self.frame = frame
        self.refused = refused  # the ids of results of steps that are to be alone
        self.levels: dict[int, int] = {}
        self.drafts: dict[int, _Draft] = {}
        self.alone: dict[int, list[AppliedOp]] = {}
        self.sources: dict[int, Tensor] = {}  # by the ids of results that are other tensors in another shape
        self.scopes: dict[int, RowScope] = {}  # of these sources
        for step in steps:
            self._add(step)

    def _add(self, step: AppliedOp) -> None:
        read = [id(x._data) for x in step.operands if isinstance(x, Tensor)]
        roles = None if id(step.out._data) in self.refused else self._roles(step)
        if roles is None:
            self._follow(step)
            level = max([self.levels.get(x, 0) + self._in_group(x) for x in read], default=0)
            self.alone.setdefault(level, []).append(step)
            self.levels[id(step.out._data)] = level
            return
        sources = [x if is_number(x) else self.sources.get(id(x._data), x) for x in step.operands]
        level = max([self.levels.get(id(x._data), 0) for x in sources if isinstance(x, Tensor)], default=0)
        while not self._fits(level, sources, roles):
            level += 1
        self._append(level, step, sources, roles)

    def _in_group(self, x: int) -> bool:
        return any(x in draft.made for draft in self.drafts.values())

    def _roles(self, step: AppliedOp) -> list[RowScope] | None:
        """What the operands of ``step`` have elements for, or None if it cannot be in a group."""
        out = step.out.aval
        if step.op.kind is Kind.REDUCE:
            shape, axis = step.avals[0].shape, step.attrs["axis"]
            if shape != self.frame.shape or not _has_rows(shape) or not step.avals[0].dtype == out.dtype in FLOATS:
                return None
            rows = axis == (len(shape) - 1,) and step.op.monoid in MONOIDS
            columns = axis == tuple(range(len(shape) - 1)) and step.op.monoid is SUM_MONOID
            scope = self._scope(step.operands[0], shape)
            return [scope] if (rows or columns) and scope is RowScope.ELEMENT else None
        if step.op.kind is not Kind.ELEMENTWISE or step.attrs or step.op is STOP_GRADIENT or out.weak:
            return None
        dtypes = step.op.dtypes(step.avals)[0]
        given = zip(step.operands, step.avals, dtypes, strict=True)
        if not all(is_number(x) or (a.dtype == d and not a.weak) for x, a, d in given):
            return None
        if not _rounds_alike(step.op, dtypes, out.dtype, math.prod(out.shape)):
            return None
        roles = [self._scope(x, out.shape) for x in step.operands]
        has_elements = out.shape == self.frame.shape or out.shape in self.frame.rows
        return roles if has_elements and None not in roles else None  # type: ignore[return-value]

    def _scope(self, x: Any, out: Shape) -> RowScope | None:
        if is_number(x):
            return RowScope.NUMBER
        if x.aval.shape == out == self.frame.shape and id(x._data) in self.scopes:
            return self.scopes[id(x._data)]
        return self.frame.scope(x.aval.shape, out)

    def _follow(self, step: AppliedOp) -> None:
        """Remember the source of a result that is ``step``'s operand in another shape."""
        if step.op is not STOP_GRADIENT and not (step.op.kind is Kind.MOVEMENT and (step.op.renames or step.op.keeps_order)):
            return
        x, out = step.operands[0], step.out
        if not isinstance(x, Tensor) or x.aval.weak:
            return
        shape, rows = x.aval.shape, self.frame.rows
        if step.op is STOP_GRADIENT or out.aval.shape == shape or (shape in rows and out.aval.shape in rows):
            if id(x._data) in self.scopes:
                self.scopes[id(out._data)] = self.scopes[id(x._data)]
        elif out.aval.shape == self.frame.shape and step.op.name == "broadcast_to":
            scope = self.frame.scope(shape, out.aval.shape)
            if scope is None:
                return
            self.scopes[id(out._data)] = scope
        elif math.prod(shape) != 1 or math.prod(out.aval.shape) != 1:
            return
        self.sources[id(out._data)] = self.sources.get(id(x._data), x)

    def _fits(self, level: int, sources: Sequence[Any], roles: Sequence[RowScope]) -> bool:
        draft = self.drafts.get(level)
        if draft is None:
            return True
        if len(draft.operands) + len(draft.numbers) + len(draft.made) > _MOST:
            return False
        for x, role in zip(sources, roles, strict=True):
            k = draft.made.get(id(x._data)) if isinstance(x, Tensor) else None
            if k is not None and (draft.values[k].scope is not role or role is RowScope.COLUMN):
                return False
        return True

    def _append(self, level: int, step: AppliedOp, sources: Sequence[Any], roles: Sequence[RowScope]) -> None:
        draft = self.drafts.setdefault(level, _Draft())
        dtypes = step.op.dtypes(step.avals)[0] if step.op.kind is Kind.ELEMENTWISE else [step.out.aval.dtype]
        operands = []
        for x, role, dtype in zip(sources, roles, dtypes, strict=True):
            if is_number(x):
                operands.append(draft.new(RowScope.NUMBER, dtype))
                draft.numbers.append((operands[-1], np.asarray(x, dtype)))
            else:
                k = draft.made.get(id(x._data))
                operands.append(draft.operand(x, role) if k is None else k)
        out = draft.new(self._scope_of_result(step), step.out.aval.dtype)
        draft.made[id(step.out._data)] = out
        draft.steps.append(RowStep(step.op, tuple(operands), out))
        draft.applied.append(step)
        self.levels[id(step.out._data)] = level

    def _scope_of_result(self, step: AppliedOp) -> RowScope:
        if step.op.kind is Kind.REDUCE:
            return RowScope.ROW if step.attrs["axis"] == (len(self.frame.shape) - 1,) else RowScope.COLUMN
        return RowScope.ELEMENT if step.out.aval.shape == self.frame.shape else RowScope.ROW


def grouped(steps: Sequence[AppliedOp], wanted: Collection[int], fewest: int = _FEWEST) -> list[AppliedOp | RowGroup]:
    """``steps`` in an order in which they can be computed, some of them in groups.

    ``wanted`` are the ids of results that are read elsewhere. A group has no results that nothing outside of it reads, and
    ``fewest`` steps if it has no reduction.
    """
    frame = _frame(steps)
    if frame is None:
        return [*steps]
    refused: set[int] = set()
    while True:
        grouping = _Grouping(steps, frame, refused)
        small = [draft for draft in grouping.drafts.values() if not _is_worth_it(draft, fewest)]
        if not small:
            break
        refused.update([id(step.out._data) for draft in small for step in draft.applied])
    items: list[AppliedOp | _Draft] = []
    for level in range(max([*grouping.drafts, *grouping.alone], default=-1) + 1):
        items += grouping.alone.get(level, [])
        if level in grouping.drafts:
            items.append(grouping.drafts[level])
    return _without_unread(items, wanted, frame)


def _is_worth_it(draft: _Draft, fewest: int) -> bool:
    reduces = any(step.op.kind is Kind.REDUCE for step in draft.steps)
    return len(draft.steps) >= (2 if reduces else fewest) and any(v.scope is RowScope.ELEMENT for v in draft.values)


def _without_unread(items: Sequence[AppliedOp | _Draft], wanted: Collection[int], frame: _Frame) -> list[AppliedOp | RowGroup]:
    """The groups of drafts, and the other steps whose results are read."""
    read, kept = set(wanted), list[AppliedOp | RowGroup]()
    for item in reversed(items):
        if isinstance(item, _Draft):
            results = [step.out for step in item.applied if id(step.out._data) in read]
            if results:
                kept.append(_group(item, results, frame))
                read.update([id(x._data) for _, x in item.operands.values()])
        elif id(item.out._data) in read:
            kept.append(item)
            read.update([id(x._data) for x in item.operands if isinstance(x, Tensor)])
    return kept[::-1]


def _group(draft: _Draft, results: list[Tensor], frame: _Frame) -> RowGroup:
    """The group of ``draft``, whose program has operands first, then numbers, then results of steps."""
    operands, numbers = [*draft.operands.values()], draft.numbers
    order = [*[k for k, _ in operands], *[k for k, _ in numbers], *[step.out for step in draft.steps]]
    place = {k: j for j, k in enumerate(order)}
    program = RowProgram(
        tuple([draft.values[k] for k in order]),
        len(operands) + len(numbers),
        tuple([RowStep(op, tuple([place[k] for k in ins]), place[out]) for op, ins, out in draft.steps]),
        tuple([place[draft.made[id(x._data)]] for x in results]),
        len(numbers),
    )
    rows, columns = math.prod(frame.shape[:-1]), frame.shape[-1]
    if all(v.scope in (RowScope.ELEMENT, RowScope.NUMBER) for v in program.values):
        rows, columns = rows * columns, 1  # rows do not matter
    return RowGroup((rows, columns), program, [x for _, x in operands], [x for _, x in numbers], results)
