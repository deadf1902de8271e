"""What tests of loops share: operands, and the comparison of a compiled function with eager execution."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad.compiler.loops.loop_op import LOOP
from tests.compiled import assert_same

RNG = np.random.default_rng(0)
TURNS = 20


def normal(*shape: int, dtype: str = "float64") -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape).astype(dtype))


H, XS, W = normal(3), normal(TURNS, 3), normal(3, 3)


def loops_of(compiled: Any, *args: Any) -> int:
    return sum(node.op is LOOP for node in compiled.lookup(*args).program.plan.graph.nodes)


def check(f: Callable[..., Any], *args: Any, loops: int, rtol: float = 1e-9) -> None:
    """``f`` compiled is as it is eager, with and without the check of the first call, in a program of so many loops."""
    expected = f(*args)
    for mode, calls in (("first", 2), ("off", 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", jg.errors.MismatchWarning)
            compiled = jg.jit(f, check=mode)
            for _ in range(calls):
                assert_same(compiled(*args), expected, rtol=rtol, atol=rtol)
        assert loops_of(compiled, *args) == loops


def cell(c: Any, x: Any) -> Any:
    c = jg.tanh(c @ W + x)
    return c, c * 2
