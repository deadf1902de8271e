"""Matrix products without Python: the BLAS calls that a matmul step consists of, and their arguments by address."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import ArgSlot, BufferOffset, Location
from jitgrad.compiler.plan import OpStep
from jitgrad.core.aval import Dtype
from jitgrad.eager.blas import find_blas
from jitgrad.runtime.executor import instruction_loop
from jitgrad.runtime.executor.instruction_loop import Instruction

# A product that takes more calls has matrices so small that NumPy's loop over them costs no more.
MAX_CALLS = 1024
REAL_DTYPES: Collection[Dtype] = frozenset({np.dtype(np.float32), np.dtype(np.float64)})  # complex products are NumPy's


class MatrixLayout(NamedTuple):
    """How a matrix lies in memory: ``leading`` elements from one row to the next, or from one column if transposed."""

    transposed: bool
    leading: int


class BatchAxis(NamedTuple):
    """``length`` matrices, and the elements from one to the next in the left, right and result operand."""

    length: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Matmul:
    """A ``matmul`` of matrices ``m x k`` and ``k x n`` (``sizes``: m, k, n) that BLAS can read without a copy."""

    dtype: Dtype
    sizes: tuple[int, int, int]
    left: MatrixLayout
    right: MatrixLayout
    out: MatrixLayout
    axes: list[BatchAxis]
    locations: list[Location]

    def fold_axis_into_rows(self) -> tuple[int, list[BatchAxis]]:
        """The rows of one product, and the axes left, after folding the innermost batch axis into the rows.

        This needs one right matrix for the whole axis, and left matrices and results that continue each other's rows.
        """
        m = self.sizes[0]
        if self.axes and not self.left.transposed:
            count, (a, b, c) = self.axes[-1]
            if b == 0 and a == m * self.left.leading and c == m * self.out.leading:
                return m * count, self.axes[:-1]
        return m, self.axes


@dataclass(frozen=True, eq=False)
class Gemm:
    """One product of matrices ``m x k`` and ``k x n`` (``sizes``: m, k, n), or a batch of them at regular distances.

    ``operands`` are the addresses of the first left, right and result matrix.
    """

    dtype: Dtype
    sizes: tuple[int, int, int]
    left: MatrixLayout
    right: MatrixLayout
    out: MatrixLayout
    operands: tuple[BufferOffset, ...]
    batch: BatchAxis

    @property
    def work(self) -> int:
        """Multiplications of one matrix of the batch."""
        return prod(self.sizes)

    @property
    def row_footprints(self) -> tuple[Footprint[BufferOffset], ...] | None:
        """The memory that a row of the product touches; None for a batch, and where rows of the left are columns."""
        if self.batch.length != 1 or self.left.transposed:
            return None
        (_, k, n), item, (a, b, c) = self.sizes, self.dtype.itemsize, self.operands
        rows, columns = (n, k) if self.right.transposed else (k, n)
        whole_right = Footprint(b, 0, 0, ((rows - 1) * self.right.leading + columns) * item, written=False)
        left_row = Footprint(a, 0, self.left.leading * item, k * item, written=False)
        return left_row, whole_right, Footprint(c, 0, self.out.leading * item, n * item, written=True)


def matrix_layout(strides: tuple[int, ...], rows: int, columns: int) -> MatrixLayout | None:
    """The layout of a row-major BLAS operand ``rows x columns``; None if BLAS cannot read it."""
    row, column = strides[-2:]
    if column == 1 and row >= max(1, columns):
        return MatrixLayout(False, row)
    if row == 1 and column >= max(1, rows):
        return MatrixLayout(True, column)
    return None


def batch_axes(shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]]) -> list[BatchAxis]:
    """The axes of the batch, outermost first, as few as describe it.

    An operand without an axis, or with one of length 1, has stride 0: every product uses the same matrix. Axes that
    continue each other in all three operands are merged.
    """
    batch = shapes[-1][:-2]
    axes: list[BatchAxis] = []
    for k, n in enumerate(batch):
        if n == 1:
            continue
        steps = []
        for shape, stride in zip(shapes, strides, strict=True):
            own = k - (len(batch) - (len(shape) - 2))
            steps.append(stride[own] if own >= 0 and shape[own] != 1 else 0)
        if axes and all(outer == n * inner for outer, inner in zip(axes[-1].strides, steps, strict=True)):
            axes[-1] = BatchAxis(axes[-1].length * n, tuple(steps))
        else:
            axes.append(BatchAxis(n, tuple(steps)))
    return axes


def matmul_of(step: OpStep, dtypes: Collection[Dtype] = REAL_DTYPES) -> Matmul | None:
    """The product that ``step`` computes; None if it is not one of matrices of ``dtypes``, or only NumPy can read them."""
    if not step.op.contraction:
        return None
    places = (*step.reads, *step.writes)
    locations = [p.location for p in places if p.location is not None]
    dtype = places[-1].aval.dtype
    if len(locations) < 3 or min(p.aval.ndim for p in places) < 2 or dtype not in dtypes:
        return None
    if any(p.aval.dtype != dtype for p in places):
        return None
    shapes, strides = [p.aval.shape for p in places], [at.strides for at in locations]
    (m, k), n = shapes[0][-2:], shapes[1][-1]
    left, right = matrix_layout(strides[0], m, k), matrix_layout(strides[1], k, n)
    out = matrix_layout(strides[2], m, n)
    if not prod((m, n, k, *shapes[2][:-2])) or left is None or right is None or out is None or out.transposed:
        return None
    return Matmul(dtype, (m, k, n), left, right, out, batch_axes(shapes, strides), locations)


def gemms_of(step: OpStep, dtypes: Collection[Dtype] = REAL_DTYPES) -> list[Gemm] | None:
    """The BLAS calls that compute a matmul without copies; None: use NumPy.

    Matrices at one regular distance are one call. A batch of several axes takes one call for each index of all axes but
    the longest (attention heads that are slices of a row, say: NumPy has no BLAS call for those).
    """
    p = matmul_of(step, dtypes)
    if p is None:
        return None
    (_, k, n), (m, axes) = p.sizes, p.fold_axis_into_rows()
    inner = max(axes, key=lambda axis: axis.length, default=BatchAxis(1, (0, 0, 0)))
    others = [axis for axis in axes if axis is not inner]
    if prod(axis.length for axis in others) > MAX_CALLS:
        return None
    gemms = []
    for index in product(*(range(axis.length) for axis in others)):
        operands = tuple(
            (at.buffer, at.offset + p.dtype.itemsize * sum(i * axis.strides[j] for i, axis in zip(index, others, strict=True)))
            for j, at in enumerate(p.locations)
        )
        gemms.append(Gemm(p.dtype, (m, k, n), p.left, p.right, p.out, operands, inner))
    return gemms


def _bits(value: float, single: bool) -> int:
    packed = struct.pack("<f" if single else "<d", value)
    return int.from_bytes(packed, "little", signed=True)


def blas_instruction(gemm: Gemm) -> Instruction:
    """The call of NumPy's BLAS, which must exist."""
    single, blas = gemm.dtype == np.float32, find_blas()
    assert blas is not None
    kind, function = (instruction_loop.SGEMM, blas.sgemm) if single else (instruction_loop.DGEMM, blas.dgemm)
    (m, k, n), (a, b, c), (count, strides) = gemm.sizes, gemm.operands, gemm.batch
    left, right = gemm.left, gemm.right
    args: list[ArgSlot] = [m, n, k, left.transposed, right.transposed, _bits(1.0, single), a, left.leading, b, right.leading]
    args += [_bits(0.0, single), c, gemm.out.leading, count, *(s * gemm.dtype.itemsize for s in strides)]
    return Instruction(kind, function, args)
