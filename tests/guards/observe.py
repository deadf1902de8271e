"""Runs functions while their reads are observed, for the tests of guards."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

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
    environment.run(function, *args, **static)
    return environment


def guard_of(function: Any, *args: Any, **static: Any) -> Guard:
    guard = observe(function, *args, **static).guard()
    assert guard.check() is None
    assert guard.check() is None
    return guard
