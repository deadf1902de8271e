"""Programs written for HIPS autograd run with their imports changed, eager and compiled, and compute what it computes."""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np
import pytest

from tests.ported import assert_compiled_is_eager, eager, program_for

PROGRAMS = ["gaussian_process", "variational", "drum"]


def program(name: str, changed: bool) -> types.ModuleType:
    return program_for("autograd", Path(__file__).parent / f"{name}.py", changed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_program_is_the_eager_program(name: str) -> None:
    expected = assert_compiled_is_eager(program(name, changed=True).main, traces=2)

    assert expected[0] > expected[5]


@pytest.mark.peers
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_autograd_computes(name: str) -> None:
    pytest.importorskip("autograd")
    expected = np.asarray(program(name, changed=False).main(eager))
    np.testing.assert_allclose(program(name, changed=True).main(eager).numpy(), expected, rtol=1e-7, atol=1e-9)
