"""Recurrences over logarithms of sums of outer sums, as in conditional random fields and hidden Markov models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)
EMISSIONS, TRANSITIONS = jg.tensor(R.standard_normal((6, 5, 7))), jg.tensor(R.standard_normal((7, 7)))


def forward(emissions: Any, transitions: Any) -> Any:
    state = emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        state = jg.logsumexp(state[:, :, None] + transitions, 1) + emissions[:, t]
    return state


def best_path(emissions: Any, transitions: Any) -> Any:
    state = emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        state = (state[:, None, :] + transitions.T).max(2) + emissions[:, t]
    return state


@pytest.mark.numba
@pytest.mark.parametrize("program", [forward, best_path])
def test_values_and_gradients(program: Any, same: Any) -> None:
    same(program, EMISSIONS, TRANSITIONS, rtol=1e-13)
    same(jg.grad(lambda e, t: (program(e, t) ** 2).sum(), (0, 1)), EMISSIONS, TRANSITIONS, rtol=1e-11, atol=1e-12)


def test_each_step_is_a_kernel_that_writes_no_outer_sum() -> None:
    graph = jit(forward, check="off").graph(jg.ones((64, 4, 20)), jg.ones((20, 20)), stage="fuse")

    kernels = [node for node in graph.nodes if node.op.name == "fused"]
    # one for each of the three steps, and one that copies the first state
    assert [[out.aval.size for out in node.outs] for node in kernels] == [[64 * 20]] * 4
    assert not [node for node in graph.nodes if node.op.name in ("max", "sum")]


def test_gradients_make_no_reduction_a_call_of_its_own() -> None:
    gradient = jit(jg.grad(lambda e, t: forward(e, t).sum(), (0, 1)), check="off")
    graph = gradient.graph(jg.ones((64, 4, 20)), jg.ones((20, 20)), stage="fuse")

    assert not [node for node in graph.nodes if node.op.name in ("max", "sum", "any")]
