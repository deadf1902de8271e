"""Random programs with their gradients: ejected modules give the results of eager execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.testing import RandomProgram, random_program
from tests.compiled import leaves
from tests.eject.ejecting import Eject


def with_gradients(program: RandomProgram) -> Any:
    def loss(*xs: Any) -> Any:
        return sum((out * 0.5).sum() for out in program(*xs))

    def values(*xs: Any) -> Any:
        return program(*xs), jg.value_and_grad(loss, tuple(range(len(xs))))(*xs)

    return values


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("seed", range(40))
def test_values_and_gradients(seed: int, eject: Eject) -> None:
    program = random_program(seed, 6)
    eject(with_gradients(program), *map(jg.tensor, program.operands()))


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("seed", range(4))
def test_bits_without_sums_are_those_of_kernels(seed: int, eject: Eject) -> None:
    program = random_program(seed, 6)
    xs = [jg.tensor(x) for x in program.operands()]
    compiled = jg.jit(with_gradients(program), backend="python", check="off")
    _, ejected = eject(with_gradients(program), *xs)
    expected, found = leaves(compiled(*xs)), leaves(ejected(*xs))
    equal = [a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True)]
    source = "".join(kernel.source for kernel in compiled.kernels(*xs))
    assert all(equal) or "reassoc_" in source


@pytest.mark.numba
@pytest.mark.parametrize("seed", [1, 4])
def test_compiled_by_numba(seed: int, eject: Eject) -> None:
    program = random_program(seed, 6)
    eject(with_gradients(program), *map(jg.tensor, program.operands()))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_stencils_read_at_offsets(mode: str, eject: Eject) -> None:
    def energy(x: Any) -> Any:
        p = jg.pad(x, 1, mode=mode)
        return ((p[2:, 1:-1] - p[:-2, 2:] + jg.roll(x, 2, 1)) ** 2).sum()

    x = jg.tensor(np.random.default_rng(0).normal(size=(6, 40)))
    value, gradient = eject(jg.value_and_grad(energy), x)[1](x)
    expected = jg.value_and_grad(energy)(x)

    np.testing.assert_allclose(np.asarray(value), expected[0].numpy(), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(gradient), expected[1].numpy(), rtol=1e-12, atol=1e-12)
