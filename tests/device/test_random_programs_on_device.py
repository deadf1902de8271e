"""Random programs on the CUDA device, with gradients, give what they give on the host."""

from __future__ import annotations

import pytest

import jitgrad as jg
from jitgrad.testing.on_device import compare_program_on_device

pytestmark = [pytest.mark.usefixtures("cuda"), pytest.mark.filterwarnings("ignore::jitgrad.core.errors.RetraceWarning")]


@pytest.mark.parametrize("seed", [*range(1000, 1010), *(pytest.param(k, marks=pytest.mark.slow) for k in range(1010, 1040))])
def test_random_programs(seed: int) -> None:
    compare_program_on_device(seed, lambda f: jg.jit(f, check="off"))
