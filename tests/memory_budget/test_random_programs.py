"""Random programs and their gradients in the least memory that is found: they compute what they do without a budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.core.errors import MemoryBudgetError
from jitgrad.testing import random_program


def least_memory(step: Any, *args: Any) -> int | None:
    """What a refused budget names; None for a program without temporaries."""
    try:
        jg.jit(step, memory_budget=0, backend="python").lookup(*args)
    except MemoryBudgetError as error:
        return int(str(error).partition("Allow ")[2].partition(" bytes")[0])
    return None


@pytest.mark.parametrize("seed", range(5))
def test_the_least_memory_changes_no_result(seed: int):
    program = random_program(seed, 40)
    xs = [jg.tensor(x) for x in program.operands(np.float64)]

    def loss(*xs: Any) -> Any:
        outputs = program.function(*xs)
        return sum((out * (0.3 + 0.1 * k)).sum() for k, out in enumerate(outputs)), outputs

    step = jg.value_and_grad(loss, argnums=tuple(range(len(xs))), has_aux=True)
    whole = jg.jit(step, backend="python", check="off")
    needed = whole.lookup(*xs).program.plan.temporary_bytes
    least = least_memory(step, *xs)
    for budget in [] if least is None else [least, (least + needed) // 2]:
        f = jg.jit(step, memory_budget=budget, backend="python", check="off")
        assert f.lookup(*xs).program.plan.temporary_bytes <= budget
        for found, expected in zip(optree.tree_leaves(f(*xs)), optree.tree_leaves(whole(*xs)), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
