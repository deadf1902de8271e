"""Users' scalar functions in CUDA kernels. This module imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.backends.llvm.numba_function import numba_function
from jitgrad.backends.llvm.types import DialectFunction


def device_function(function: Callable[..., Any]) -> DialectFunction:
    """``function`` as kernel source can call it: numba's IR of it is linked to the kernel."""
    return numba_function(function)
