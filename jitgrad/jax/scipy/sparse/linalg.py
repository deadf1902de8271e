"""jax.scipy.sparse.linalg: conjugate gradients and relatives, for a matrix or a function of pytrees, with gradients.

Y. Saad, "Iterative methods for sparse linear systems", 2003: algorithms 6.9, 7.7 and 9.1. The gradient of a solution is
another solution, of the transposed system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad import lax
from jitgrad.autograd.custom_vjp import custom_vjp
from jitgrad.autograd.functional import vjp
from jitgrad.autograd.modes import no_grad
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.flatten_util import ravel_pytree
from jitgrad.numpy.arguments import floating
from jitgrad.numpy.linalg import lstsq, norm
from jitgrad.numpy.products import dot, matmul
from jitgrad.ops.arithmetic import add, divide, maximum, multiply, square, subtract
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.creation import zeros, zeros_like
from jitgrad.ops.joining import concat, stack

__all__ = ["bicgstab", "cg", "gmres"]

Linear = Callable[[Any], Any]
Solver = Callable[[Linear, Tensor, Tensor, Any, int, Linear], Tensor]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """``(x, None)`` with ``A(x) = b``, by conjugate gradients: ``A`` is symmetric and positive definite.

    ``A`` and ``M``, which is near the inverse of ``A``, are matrices or linear functions of trees like ``b``. It ends where
    the residual is below ``max(tol * norm(b), atol)``, or after ``maxiter`` turns (None: ten times the unknowns); a compiled
    function computes all of these turns. Gradients flow to ``b`` and to what ``A`` reads.

    Raises ShapeError, ArgumentError: ``A(b)`` is not like ``b``, or ``A`` is neither a matrix nor a function.
    """
    return _solution("cg", _conjugate_gradients, A, b, x0, (tol, atol, maxiter, M), symmetric=True)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """`cg` for any ``A``, by stabilised biconjugate gradients."""
    return _solution("bicgstab", _stabilised, A, b, x0, (tol, atol, maxiter, M), symmetric=False)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """`cg` for any ``A``, by generalised minimal residuals, with ``restart`` directions a turn; ``solve_method`` says nothing."""

    def solver(A: Linear, b: Tensor, x: Tensor, least: Any, turns: int, M: Linear) -> Tensor:
        return _minimal_residuals(A, b, x, least, turns, M, min(restart, b.size))

    return _solution("gmres", solver, A, b, x0, (tol, atol, maxiter, M), symmetric=False)


def _solution(what: str, solver: Solver, A: Any, b: Any, x0: Any, options: tuple[Any, ...], symmetric: bool) -> tuple[Any, None]:
    right, unravel = ravel_pytree(b)
    right = floating(right)
    tol, atol, maxiter, M = options
    linear, preconditioner = _flat(what, A, unravel), _flat(what, M, unravel)
    if linear(right).shape != right.shape:
        raise ShapeError(f"{what}: A(b) must be like b, of {right.size} numbers; got {linear(right).aval}")
    start = zeros_like(right) if x0 is None else ravel_pytree(x0)[0]
    turns = 10 * right.size if maxiter is None else maxiter

    systems: list[Linear] = [linear, linear if symmetric else lambda v: vjp(linear, zeros_like(v))[1](v)[0]]

    def solved(which: int, b: Tensor, x: Tensor) -> Tensor:
        with no_grad():
            least = maximum(multiply(square(tol), dot(b, b)), atol * atol)
            found = solver(systems[which], b, x, least, turns, preconditioner)
        return add(found, corrections[which](subtract(b, systems[which](found))))

    def correction_of(which: int) -> custom_vjp:
        """Of a residual 0, with the gradient of its solution, which is linear: no solution is needed but for gradients."""
        correction = custom_vjp(zeros_like)
        other = which if symmetric else 1 - which
        correction.defvjp(lambda residual: (zeros_like(residual), None), lambda _, g: (solved(other, g, zeros_like(g)),))
        return correction

    corrections = [correction_of(0), correction_of(1)]
    return unravel(solved(0, right, start)), None


def _flat(what: str, A: Any, unravel: Callable[[Tensor], Any]) -> Linear:
    """``A``, a matrix or a function of trees, as a function of vectors; None is the identity."""
    if A is None:
        return lambda v: v
    if callable(A) and not isinstance(A, Tensor):
        return lambda v: ravel_pytree(A(unravel(v)))[0]
    if getattr(A, "ndim", 0) != 2:
        raise ArgumentError(f"{what}: A is a matrix or a linear function, got {type(A).__name__}")
    return lambda v: matmul(A, v)


def _until(going: Callable[[Any], Any], turn: Callable[[Any], Any], state: Any, turns: int) -> Any:
    """``state = turn(state)`` while it is ``going``, at most ``turns`` times; a trace has all turns, and keeps the last state."""
    if current_interpreter.get().tracing:

        def kept(_: Any, state: Any) -> Any:
            on = going(state)
            return tuple([where(on, new, old) for new, old in zip(turn(state), state, strict=True)])

        return lax.fori_loop(0, turns, kept, state)
    for _ in range(turns):
        if not going(state):
            break
        state = turn(state)
    return state


def _conjugate_gradients(A: Linear, b: Tensor, x: Tensor, least: Any, turns: int, M: Linear) -> Tensor:
    r = subtract(b, A(x))
    p = z = M(r)

    def turn(state: Any) -> Any:
        x, r, p, gamma = state
        image = A(p)
        alpha = divide(gamma, dot(p, image))
        x, r = add(x, multiply(alpha, p)), subtract(r, multiply(alpha, image))
        z = M(r)
        new = dot(r, z)
        return x, r, add(z, multiply(divide(new, gamma), p)), new

    found: Tensor = _until(lambda state: greater(dot(state[1], state[1]), least), turn, (x, r, p, dot(r, z)), turns)[0]
    return found


def _stabilised(A: Linear, b: Tensor, x: Tensor, least: Any, turns: int, M: Linear) -> Tensor:
    shadow = r = subtract(b, A(x))

    def turn(state: Any) -> Any:
        x, r, p, rho = state
        direction = M(p)
        v = A(direction)
        alpha = divide(rho, dot(shadow, v))
        s = subtract(r, multiply(alpha, v))
        second = M(s)
        t = A(second)
        size = dot(t, t)
        omega = where(greater(size, 0.0), divide(dot(t, s), where(greater(size, 0.0), size, 1.0)), 0.0)
        x = add(x, add(multiply(alpha, direction), multiply(omega, second)))
        r = subtract(s, multiply(omega, t))
        new = dot(shadow, r)
        beta = multiply(divide(new, rho), divide(alpha, where(greater(size, 0.0), omega, 1.0)))
        return x, r, add(r, multiply(beta, subtract(p, multiply(omega, v)))), new

    found: Tensor = _until(lambda state: greater(dot(state[1], state[1]), least), turn, (x, r, r, dot(r, r)), turns)[0]
    return found


def _minimal_residuals(A: Linear, b: Tensor, x: Tensor, least: Any, turns: int, M: Linear, restart: int) -> Tensor:
    def turn(state: Any) -> Any:
        x, r = state
        start = M(r)
        basis, columns = [divide(start, norm(start))], []
        for k in range(restart):
            image = M(A(basis[k]))
            column: list[Tensor] = []
            for _again in range(2):  # the second time for digits that the first lost
                for j, direction in enumerate(basis):
                    part = dot(direction, image)
                    image = subtract(image, multiply(part, direction))
                    column[j : j + 1] = [add(column[j], part) if j < len(column) else part]
            size = norm(image)
            basis.append(where(greater(size, 1e-30), divide(image, where(greater(size, 1e-30), size, 1.0)), 0.0))
            columns.append(concat([stack([*column, size]), zeros(restart - k - 1, dtype=b.dtype)]))
        right = concat([norm(start)[None], zeros(restart, dtype=b.dtype)])
        weights = lstsq(stack(columns, axis=1), right, rcond=None)[0]
        x = add(x, matmul(weights, stack(basis[:-1])))
        return x, subtract(b, A(x))

    found: Tensor = _until(lambda state: greater(dot(state[1], state[1]), least), turn, (x, subtract(b, A(x))), turns)[0]
    return found
