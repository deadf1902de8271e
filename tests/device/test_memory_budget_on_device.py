"""Programs with a memory budget on the CUDA device: they allocate what the plan says, and learn what others do."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from tests.memory_budget.programs import mlp

pytestmark = pytest.mark.usefixtures("cuda")


def test_a_step_keeps_to_its_budget_on_the_device():
    losses, held = {}, {}
    for part in (None, 0.6):
        program = mlp(layers=6, width=4, batch=32, dropout=0.2, device="cuda")
        f = jg.jit(program.step, memory_budget=part, check="off")
        plan = f.lookup(*program.args).program.plan
        losses[part] = [f(*program.args).item() for _ in range(2)]
        frame = f.lookup(*program.args).program.frames[0]
        held[part] = frame._arena.nbytes
        assert held[part] == plan.arena_bytes
        if part is not None:
            assert plan.limited.again
            assert plan.temporary_bytes <= plan.limited.budget
    np.testing.assert_array_equal(losses[0.6], losses[None])
    assert held[0.6] <= 0.6 * held[None]
