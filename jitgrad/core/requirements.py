"""Packages that only some functions need, and what to say where they are missing."""

from __future__ import annotations

import importlib.util

from jitgrad.core.errors import BackendError


def require_numba(what: str) -> None:
    """Raise BackendError with a remedy if numba, which ``what`` needs, is not installed."""
    if importlib.util.find_spec("numba") is None:
        raise BackendError(f"{what} needs numba, which is not installed: pip install 'jitgrad[numba]'")
