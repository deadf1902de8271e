"""What tests of reductions of inner axes share."""

from __future__ import annotations

from typing import Any

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import jit

CLOSE = {"rtol": 1e-11, "atol": 1e-11}


def schedules(f: Any, *args: Any) -> list[Any]:
    steps = jit(f, check="off").lookup(*args).program.plan.steps
    return [s.lowered.schedule for s in steps if isinstance(s, KernelStep)]


def normalise(x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred * jg.rsqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
