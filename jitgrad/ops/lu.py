"""The LU decomposition with exchanged rows, ``A = P L U``, with gradients in ops; leading axes are batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import MatrixError, ShapeError
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.lu import factor_in_place, has_lapack
from jitgrad.ops.arithmetic import add, conjugated, subtract
from jitgrad.ops.creation import eye
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.joining import concat
from jitgrad.ops.lapack import matrices
from jitgrad.ops.linalg import adjoint_of, matmul
from jitgrad.ops.movement import cut, expand_dims
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside
from jitgrad.ops.sorting import argsort
from jitgrad.ops.triangles import tril, triu
from jitgrad.ops.triangular import triangular_solve


def _refuse_singular(lu: Array) -> None:
    zeros = np.argwhere(np.diagonal(lu, 0, -2, -1) == 0)
    if len(zeros):
        *batch, k = zeros[0].tolist()
        where = f" of matrix {batch}" if batch else ""
        raise MatrixError(
            f"lu_factor of {lu.dtype}{list(lu.shape)}: element [{k}, {k}] of U{where} is zero, which would be divided by; "
            "lu_factor_ex returns the factors all the same"
        )


def _eliminated(x: Array, *, regular: bool) -> tuple[Array, Array]:
    """Gaussian elimination in NumPy, of all matrices at once (G. H. Golub, C. F. Van Loan, "Matrix Computations", 3.4.1)."""
    *batch, m, n = x.shape
    count = int(np.prod(batch))
    lu, pivots, all_ = np.array(x, order="C").reshape(count, m, n), np.empty((count, n), np.int32), np.arange(count)
    for k in range(n if count else 0):
        size = np.abs(lu[:, k:, k].real) + np.abs(lu[:, k:, k].imag)  # what LAPACK compares
        chosen = k + np.argmax(size, axis=1)
        pivots[:, k] = chosen + 1
        rows = lu[all_, chosen]
        lu[all_, chosen] = lu[:, k]
        lu[:, k] = rows
        pivot, below = rows[:, k, None], lu[:, k + 1 :, k]
        np.divide(below, pivot, out=below, where=pivot != 0)
        lu[:, k + 1 :, k + 1 :] -= below[:, :, None] * lu[:, k, None, k + 1 :]
    if regular:
        _refuse_singular(lu.reshape(x.shape))
    return lu.reshape(x.shape), pivots.reshape(*batch, n)


@wraps(_eliminated)  # what eject writes down, and what runs where NumPy's LAPACK is another
def _factors(x: Array, *, regular: bool) -> tuple[Array, Array]:
    if not has_lapack():
        return _eliminated(x, regular=regular)
    turned = np.array(np.swapaxes(x, -1, -2), order="C")  # LAPACK's order
    pivots = np.empty((*x.shape[:-2], x.shape[-1]), np.int64)
    for index in np.ndindex(*x.shape[:-2]) if turned.size else ():
        factor_in_place(turned[index], pivots[index])
    lu = np.ascontiguousarray(np.swapaxes(turned, -1, -2))
    if regular:
        _refuse_singular(lu)
    return lu, pivots.astype(np.int32)


def _avals(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> tuple[Aval, Aval]:
    x = matrices("lu", avals[0], square=False)
    if x.shape[-2] < x.shape[-1]:
        raise ShapeError(f"lu of {x}: the op takes matrices with at least as many rows as columns")
    return Aval(x.shape, x.dtype), Aval((*x.shape[:-2], x.shape[-1]), np.dtype(np.int32))


def _vjp(g: tuple[Tensor, Any], out: tuple[Tensor, Tensor], x: Tensor, *, regular: bool) -> tuple[Tensor]:
    """S. Axen, "The LU pullback", 2021 (sethaxen.com/blog/2021/02/differentiating-the-lu-decomposition): with
    ``F = L^-1 dA U^-1`` of the upper square, dL is L times the strictly lower part of F, and dU the rest times U."""
    (packed, pivots), n = out, x.shape[-1]
    top, bottom = (cut(packed, packed.ndim - 2, *part) for part in ((0, n), (n, x.shape[-2])))
    g_top, g_bottom = (cut(conjugated(g[0]), packed.ndim - 2, *part) for part in ((0, n), (n, x.shape[-2])))
    lower, upper = unit_lower(top), triu(top)
    of_upper = subtract(matmul(triu(g_top), adjoint_of(upper)), matmul(adjoint_of(bottom), g_bottom))
    middle = add(tril(matmul(adjoint_of(lower), tril(g_top, -1)), -1), triu(of_upper))
    left = triangular_solve(adjoint_of(lower), middle, upper=True)
    rows = adjoint_of(triangular_solve(upper, adjoint_of(concat([left, g_bottom], -2)), upper=True))
    order = argsort(row_order(pivots, x.shape[-2]), -1)
    return (conjugated(take_along_axis(rows, expand_dims(order, -1), -2)),)


LU = define(
    "lu(x, *, regular)",
    kind=Kind.OPAQUE,
    eager=_factors,
    abstract=_avals,
    vjp=_vjp,
    multiple=True,
    domain=("invertible",),
    sample_attrs={"regular": False},
    takes_complex=True,
)


def unit_lower(packed: Tensor) -> Tensor:
    """L of LU factors [m, n] in one matrix: [m, min(m, n)], with ones on its diagonal."""
    m, n = packed.shape[-2:]
    part = cut(packed, packed.ndim - 1, 0, min(m, n))
    with beside(packed):
        ones = eye(m, part.shape[-1], dtype=packed.dtype)
    return add(tril(part, -1), ones)


def lu(x: Tensor, *, regular: bool) -> tuple[Tensor, Tensor]:
    """The factors of matrices [m, n] of any shape in one matrix, L below its diagonal, and LAPACK's int32 pivots from 1.

    Raises:
        MatrixError: with ``regular``, for a zero on the diagonal of U.
    """
    m, n = x.shape[-2:] if x.ndim > 1 else (0, 0)
    first = x if m >= n else cut(x, x.ndim - 1, 0, m)
    packed, pivots = apply_op(LU, first, regular=regular)
    if m >= n:
        return packed, pivots
    order = expand_dims(row_order(pivots, m), -1)
    rest = triangular_solve(unit_lower(packed), take_along_axis(cut(x, x.ndim - 1, m, n), order, -2), upper=False)
    return concat([packed, rest], -1), pivots


def _row_order(pivots: Array, *, rows: int) -> Array:
    *batch, k = pivots.shape
    order = np.broadcast_to(np.arange(rows), (*batch, rows)).copy()
    for i in range(k):
        other = pivots[..., i, None].astype(np.int64) - 1
        row = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., i, None], -1)
        order[..., i, None] = row
    return order


ROW_ORDER = define(
    "row_order(pivots, *, rows)",
    kind=Kind.OPAQUE,
    eager=_row_order,
    abstract=lambda avals, attrs: Aval((*avals[0].shape[:-1], attrs["rows"]), np.dtype(np.int64)),
)


def row_order(pivots: Tensor, rows: int) -> Tensor:
    """Which of its ``rows`` LU factors a matrix by, in order, from LAPACK's pivots: int64 [..., rows]."""
    return apply(ROW_ORDER, pivots, rows=rows)
