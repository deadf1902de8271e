"""`disable_jit`: whether @jit functions run eagerly. Needs no compiler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jitgrad.eager.large_arrays import allowing_kernels

disabled: ContextVar[bool] = ContextVar("jit_disabled", default=False)


@contextmanager
def disable_jit() -> Iterator[None]:
    """Within it, every @jit function runs eagerly, and NumPy computes all ops."""
    token = disabled.set(True)
    try:
        with allowing_kernels(False):
            yield
    finally:
        disabled.reset(token)
