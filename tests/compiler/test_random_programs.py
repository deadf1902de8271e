"""Random programs: fused equals eager, values and gradients, inside @jit and through it. The seed names the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit
from jitgrad.testing import RandomProgram, random_program

TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}


def total(program: RandomProgram) -> Any:
    """The program's outputs weighed into one loss, and the outputs."""

    def loss(*xs: Any) -> Any:
        outputs = program.function(*xs)
        value = 0.0
        for k, out in enumerate(outputs):
            value = value + (out * (0.3 + 0.1 * k)).sum()
        return value, outputs

    return loss


def check_values_and_gradients(program: RandomProgram, same: Any, dtype: Any, **tolerance: Any) -> None:
    xs = [jg.tensor(x) for x in program.operands(dtype)]
    step = jg.value_and_grad(total(program), argnums=tuple(range(len(xs))), has_aux=True)

    same(step, *xs, **tolerance)


def check_backward_from_outside(program: RandomProgram) -> None:
    """loss.backward() after the call, through the program's own backward kernels."""
    loss = total(program)
    arrays = program.operands(np.float64)
    eager, fused = ([jg.tensor(x, requires_grad=True) for x in arrays] for _ in range(2))
    loss(*eager)[0].backward()

    jit(lambda *xs: loss(*xs)[0], check="off")(*fused).backward()

    for x, y in zip(eager, fused, strict=True):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None and y.grad is not None:
            np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(120))
def test_fused_equals_eager(seed: int, same: Any) -> None:
    program = random_program(seed, 10)

    check_values_and_gradients(program, same, np.float64, **TOLERANCE)
    if seed % 3 == 0:
        check_backward_from_outside(program)


@pytest.mark.numba
@pytest.mark.parametrize("seed", range(0, 120, 10))
def test_compiled_equals_eager(seed: int, same: Any) -> None:
    program = random_program(seed, 10)

    check_values_and_gradients(program, same, np.float64, **TOLERANCE)
    if seed % 30 == 0:
        check_backward_from_outside(program)


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_float32_stays_float32(seed: int, same: Any) -> None:
    check_values_and_gradients(random_program(seed, 8), same, np.float32, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("seed", range(2000, 2004))
def test_long_programs(seed: int, same: Any) -> None:
    check_values_and_gradients(random_program(seed, 60), same, np.float64, rtol=1e-7, atol=1e-7)
