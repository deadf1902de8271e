"""Random programs: reproducible, bounded, varied, and with correct gradients."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from jitgrad.testing import RandomProgram, check_grads, random_program


def values(program: RandomProgram, dtype: type = np.float32) -> list[np.ndarray[Any, Any]]:
    return [out.concrete("a test") for out in program(*program.operands(dtype))]


@pytest.mark.parametrize("seed", range(60))
def test_values_are_tame_and_keep_their_dtype(seed: int) -> None:
    for out in values(random_program(seed, 25)):
        assert out.dtype == np.float32
        assert np.isfinite(out).all() and np.max(np.abs(out)) <= 8.0


def test_a_seed_gives_one_program() -> None:
    first, second = random_program(7, 12), random_program(7, 12)

    assert first.source == second.source != random_program(8, 12).source
    for x, y in zip(values(first), values(second), strict=True):
        np.testing.assert_array_equal(x, y)


def test_float32_and_float64_agree() -> None:
    for seed in range(20):
        program = random_program(seed, 12)
        for x, y in zip(values(program), values(program, np.float64), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-3, err_msg=str(program))


def test_programs_are_varied() -> None:
    """Among many there are several outputs, shared values, broadcasts, reductions, products and views."""
    programs = [random_program(seed, 15) for seed in range(60)]
    text = "\n".join(p.source for p in programs)

    for name in (
        "matmul",
        "softmax",
        "sum",
        "reshape",
        "matrix_transpose",
        "where",
        "flip",
        "expand_dims",
        "cut",
    ):
        assert f"{name}(" in text, name
    assert len(Counter(len(values(p)) for p in programs)) == 3
    assert any(p.source.count("t0") > 3 for p in programs)


@pytest.mark.parametrize("seed", range(12))
def test_gradients_of_random_programs(seed: int) -> None:
    program = random_program(seed, 10)

    check_grads(program, program.operands(np.float64), order=1, step=1e-5, rtol=1e-6)
