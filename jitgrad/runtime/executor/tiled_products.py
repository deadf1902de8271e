"""Multiplies matrices of few rows, columns or terms by tiles of the result that stay in registers.

BLAS packs both matrices, which pays when each is used hundreds of times. A training step multiplies by a batch of 32 to
256 rows; OpenBLAS's AVX-512 kernels then lose up to half of their speed by packing. The code here packs the right matrix
only, `_DEPTH` rows and as many columns as fit into `_SCRATCH` bytes at a time. The structure is that of Goto and van de
Geijn, *Anatomy of High-Performance Matrix Multiplication* (2008), without the packing of A. The operations on registers
are in `jitgrad.backends.llvm.tiles`.

An element of the result is the sum, in order, of its sums over groups of `_DEPTH` terms, each added in order with fused
multiply-add. Its bits depend neither on its position nor on how threads share the product.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code, kernel_vector_bits
from jitgrad.backends.llvm.tile_sizes import PANEL, TILE_ROWS
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import Graph
from jitgrad.runtime.executor.gemm import Gemm
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction

_DEPTH = 128
_SCRATCH = 3 << 15  # from malloc: a thread may have a stack no larger; malloc keeps blocks below 128 kB for reuse
_LINE = 64
# Tiles prefetch the left rows of the next tile, which gives 1.04 times the speed. Rows of a transposed left matrix share cache
# lines; there it pays from this many rows on.
_MIN_PREFETCH_ROWS = 128

# Measured on one thread against OpenBLAS 0.3.31 for AVX-512, with matrices in the cache and not. For small products it has
# kernels without packing, fewer of them for a transposed right matrix, and it is as fast for large ones. With AVX2 (its
# Haswell kernels) the two are equally fast, and BLAS computes all products.
VECTOR_BITS = 512
_MIN_WORK, _MIN_WORK_TRANSPOSED, _MAX_WORK = 1 << 20, 1 << 18, 1 << 29  # multiplications
_MIN_PROGRAM_WORK = 1 << 23  # multiplications of a program for which LLVM starts early
_MAX_SHORTEST = 512  # the shortest of the three sizes
_MIN_ROWS = 8
_MAX_PADDING = 1.15  # columns of panels for each column of the result

_BLOCK_WORK = 1 << 17  # multiplications of a block, some 4 us
_PACKING, _READING = 10, 16  # packing costs as much as so many rows of the result; reading the left matrix, as so many columns
_BY_ROWS, _BY_COLUMNS, _BY_MATRICES = range(3)

_ARGS = "m n k row step ldb transposed ldc by a_step b_step c_step more".split()  # more: add to the result
_SOURCE = """
def product(a, b, c, {args}, start, stop):
    memory = malloc({SCRATCH} + {EDGE} + {LINE})
    if memory == 0:
        abort()
    panels = (memory + {LINE} - 1) & -{LINE}
    edge = panels + {SCRATCH}
    down = select(transposed != 0, 1, ldb)
    across = select(transposed != 0, ldb, 1)
    rows = select(by == {BY_ROWS}, stop - start, m)
    n = select(by == {BY_COLUMNS}, stop - start, n)
    i = select(by == {BY_ROWS}, start, 0)
    j = select(by == {BY_COLUMNS}, start, 0)
    x = at(a, select(by == {BY_MATRICES}, start * a_step, i * row))
    y = at(b, select(by == {BY_MATRICES}, start * b_step, j * across))
    z = at(c, select(by == {BY_MATRICES}, start * c_step, i * ldc + j))
    for matrix in range(select(by == {BY_MATRICES}, stop - start, 1)):
        for q in range(0, k, {DEPTH}):
            depth = min({DEPTH}, k - q)
            columns = {PANELS} // depth * {WIDTH}
            j = 0
            while j < n:
                end = min(n, j + columns)
                for first in range(j, end, {WIDTH}):
                    panel = at(panels, (first - j) * depth)
                    right = at(y, q * down + first * across)
                    if transposed != 0:
                        columns_to_panel(panel, right, ldb, min({WIDTH}, n - first), depth)
                    else:
                        rows_to_panel(panel, right, ldb, min({WIDTH}, n - first), depth)
                i = 0
                while i < rows:
                    height = {height}
                    if step == 1 or rows >= {MIN_PREFETCH_ROWS}:
                        prefetch_rows(at(x, (i + height) * row + q * step), row, step, depth, height)
                    for first in range(j, end, {WIDTH}):
                        out = at(z, i * ldc + first)
                        stride = ldc
                        if first + {WIDTH} > n:
                            copy_rows(edge, {WIDTH}, out, ldc, n - first, height)
                            out = edge
                            stride = {WIDTH}
                        left = at(x, i * row + q * step)
                        panel = at(panels, (first - j) * depth)
                        tile(out, stride, left, row, step, panel, depth, q + more > 0, height)
                        if first + {WIDTH} > n:
                            copy_rows(at(z, i * ldc + first), ldc, edge, {WIDTH}, n - first, height)
                    i += height
                j = end
        x = at(x, a_step)
        y = at(y, b_step)
        z = at(z, c_step)
    free(memory)
"""


def product_source(dtype: str) -> str:
    """Control code of products in ``dtype``; iterations are rows, columns or matrices of a batch."""
    width = PANEL // {"f32": 4, "f64": 8}[dtype]
    names = {"WIDTH": width, "SCRATCH": _SCRATCH, "LINE": _LINE, "PANELS": _SCRATCH // PANEL, "DEPTH": _DEPTH}
    names["MIN_PREFETCH_ROWS"] = _MIN_PREFETCH_ROWS
    names |= {"EDGE": TILE_ROWS[0] * PANEL, "BY_ROWS": _BY_ROWS, "BY_COLUMNS": _BY_COLUMNS, "BY_MATRICES": _BY_MATRICES}
    *larger, height = (str(rows) for rows in TILE_ROWS)
    for rows in reversed(larger):
        height = f"select(rows - i >= {rows}, {rows}, {height})"
    return _SOURCE.format(args=", ".join(_ARGS), height=height, **names)


@cache
def tiled_product(dtype: str) -> CodeObject:
    """The compiled `product_source`. LLVM compiles it in the background; reading the address waits for it."""
    return compile_control_code(product_source(dtype), "product", dtype, wait=False)


def tiles_pay(gemm: Gemm, block_size: int | None = None) -> bool:
    """Whether the code here is faster than BLAS for ``gemm``, if it is computed ``block_size`` rows at a time."""
    if kernel_vector_bits() != VECTOR_BITS:
        return False
    m, k, n = gemm.sizes
    m = block_size or m
    width = PANEL // gemm.dtype.itemsize
    least = _MIN_WORK_TRANSPOSED if gemm.right.transposed else _MIN_WORK
    fits = -(-n // width) * width <= _MAX_PADDING * n and m >= _MIN_ROWS
    return fits and least <= m * k * n <= _MAX_WORK and min(m, k, n) <= _MAX_SHORTEST


def expect_products(graph: Graph) -> None:
    """Start LLVM on the code before the passes if ``graph`` multiplies much; they may still change the products."""
    if kernel_vector_bits() != VECTOR_BITS:
        return
    work: Counter[str] = Counter()
    for node in graph.nodes:
        if node.op.contraction and node.out.aval.dtype in (np.float32, np.float64):
            work[dtype_name(node.out.aval.dtype)] += node.out.aval.size * node.ins[0].aval.shape[-1]
    for dtype, multiplications in work.items():
        if multiplications >= _MIN_PROGRAM_WORK:
            tiled_product(dtype)


def tiled_instruction(gemm: Gemm, *, by_rows: bool = False) -> Instruction:
    """The product by tiles; ``by_rows``: it is part of a run that goes by rows."""
    (m, k, n), left, right = gemm.sizes, gemm.left, gemm.right
    row, step = (1, left.leading) if left.transposed else (left.leading, 1)
    by, iterations, block_size = (_BY_ROWS, m, m) if by_rows else _cut(gemm)
    args: list[ArgSlot] = [*gemm.operands, m, n, k, row, step, right.leading, right.transposed, gemm.out.leading]
    args += [by, *gemm.batch.strides, 0]
    return Instruction(KERNEL, tiled_product(dtype_name(gemm.dtype)), args, iterations, block_size)


def _cut(gemm: Gemm) -> tuple[int, int, int]:
    """What threads share (rows, columns or matrices), how many there are, and how many make a block.

    Blocks of rows make the panels again for each block; blocks of columns read the left matrix again.
    """
    (m, k, n), count = gemm.sizes, gemm.batch.length
    if count > 1:
        return _BY_MATRICES, count, max(1, _BLOCK_WORK // (m * k * n))
    width, parts = PANEL // gemm.dtype.itemsize, min(max(os.cpu_count() or 1, 2), m * k * n // _BLOCK_WORK + 1)
    rows, columns = max(-(-m // parts), _MIN_ROWS), -(-n // width // parts) * width
    if (rows + _PACKING) * n <= (columns + _READING) * m:
        return _BY_ROWS, m, rows
    return _BY_COLUMNS, n, columns
