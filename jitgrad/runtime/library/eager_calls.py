"""The kernels of library ops for eager execution, where it may compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitgrad.core import config
from jitgrad.core.aval import Aval
from jitgrad.core.op import OpDef
from jitgrad.eager.library_kernels import find_library_kernels_by
from jitgrad.runtime.library.registry import find_kernel


def find_eager_kernel(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function that computes ``op`` faster than NumPy's; None: use that."""
    if config.read("JITGRAD_BACKEND") != "cpu" or config.read("JITGRAD_DISABLE"):
        return None
    return find_kernel(op, avals, attrs)


find_library_kernels_by(find_eager_kernel)
