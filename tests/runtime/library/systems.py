"""Ops on small matrices, what NumPy gives for them, and matrices to try them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad import numpy as jnp
from jitgrad.jit.decorator import JitFunction
from jitgrad.runtime.library.small_systems import small_system
from jitgrad.runtime.library_call import LibraryCall

R = np.random.default_rng(0)
OPS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: jnp.linalg.solve(x, x[..., :2] * 2.0),
    "upper": lambda x: jnp.linalg.solve_triangular(x, x[..., :2] * 2.0, upper=True),
    "lower": lambda x: jnp.linalg.solve_triangular(x, x[..., :2] * 2.0, upper=False),
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "slogdet": jnp.linalg.slogdet,
    "cholesky": jnp.linalg.cholesky,
}
NUMPY: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: np.linalg.solve(x, x[..., :2] * 2),
    "upper": lambda x: np.linalg.solve(np.triu(x), x[..., :2] * 2),
    "lower": lambda x: np.linalg.solve(np.tril(x), x[..., :2] * 2),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "cholesky": np.linalg.cholesky,
}


def matrices(op: str, n: int, *batch: int, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """Matrices of moderate condition numbers; some of their largest elements are not on the diagonal."""
    basis = np.linalg.qr(R.normal(size=(*batch, n, n)))[0]
    values = basis * np.linspace(0.5, 2.0, n) @ np.swapaxes(basis, -1, -2)
    if op in ("upper", "lower"):
        found = (values - np.eye(n)) / n + np.eye(n)
    else:
        found = values if op == "cholesky" else values @ basis[..., ::-1, :]
    return found.astype(dtype)


def systems(f: JitFunction, *args: Any) -> list[LibraryCall]:
    """The steps of a call that machine code computes."""
    steps = f.lookup(*args).program.steps
    return [s for s in steps if isinstance(s, LibraryCall) and s.instruction is not None and small_system(s.step) is not None]


def needs_no_python(f: JitFunction, *args: Any) -> bool:
    return not any(isinstance(part, LibraryCall) for part in f.lookup(*args).program.runner.parts)


def close(found: Any, expected: Any, tolerance: float) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=tolerance, atol=tolerance)
