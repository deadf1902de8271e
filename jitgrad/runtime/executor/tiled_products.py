"""Products of matrices with few rows, columns or terms, as machine code: tiles of the result stay in registers.

BLAS copies both matrices into an order of its own, which pays when each is used hundreds of times. A training step
multiplies by a batch of 32 to 256 rows, and OpenBLAS's kernels for AVX-512 take up to half of their speed for that. The
code here copies the right matrix only, a block of `_DEPTH` rows and as many columns as fit into `_SCRATCH` bytes at a
time, and reads the left one where it lies. The structure is that of Goto and van de Geijn, *Anatomy of High-Performance
Matrix Multiplication* (2008), without the packing of A; `jitgrad.backends.llvm.tiles` has what works on registers.

An element of the result is the sum, in order, of its sums over blocks, each added up in order with fused multiplication
and addition: its bits depend neither on where it lies nor on how the product is cut for threads.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_words, vector_bits
from jitgrad.compiler.lowering.kernel_ir import PANEL, TILE_ROWS
from jitgrad.compiler.lowering.loop_nest import ArgSlot
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import Graph
from jitgrad.runtime.executor.gemm import Gemm
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction

_DEPTH = 128
_SCRATCH = 3 << 15  # not on the stack, of which a thread may have as little; C's library keeps smaller blocks than 128 kB
_LINE = 64
# Tiles fetch the rows that the next ones read ahead, 1.04 times the speed; where these are columns in memory, neighbours are
# in the same lines of the cache, and it pays from so many on.
_MANY = 128

# Measured on one thread against OpenBLAS 0.3.31 for AVX-512, with matrices in cache and not. It has kernels that copy
# nothing for small products, fewer of them with a transposed right matrix, and is as fast for large ones. With AVX2 (its
# kernels for Haswell) the two are level, and BLAS has all products.
_BITS = 512
_LEAST_WORK, _LEAST_WORK_TRANSPOSED, _MOST_WORK = 1 << 20, 1 << 18, 1 << 29  # multiplications
_MUCH_WORK = 1 << 23  # of a program
_MOST_SHORT = 512  # the shortest of the three sizes
_LEAST_ROWS = 8
_MOST_WASTE = 1.15  # columns of panels for each column of the result

_CHUNK_WORK = 1 << 17  # multiplications of what a thread takes at a time, some 4 us
_PACKING, _READING = 10, 16  # rows of a result that take as long as making panels for them; columns, as reading a row
_BY_ROWS, _BY_COLUMNS, _BY_MATRICES = range(3)

_WORDS = "m n k row step ldb turned ldc by a_step b_step c_step".split()
_SOURCE = """
def product(a, b, c, {words}, start, stop):
    memory = malloc({SCRATCH} + {EDGE} + {LINE})
    if memory == 0:
        abort()
    panels = (memory + {LINE} - 1) & -{LINE}
    edge = panels + {SCRATCH}
    down = select(turned != 0, 1, ldb)
    across = select(turned != 0, ldb, 1)
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
                    if turned != 0:
                        columns_to_panel(panel, right, ldb, min({WIDTH}, n - first), depth)
                    else:
                        rows_to_panel(panel, right, ldb, min({WIDTH}, n - first), depth)
                i = 0
                while i < rows:
                    height = {height}
                    if step == 1 or rows >= {MANY}:
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
                        tile(out, stride, left, row, step, panel, depth, q > 0, height)
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
    """Control code of products in ``dtype``, by rows, columns or matrices of a batch from ``start`` to ``stop``."""
    width = PANEL // {"f32": 4, "f64": 8}[dtype]
    names = {"WIDTH": width, "SCRATCH": _SCRATCH, "LINE": _LINE, "PANELS": _SCRATCH // PANEL, "DEPTH": _DEPTH, "MANY": _MANY}
    names |= {"EDGE": TILE_ROWS[0] * PANEL, "BY_ROWS": _BY_ROWS, "BY_COLUMNS": _BY_COLUMNS, "BY_MATRICES": _BY_MATRICES}
    *larger, height = (str(rows) for rows in TILE_ROWS)
    for rows in reversed(larger):
        height = f"select(rows - i >= {rows}, {rows}, {height})"
    return _SOURCE.format(words=", ".join(_WORDS), height=height, **names)


@cache
def tiled_product(dtype: str) -> CodeObject:
    """The code of `product_source`; LLVM may still be at work on it, and who asks for the address waits."""
    return compile_words(product_source(dtype), "product", dtype, wait=False)


def tiles_pay(gemm: Gemm, block_size: int | None = None) -> bool:
    """Whether the code here is faster than BLAS for ``gemm``, if it is computed ``block_size`` rows at a time."""
    if vector_bits() != _BITS:
        return False
    m, k, n = gemm.sizes
    m = block_size or m
    width = PANEL // gemm.dtype.itemsize
    least = _LEAST_WORK_TRANSPOSED if gemm.right.transposed else _LEAST_WORK
    fits = -(-n // width) * width <= _MOST_WASTE * n and m >= _LEAST_ROWS
    return fits and least <= m * k * n <= _MOST_WORK and min(m, k, n) <= _MOST_SHORT


def expect_products(graph: Graph) -> None:
    """Let LLVM begin with the code if ``graph`` multiplies much, while it goes through the passes: they change products."""
    if vector_bits() != _BITS:
        return
    work: Counter[str] = Counter()
    for node in graph.nodes:
        if node.op.name == "matmul" and node.out.aval.dtype in (np.float32, np.float64):
            work[dtype_name(node.out.aval.dtype)] += node.out.aval.size * node.ins[0].aval.shape[-1]
    for dtype, multiplications in work.items():
        if multiplications >= _MUCH_WORK:
            tiled_product(dtype)


def tiled_instruction(gemm: Gemm, *, by_rows: bool = False) -> Instruction:
    """The product by tiles; ``by_rows``: it is part of a run that goes by rows."""
    (m, k, n), left, right = gemm.sizes, gemm.left, gemm.right
    row, step = (1, left.leading) if left.transposed else (left.leading, 1)
    by, iterations, block_size = (_BY_ROWS, m, m) if by_rows else _cut(gemm)
    args: list[ArgSlot] = [*gemm.operands, m, n, k, row, step, right.leading, right.transposed, gemm.out.leading]
    args += [by, *gemm.batch.strides]
    return Instruction(KERNEL, tiled_product(dtype_name(gemm.dtype)), args, iterations, block_size)


def _cut(gemm: Gemm) -> tuple[int, int, int]:
    """What threads share (rows, columns or matrices), how many there are, and how many make a block.

    Blocks of rows make the panels again for each block; blocks of columns read the left matrix again.
    """
    (m, k, n), count = gemm.sizes, gemm.batch.length
    if count > 1:
        return _BY_MATRICES, count, max(1, _CHUNK_WORK // (m * k * n))
    width, parts = PANEL // gemm.dtype.itemsize, min(max(os.cpu_count() or 1, 2), m * k * n // _CHUNK_WORK + 1)
    rows, columns = max(-(-m // parts), _LEAST_ROWS), -(-n // width // parts) * width
    if (rows + _PACKING) * n <= (columns + _READING) * m:
        return _BY_ROWS, m, rows
    return _BY_COLUMNS, n, columns
