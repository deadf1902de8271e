"""Products of small matrices as machine code: for each of them a call of BLAS costs more than its arithmetic."""

from __future__ import annotations

from functools import cache
from math import prod

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.effort import SMALL_LOOPS
from jitgrad.backends.llvm.tile_sizes import LANES
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.compiler.plan import OpStep
from jitgrad.core.aval import dtype_name
from jitgrad.runtime.executor.gemm import MatrixLayout, matmul_of
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction

# Measured on one thread against OpenBLAS: 4 x 4 takes a sixth of its time, 8 x 8 half, 16 x 16 as long; with a transposed
# right operand, for which OpenBLAS has no special kernel, an eighth to a half.
MAX_SIZE = 16
MIN_MATRICES = 4
MAX_SINGLE = 8  # of fewer matrices, which take 10 ns in place of 50; from 12 x 12 on BLAS is as fast
BLOCK_WORK = 1 << 16  # multiplications of a block of matrices, some 4 us
_ROWS = 2  # of the result, computed together: a row of the right matrix is loaded once for both


@cache
def _code(dtype: str, sizes: tuple[int, int, int], left: MatrixLayout, right: MatrixLayout, step: int) -> CodeObject:
    params = (f"{dtype}*", f"{dtype}*", f"{dtype}*", "i64", "i64", "i64")
    source = batch_source(dtype, sizes, left, right, step)
    return compile_entry(source, "products", {}, params=params, key="", effort=SMALL_LOOPS, wait=False)


def batch_source(dtype: str, sizes: tuple[int, int, int], left: MatrixLayout, right: MatrixLayout, step: int) -> str:
    """Source that multiplies matrices ``m x k`` and ``k x n`` (``sizes``: m, k, n); rows of a result are ``step`` apart.

    Sums run in order, in the dtype of the matrices. A transposed right matrix is copied in row-major order first, so that
    the columns of the result are contiguous. For m = 1, k = 2, n = 8 in f32::

        def products(x, y, z, x_step, y_step, z_step, start, stop):
            for b in range(start, stop):
                xb = at(x, b * x_step)
                yb = at(y, b * y_step)
                zb = at(z, b * z_step)
                y0 = at(yb, 0)
                y1 = at(yb, 8)
                for i in range(0, 1, 1):
                    x0_0 = xb[(i + 0) * 2 + 0]
                    x0_1 = xb[(i + 0) * 2 + 1]
                    z0 = at(zb, (i + 0) * 8)
                    for j in range(8):
                        t0 = x0_0 * y0[j]
                        t0 = t0 + x0_1 * y1[j]
                        z0[j] = t0
    """
    m, k, n = sizes
    lines = ["def products(x, y, z, x_step, y_step, z_step, start, stop):"]
    if right.transposed:
        # vectors read past the end of a row; random contents may be denormal numbers, which are slow even if unused
        lines.append(f"    yb = scratch_{dtype}({k * LANES})")
        lines += [f"    for e in range({k * LANES}):", f"        yb[e] = to_{dtype}(0.0)"]
    lines.append("    for b in range(start, stop):")
    transpose = f"transpose_tile(yb, at(y, b * y_step), {right.leading}, {n}, {k})"
    body = ["xb = at(x, b * x_step)", transpose if right.transposed else "yb = at(y, b * y_step)", "zb = at(z, b * z_step)"]
    body += [f"y{q} = at(yb, {q * (LANES if right.transposed else right.leading)})" for q in range(k)]
    even = m // _ROWS * _ROWS
    if even:
        body += _rows(sizes, left, step, range(0, even, _ROWS))
    if m > even:
        body += _rows(sizes, left, step, range(even, m, 1))
    return "\n".join([*lines, *("        " + line for line in body)]) + "\n"


def _rows(sizes: tuple[int, int, int], left: MatrixLayout, step: int, rows: range) -> list[str]:
    """Statements for ``rows`` of a result, ``rows.step`` of them together."""
    _, k, n = sizes
    row, column = (1, left.leading) if left.transposed else (left.leading, 1)
    lines, inner = [], list[str]()
    for r in range(rows.step):
        lines += [f"x{r}_{q} = xb[(i + {r}) * {row} + {q * column}]" for q in range(k)]
        lines.append(f"z{r} = at(zb, (i + {r}) * {step})")
    for q in range(k):
        inner += [f"t{r} = " + (f"t{r} + " if q else "") + f"x{r}_{q} * y{q}[j]" for r in range(rows.step)]
    inner += [f"z{r}[j] = t{r}" for r in range(rows.step)]
    lines += [f"for j in range({n}):", *("    " + line for line in inner)]
    return [f"for i in range({rows.start}, {rows.stop}, {rows.step}):", *("    " + line for line in lines)]


def small_products(step: OpStep) -> Instruction | None:
    """The instruction for a ``matmul`` of small matrices; None for other products."""
    p = matmul_of(step)
    if p is None or len(p.axes) > 1 or max(p.sizes) > MAX_SIZE:
        return None
    matrices, strides = p.axes[0] if p.axes else (1, (0, 0, 0))
    many = matrices >= MIN_MATRICES
    if not p.fold_axis_into_rows()[1] if many else max(p.sizes) > MAX_SINGLE:
        return None  # of many, if they are one product of many rows, which is as fast
    code = _code(dtype_name(p.dtype), p.sizes, p.left, p.right, p.out.leading)
    args: list[ArgSlot] = [*((at.buffer, at.offset) for at in p.locations), *strides]
    return Instruction(KERNEL, code, args, matrices, max(1, BLOCK_WORK // prod(p.sizes)))
