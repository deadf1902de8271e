"""Factors of matrices and solutions by them, with SciPy's signatures."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy import linalg, systems
from jitgrad.ops.complex_parts import conj
from jitgrad.ops.creation import asarray
from jitgrad.ops.movement import expand_dims, matrix_transpose, squeeze


def _adjoint(a: Tensor) -> Tensor:
    return conj(matrix_transpose(a)) if a.dtype.kind == "c" else matrix_transpose(a)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The triangular factor of a symmetric (Hermitian) matrix: the upper one, as in SciPy, unless ``lower``.

    ``overwrite_a`` and ``check_finite`` change nothing. Raises LinAlgError if ``a`` is not positive definite.
    """
    return linalg.cholesky(a, upper=not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """``(cholesky(a, lower), lower)``, for `cho_solve`. The other triangle is zeros, where SciPy leaves what was there."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """The ``x`` with ``a @ x == b`` for the factor of ``a`` that `cho_factor` gives; ``b`` is a vector or a matrix."""
    factor, lower = c_and_lower
    right = asarray(b)
    columns = expand_dims(right, -1) if right.ndim == 1 else right
    solved = systems.cholesky_solve(columns, factor, upper=not lower)
    return squeeze(solved, -1) if right.ndim == 1 else solved


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """The ``x`` with ``a @ x == b`` for a triangular ``a``, of which only that triangle is read.

    ``trans``: 1 or "T" solves with the transpose of ``a``, 2 or "C" with its conjugate transpose.
    Raises ArgumentError for another ``trans``.
    """
    matrix, right = asarray(a), asarray(b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {shown(trans)}")
    if trans not in (0, "N"):
        matrix = matrix_transpose(matrix) if trans in (1, "T") else _adjoint(matrix)
        lower = not lower
    columns = expand_dims(right, -1) if right.ndim == 1 else right
    solved = systems.solve_triangular(matrix, columns, upper=not lower, unitriangular=unit_diagonal)
    return squeeze(solved, -1) if right.ndim == 1 else solved


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True,
    assume_a: str | None = None, transposed: bool = False,
) -> Tensor:  # fmt: skip
    """The ``x`` with ``a @ x == b``, or with ``transposed`` ``a.T @ x == b``; ``assume_a="pos"`` by Cholesky's factor.

    Other structures of ``a`` are solved as if they were not known, of which the whole matrix is read.
    """
    if assume_a in ("pos", "positive definite"):
        return cho_solve(cho_factor(a, lower), b)
    return linalg.solve(matrix_transpose(asarray(a)) if transposed else a, b)
