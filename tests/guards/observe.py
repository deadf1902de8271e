"""Runs functions while their reads are observed, for the tests of guards."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from jitgrad.core.gc_paused import gc_paused
from jitgrad.core.tensor import Tensor
from jitgrad.guards.environment import Environment
from jitgrad.guards.guard import Guard


def observe(function: Any, *args: Any, **static: Any) -> Environment:
    """What ``function`` reads when it runs once, on tensors for parameters without an argument."""
    environment = Environment(function, static)
    if not args:
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        args = tuple(Tensor(np.array([1, 2], np.float32)) for p in needed if p.name not in static)
    with gc_paused():  # as in a trace; pytest and hypothesis have callbacks of the collector
        environment.run(function, *args, **static)
    return environment


def guard_of(function: Any, *args: Any, **static: Any) -> Guard:
    guard = observe(function, *args, **static).guard()
    for _ in range(2):
        reason = guard.check()
        assert reason is None, reason
    return guard
