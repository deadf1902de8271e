"""Elementwise ops and reductions of rows in one pass over their arrays, once such a run of ops comes back often.

A softmax or a layer norm takes ten or twenty NumPy calls. A row of a thousand elements fits in the first-level cache, so
machine code that does all of them row by row reads and writes memory once, and small arrays need one call. It rounds as
NumPy does and adds up in NumPy's order, so results have the same bits, whichever of the two computes them. The module that
compiles such programs is above this one; it registers itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.monoid import MAX_MONOID, MIN_MONOID, SUM_MONOID
from jitgrad.core.op import Kind, OpDef
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.eager.large_arrays import kernels_allowed

# Compiling takes as long as some thousand small calls of the ops; that many elements count as one more call, up to so many.
_USES = 1000
_ELEMENTS = 1024
_MOST_COUNTED = 100

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))  # of values that are reduced
MONOIDS = (SUM_MONOID, MAX_MONOID, MIN_MONOID)  # of reductions of rows

_Arrays = Sequence[np.ndarray[Any, Any]]


class RowScope(Enum):
    """What a value has one element for."""

    ELEMENT = "element"
    ROW = "row"
    COLUMN = "column"  # an operand for all rows, or a sum over rows
    NUMBER = "number"


class RowValue(NamedTuple):
    """An operand or a result within a program."""

    scope: RowScope
    dtype: Dtype


class RowStep(NamedTuple):
    """An elementwise op, or a reduction of the elements of rows or of columns; values are numbered."""

    op: OpDef
    operands: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True)
class RowProgram:
    """``steps`` on rows of elements.

    The first ``inputs`` of ``values`` are operands, the last ``numbers`` of them the same for all calls. ``outputs`` are the
    values that a call returns.
    """

    values: tuple[RowValue, ...]
    inputs: int
    steps: tuple[RowStep, ...]
    outputs: tuple[int, ...]
    numbers: int = 0

    @property
    def reduced_operands(self) -> frozenset[int]:
        """The operands that are reduced as they are."""
        return frozenset([k for step in self.steps if step.op.kind is Kind.REDUCE for k in step.operands if k < self.inputs])


# Of operands and results, which it writes to; False if it refused them, for the memory of one is not contiguous.
RowCall = Callable[..., bool]
# Of the numbers of rows and of columns, and of the operands that are the same for all calls and come last.
RowBinder = Callable[[int, int, _Arrays], RowCall]


class RowKernel:
    """``program``, and how to call its machine code; ``bind`` is None until it is compiled."""

    __slots__ = ("bind", "program", "uses")

    def __init__(self, program: RowProgram) -> None:
        self.program: RowProgram = program
        self.bind: RowBinder | None = None
        self.uses: int = 0

    def ready(self, elements: int) -> RowBinder | None:
        """How to call it with arrays of ``elements``; None if NumPy's functions are to compute it."""
        if self.bind is None:
            self.uses += 1 + min(elements // _ELEMENTS, _MOST_COUNTED)
            if self.uses >= _USES and _Registered.maker is not None:
                self.uses = 0  # where nothing is to be compiled now, the next try is as far away
                self.bind = _Registered.maker(self.program)
        return self.bind


# Compiles a program, or returns None where nothing is to be compiled.
RowMaker = Callable[[RowProgram], RowBinder | None]


class _Registered:
    maker: RowMaker | None = None


def make_row_kernels_by(maker: RowMaker) -> None:
    """Let ``maker`` compile programs."""
    _Registered.maker = staticmethod(maker)


@cache
def kernel_of(program: RowProgram) -> RowKernel:
    """The kernel of ``program``, one for arrays of any size."""
    return RowKernel(program)


def by_rows(
    kernel: RowKernel,
    function: Callable[..., Sequence[Any]],
    size: tuple[int, int],
    results: Sequence[tuple[Shape, Dtype]],
    numbers: _Arrays,
) -> Callable[..., Sequence[Any]]:
    """``function``, or ``kernel`` once it is compiled, on ``size`` rows and columns.

    ``results`` are the shapes and dtypes of what it returns, ``numbers`` the last operands of the kernel.
    """
    run: RowCall | None = None
    elements = math.prod(size)
    reduced = kernel.program.reduced_operands

    def call(*arrays: Any) -> Sequence[Any]:
        nonlocal run
        if not kernels_allowed.get():
            return function(*arrays)
        if run is None:
            bind = kernel.ready(elements)
            if bind is None:
                return function(*arrays)
            run = bind(*size, numbers)
        out = [empty_buffer(shape, dtype) for shape, dtype in results]
        if run(*arrays, *out) or run(*[_spread(x, k in reduced) for k, x in enumerate(arrays)], *out):
            return out
        return function(*arrays)

    return call


def _spread(x: np.ndarray[Any, Any], reduced: bool) -> np.ndarray[Any, Any]:
    """One number that stands for all elements, such as the gradient of a sum, as a contiguous array.

    NumPy goes through an array in the order of its strides, so other arrays are left to it, and such sums of one number.
    """
    return x if reduced or any(x.strides) else np.ascontiguousarray(x)
