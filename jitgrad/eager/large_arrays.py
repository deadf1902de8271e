"""Elementwise ops on large arrays, whose NumPy functions take tens of passes over them: kernels replace these.

The module that makes kernels is above this one; it registers itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype
from jitgrad.core.op import OpDef

# Elements from which a kernel computes: NumPy's function takes 5 to 40 ms for them, loading a kernel from disk 30 ms once
# in a process. A size alone decides, so that equal arrays have equal results, whatever was computed before.
LARGE_ELEMENTS = 1 << 18
LARGE = 1 << 20  # bytes of a result whose allocation takes longer than its computation

# False where kernels are to be compared with NumPy, and where nothing is to be compiled.
kernels_allowed: ContextVar[bool] = ContextVar("kernels_allowed", default=True)


@contextmanager
def allowing_kernels(allowed: bool) -> Iterator[None]:
    """Within it, kernels may compute ops on large arrays, or NumPy computes them all."""
    token = kernels_allowed.set(allowed)
    try:
        yield
    finally:
        kernels_allowed.reset(token)


class _Registered:
    """Computes an op on arrays of its dtypes: (op, NumPy function, result's dtype, arrays) -> result."""

    compute: Callable[[OpDef, Callable[..., Any], Dtype, tuple[np.ndarray[Any, Any], ...]], Any] | None = None


def compute_by(compute: Callable[[OpDef, Callable[..., Any], Dtype, tuple[np.ndarray[Any, Any], ...]], Any]) -> None:
    """Let ``compute`` replace NumPy's function."""
    _Registered.compute = staticmethod(compute)


def for_large(op: OpDef, function: Callable[..., Any], out: Dtype) -> Callable[..., Any]:
    """``function``, which computes ``op`` in ``out`` by NumPy, or a kernel where that is allowed."""

    def call(*arrays: np.ndarray[Any, Any]) -> Any:
        compute = _Registered.compute
        if compute is None or not kernels_allowed.get():
            return function(*arrays)
        return compute(op, function, out, arrays)

    return call
