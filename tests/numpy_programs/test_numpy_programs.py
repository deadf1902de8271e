"""Programs written for NumPy run with their imports changed, eager and compiled, and compute what NumPy computes."""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np
import pytest

from tests.ported import assert_compiled_is_eager, eager, program_for

PROGRAMS = ["recipes", "lattice_boltzmann", "graphs", "audio", "dynamic_programming", "simulations"]


def program(name: str, changed: bool) -> types.ModuleType:
    return program_for("numpy", Path(__file__).parent / f"{name}.py", changed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_numpy_computes_eager_and_compiled(name: str) -> None:
    expected = program(name, changed=False).main(eager)

    found = assert_compiled_is_eager(program(name, changed=True).main, traces=2)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
