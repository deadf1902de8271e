"""The options of `jit`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jitgrad.backends.base import Target
from jitgrad.backends.targets import find_target
from jitgrad.compiler.pipeline import switched
from jitgrad.compiler.recompute.limit import parse_budget
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.missing_names import meant


@dataclass(frozen=True, slots=True)
class JitOptions:
    """How a @jit function is traced, compiled and checked; `jitgrad.jit` says what each means."""

    fallback: str = "error"
    check: str = "first"
    backend: str | None = None
    background: bool = False
    passes: Mapping[str, bool] | None = None
    memory_budget: int | float | str | None = None

    def __post_init__(self) -> None:
        _one_of("fallback", self.fallback, ("error", "eager"))
        _one_of("check", self.check, ("first", "always", "off"))
        if not isinstance(self.background, bool):
            raise ArgumentError(f"@jit(background={shown(self.background)}): expected True or False")
        if self.passes is not None and not isinstance(self.passes, Mapping):
            raise ArgumentError(
                f'@jit(passes={shown(self.passes)}): expected a dict of names of passes, such as {{"fuse": False}}'
            )
        if self.backend is not None or self.passes or self.memory_budget is not None:
            self.target()

    def target(self, device: str = "cpu") -> Target:
        """What programs for tensors on ``device`` are compiled for."""
        target = find_target(self.backend, device)
        if not self.passes and self.memory_budget is None:
            return target
        chosen = copy.copy(target)
        chosen.passes = switched(target.passes, self.passes or {})
        chosen.memory_budget = None if self.memory_budget is None else parse_budget(self.memory_budget)
        return chosen

    @property
    def check_mode(self) -> str:
        """When results are compared with eager ones: "first", "always" or "off"."""
        return config.read("JITGRAD_CHECK") or self.check


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ArgumentError(f"@jit({name}={value!r}): expected one of {', '.join(allowed)}")


_INSTEAD = {  # options of JAX, torch and numba
    "donate_argnums": "donate=", "donate_argnames": "donate=", "device": "backend=", "target": "backend=",
    "fullgraph": 'fallback=, which is "error" unless you say otherwise',
}  # fmt: skip


def instead(name: str, known: Iterable[str]) -> str:
    """What takes the place of option ``name``, or which of the ``known`` options is meant, as the end of a sentence."""
    return f" (use {_INSTEAD[name]})" if name in _INSTEAD else meant(name, known)
