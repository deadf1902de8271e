"""Matrix products as native instructions: when a matmul step can go to BLAS by address, and with which words."""

from __future__ import annotations

import struct
from math import prod

import numpy as np

from jitgrad.compiler.layout import Location
from jitgrad.compiler.loops import Word
from jitgrad.compiler.plan import OpStep
from jitgrad.runtime import native
from jitgrad.runtime.blas import find_blas

Instruction = tuple[int, int, list[Word]]


def _bits(value: float, single: bool) -> int:
    return struct.unpack("<i", struct.pack("<f", value))[0] if single else struct.unpack("<q", struct.pack("<d", value))[0]


def _operand(strides: tuple[int, ...], rows: int, columns: int) -> tuple[int, int] | None:
    """(transposed, leading dimension) of a row-major BLAS operand of ``rows x columns``; None if BLAS cannot read it."""
    row, column = strides[-2:]
    if column == 1 and row >= max(1, columns):
        return 0, row
    if row == 1 and column >= max(1, rows):
        return 1, column
    return None


def _batch_stride(shape: tuple[int, ...], strides: tuple[int, ...], batch: tuple[int, ...]) -> int | None:
    """Elements from one matrix of the batch to the next; None if they do not follow each other regularly."""
    own = shape[:-2]
    if prod(own) == 1:
        return 0
    if own != batch:
        return None
    expected = strides[len(own) - 1]
    step = expected
    for n, s in zip(reversed(own), reversed(strides[: len(own)]), strict=True):
        if n != 1 and s != step:
            return None
        step = s * n
    return expected


def gemm_words(step: OpStep) -> Instruction | None:
    """(kind, function, table words) for a matmul of matrices that BLAS reads as they lie; None: use NumPy."""
    blas = find_blas()
    if step.op.name != "matmul" or blas is None:
        return None
    a, b, c = (*step.reads, *step.writes)
    if a.location is None or b.location is None or c.location is None or min(a.aval.ndim, b.aval.ndim) < 2:
        return None
    dtype = c.aval.dtype
    if dtype not in (np.float32, np.float64) or a.aval.dtype != dtype or b.aval.dtype != dtype:
        return None
    (m, k), n = a.aval.shape[-2:], b.aval.shape[-1]
    batch = c.aval.shape[:-2]
    if not (m and n and k) or not prod(batch):
        return None
    left, right = _operand(a.location.strides, m, k), _operand(b.location.strides, k, n)
    steps = [_batch_stride(p.aval.shape, _strides(p.location), batch) for p in (a, b, c)]
    if left is None or right is None or None in steps:
        return None
    single = dtype == np.float32
    size = dtype.itemsize
    words: list[Word] = [
        m, n, k, left[0], right[0], _bits(1.0, single), _pointer(a.location), left[1],
        _pointer(b.location), right[1], _bits(0.0, single), _pointer(c.location), n, prod(batch),
        *(s * size for s in steps if s is not None),
    ]  # fmt: skip
    return (native.SGEMM if single else native.DGEMM), (blas.sgemm if single else blas.dgemm), words


def _strides(location: Location | None) -> tuple[int, ...]:
    assert location is not None
    return location.strides


def _pointer(location: Location) -> Word:
    return location.buffer, location.offset
