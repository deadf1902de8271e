"""Programs written for NumPy run with their imports changed, eager and compiled, and compute what NumPy computes."""

from __future__ import annotations

import re
import types
from pathlib import Path

import numpy as np
import pytest

from tests.ported import assert_compiled_is_eager, eager, module_of

PROGRAMS = ["recipes", "lattice_boltzmann", "graphs", "audio"]


def program(name: str, changed: bool) -> types.ModuleType:
    """The program as a module, with ``numpy`` in its import lines made ``jitgrad.numpy`` if it is to be ``changed``."""
    return module_of(Path(__file__).parent / f"{name}.py", _with_jitgrad if changed else None)


def _with_jitgrad(text: str) -> str:
    return re.sub(r"^(import|from) numpy\b", r"\1 jitgrad.numpy", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_numpy_computes_eager_and_compiled(name: str) -> None:
    expected = program(name, changed=False).main(eager)

    found = assert_compiled_is_eager(program(name, changed=True).main, traces=2)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
