"""Matrix products without Python: which of them a matmul step consists of, and the words that BLAS takes by address."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from jitgrad.compiler.lowering.footprint import Footprint, Place
from jitgrad.compiler.lowering.layout import Location
from jitgrad.compiler.lowering.loop_nest import ArgSlot
from jitgrad.compiler.plan import OpStep
from jitgrad.core.aval import Dtype
from jitgrad.runtime.executor import instruction_loop
from jitgrad.runtime.executor.blas import find_blas
from jitgrad.runtime.executor.row_blocking import MOST_WORK

Instruction = tuple[int, int, list[ArgSlot]]
Axis = tuple[int, tuple[int, ...]]

# A product that takes more calls has matrices so small that NumPy's loop over them costs no more.
MAX_CALLS = 1024


def _bits(value: float, single: bool) -> int:
    packed = struct.pack("<f" if single else "<d", value)
    return int.from_bytes(packed, "little", signed=True)


def _operand(strides: tuple[int, ...], rows: int, columns: int) -> tuple[int, int] | None:
    """(transposed, leading dimension) of a row-major BLAS operand ``rows x columns``; None if BLAS cannot read it."""
    row, column = strides[-2:]
    if column == 1 and row >= max(1, columns):
        return 0, row
    if row == 1 and column >= max(1, rows):
        return 1, column
    return None


def _batch_axes(shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]]) -> list[Axis]:
    """The axes of the batch, outermost first: (length, strides of a, b, c), as few as describe it.

    An operand without an axis, or with one of length 1, is the same matrix for all of it: stride 0. Axes that follow
    each other regularly in all three are one.
    """
    batch = shapes[-1][:-2]
    axes: list[Axis] = []
    for k, n in enumerate(batch):
        if n == 1:
            continue
        steps = []
        for shape, stride in zip(shapes, strides, strict=True):
            own = k - (len(batch) - (len(shape) - 2))
            steps.append(stride[own] if own >= 0 and shape[own] != 1 else 0)
        if axes and all(outer == n * inner for outer, inner in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = (axes[-1][0] * n, tuple(steps))
        else:
            axes.append((n, tuple(steps)))
    return axes


def as_rows(m: int, axes: list[Axis], left: tuple[int, int], right: tuple[int, int], ldc: int) -> int:
    """Rows of one product that does the innermost axis of the batch, too; the axis is removed. ``m`` if it cannot.

    It can where all matrices of the axis are multiplied by the same one and lie like more rows of a single matrix.
    """
    if axes and not left[0]:
        n, (a, b, c) = axes[-1]
        if b == 0 and a == m * left[1] and c == m * ldc:
            axes.pop()
            return m * n
    return m


@dataclass(frozen=True, slots=True)
class Product:
    """A ``matmul`` of matrices ``m x k`` and ``k x n`` (``sizes``: m, k, n) that BLAS can read where they lie.

    ``left``, ``right``, ``out``: (transposed, leading dimension); ``axes`` are those of the batch.
    """

    dtype: Dtype
    sizes: tuple[int, int, int]
    left: tuple[int, int]
    right: tuple[int, int]
    out: tuple[int, int]
    axes: list[Axis]
    locations: list[Location]


def product_of(step: OpStep) -> Product | None:
    """What ``step`` multiplies; None if it is no product of float matrices, or one that only NumPy can read."""
    if step.op.name != "matmul":
        return None
    places = (*step.reads, *step.writes)
    locations = [p.location for p in places if p.location is not None]
    dtype = places[-1].aval.dtype
    if len(locations) < 3 or min(p.aval.ndim for p in places) < 2 or dtype not in (np.float32, np.float64):
        return None
    if any(p.aval.dtype != dtype for p in places):
        return None
    shapes, strides = [p.aval.shape for p in places], [at.strides for at in locations]
    (m, k), n = shapes[0][-2:], shapes[1][-1]
    left, right, out = _operand(strides[0], m, k), _operand(strides[1], k, n), _operand(strides[2], m, n)
    if not prod((m, n, k, *shapes[2][:-2])) or left is None or right is None or out is None or out[0]:
        return None
    return Product(dtype, (m, k, n), left, right, out, _batch_axes(shapes, strides), locations)


@dataclass(frozen=True)
class Call:
    """One product of matrices ``m x k`` and ``k x n`` (``sizes``: m, k, n), or of a batch of them.

    ``left``, ``right``, ``out``: (transposed, leading dimension); ``places``: where the first of the matrices lie;
    ``batch``: how many there are, and the elements from one to the next in a, b, c.
    """

    dtype: Dtype
    sizes: tuple[int, int, int]
    left: tuple[int, int]
    right: tuple[int, int]
    out: tuple[int, int]
    places: tuple[Place, ...]
    batch: Axis

    @cached_property
    def strip_spans(self) -> tuple[Footprint, ...] | None:
        """What a row of the product touches, if it may go by rows together with others (`jitgrad.runtime.executor.row_blocking`).

        None for a batch, where a's rows are its columns, and if it is work enough by itself.
        """
        if self.batch[0] != 1 or self.left[0] or prod(self.sizes) > MOST_WORK:
            return None
        (_, k, n), item, (a, b, c) = self.sizes, self.dtype.itemsize, self.places
        rows, columns = (n, k) if self.right[0] else (k, n)
        whole = Footprint(b, 0, 0, ((rows - 1) * self.right[1] + columns) * item, written=False)
        read = Footprint(a, 0, self.left[1] * item, k * item, written=False)
        return read, whole, Footprint(c, 0, self.out[1] * item, n * item, written=True)


def calls_of(step: OpStep) -> list[Call] | None:
    """The products that a matmul of matrices as they lie takes; None: use NumPy.

    A batch is one if its matrices follow each other at one distance; otherwise one for each index of the
    other axes (attention heads that are slices of a row, say: NumPy has no BLAS call for those).
    """
    p = product_of(step)
    if p is None:
        return None
    (m, k, n), axes = p.sizes, list(p.axes)
    m = as_rows(m, axes, p.left, p.right, p.out[1])
    inner = max(axes, key=lambda axis: axis[0], default=(1, (0, 0, 0)))
    others = [axis for axis in axes if axis is not inner]
    if prod(axis[0] for axis in others) > MAX_CALLS:
        return None
    calls = []
    for index in product(*(range(axis[0]) for axis in others)):
        places = tuple(
            (at.buffer, at.offset + p.dtype.itemsize * sum(i * axis[1][j] for i, axis in zip(index, others, strict=True)))
            for j, at in enumerate(p.locations)
        )
        calls.append(Call(p.dtype, (m, k, n), p.left, p.right, p.out, places, inner))
    return calls


def blas_instruction(call: Call) -> Instruction:
    """(kind, function, table words) for NumPy's BLAS, which there has to be."""
    single, blas = call.dtype == np.float32, find_blas()
    assert blas is not None
    kind, function = (instruction_loop.SGEMM, blas.sgemm) if single else (instruction_loop.DGEMM, blas.dgemm)
    (m, k, n), (a, b, c), (count, steps) = call.sizes, call.places, call.batch
    words: list[ArgSlot] = [m, n, k, call.left[0], call.right[0], _bits(1.0, single), a, call.left[1], b, call.right[1]]
    words += [_bits(0.0, single), c, call.out[1], count, *(s * call.dtype.itemsize for s in steps)]
    return kind, function, words
