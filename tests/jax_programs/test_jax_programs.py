"""Programs written for JAX run with their imports changed, eager and compiled, and compute what JAX computes."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ported import assert_compiled_is_eager, eager, program_for

PROGRAMS = [
    "hmc", "kalman", "neural_ode", "convnet", "ising", "particle_filter", "baum_welch", "ray_tracer", "graph_network", "gathers",
    "prng_counters", "automata", "optimiser_chain",
]  # fmt: skip


def program(name: str, changed: bool) -> types.ModuleType:
    return program_for("jax", Path(__file__).parent / f"{name}.py", changed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_program_is_the_eager_program(name: str) -> None:
    traces = 2 if name == "neural_ode" else 1  # whose first arguments share tensors
    assert_compiled_is_eager(program(name, changed=True).main, traces)


@pytest.mark.peers
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_jax_computes(name: str) -> None:
    jax: Any = pytest.importorskip("jax")

    before = jax.config.jax_enable_x64
    try:
        expected = np.asarray(program(name, changed=False).main(jax.jit))
    finally:
        jax.config.update("jax_enable_x64", before)
    np.testing.assert_allclose(program(name, changed=True).main(eager).numpy(), expected, rtol=1e-6, atol=1e-8)
