"""Settings of the process that a function may change by code whose instructions are not followed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core import config
from jitgrad.core.context import grad_enabled
from jitgrad.core.errors import UnguardableError
from jitgrad.runtime.executor.thread_pool import get_num_threads, set_num_threads


class _Setting(NamedTuple):
    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], Any]


def _set_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]


_SETTINGS = (
    _Setting("the grad mode", grad_enabled.get, grad_enabled.set),
    _Setting("the default dtype (set_default_dtype)", config.get_default_dtype, config.set_default_dtype),
    _Setting("the number of threads (set_num_threads)", get_num_threads, set_num_threads),
    _Setting("how NumPy treats errors (np.seterr)", np.geterr, lambda kinds: np.seterr(**kinds)),
    _Setting("how NumPy prints (np.set_printoptions)", np.get_printoptions, lambda options: np.set_printoptions(**options)),
    _Setting("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    _Setting("which warnings are shown (warnings.simplefilter)", lambda: [*warnings.filters], _set_filters),
    _Setting("the working directory", os.getcwd, os.chdir),
)


class ProcessState:
    """The state of the process before a trace."""

    def __init__(self) -> None:
        self._before = [setting.read() for setting in _SETTINGS]

    def restore(self) -> list[str]:
        """Undo what the trace changed; the names of that."""
        changed = []
        for setting, before in zip(_SETTINGS, self._before, strict=True):
            if setting.read() != before:
                setting.restore(before)
                changed.append(setting.name)
        return changed

    def check(self, name: str) -> None:
        """Raise UnguardableError if the traced function ``name`` has changed something, which calls would not do again."""
        if changed := self.restore():
            raise UnguardableError(
                f"@jit function {name!r} changes {' and '.join(changed)}; the compiled program would not do that again: change "
                "it outside of the function, or change it back before the function returns"
            )
