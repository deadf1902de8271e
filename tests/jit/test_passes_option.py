"""jit(passes={...}): which passes run. A pass that is not required changes how, not what, a program computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.pipeline import PASSES
from jitgrad.core.errors import ArgumentError
from jitgrad.jit.decorator import jit
from jitgrad.testing import random_program
from tests.compiler.test_random_programs import total

OPTIONAL = [step.name for step in PASSES if not step.required]


@pytest.mark.parametrize("name", OPTIONAL)
def test_programs_are_right_without_any_optional_pass(name: str) -> None:
    for seed in range(3, 250, 25):
        program = random_program(seed, 10)
        xs = [jg.tensor(x) for x in program.operands(np.float64)]
        step = jg.value_and_grad(total(program), argnums=tuple(range(len(xs))), has_aux=True)
        (value, outputs), gradients = step(*xs)
        (compiled, others), compiled_gradients = jit(step, check="off", backend="python", passes={name: False})(*xs)

        np.testing.assert_allclose(compiled.numpy(), value.numpy(), rtol=1e-9, atol=1e-9)
        for ours, theirs in zip((*others, *compiled_gradients), (*outputs, *gradients), strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-9)


def test_a_sum_over_axes_of_length_1_in_a_kernel_with_longer_ones() -> None:
    """The sum of one number had no loop, and was 0, where no pass had made a reshape of it."""

    def f(x: Any) -> Any:
        return (x * 0.3).sum() + (jg.sin(x @ x.T) * 0.4).sum()

    x = jg.tensor(np.linspace(0.1, 1.0, 17).reshape(1, 17))
    result = jit(f, check="off", backend="python", passes={"simplify": False})(x)

    np.testing.assert_allclose(result.numpy(), f(x).numpy())


def test_without_fusion_every_op_runs_alone() -> None:
    f = jit(lambda x: jg.tanh(x) * 2.0 + 1.0, backend="python", passes={"fuse": False})
    x = jg.ones(4)

    assert f(x).tolist() == f.eager(x).tolist()
    assert not f.kernels(x) and f.explain(x).fused == 0
    with pytest.raises(ArgumentError, match="fuse"):
        f.graph(x, stage="fuse")


def test_switching_a_pass_on_changes_nothing() -> None:
    f = jit(lambda x: jg.tanh(x) * 2.0, backend="python", passes=dict.fromkeys(OPTIONAL, True))

    assert len(f.kernels(jg.ones(4))) == 1


def test_methods_and_comparisons_keep_the_options() -> None:
    class Model:
        @jit(backend="python", passes={"fuse": False})
        def f(self, x: Any) -> Any:
            return jg.tanh(x) * 2.0

    model, x = Model(), jg.ones(4)
    assert not model.f.kernels(x)
    assert jg.compare(model.f, x).kernels == 0


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ({"fusion": False}, "there is no pass 'fusion'"),
        ({"simplfy": False}, "did you mean 'simplify'"),
        ({"eliminate_dead": False}, "cannot be switched off: kernels are made for values that something reads"),
        ("fuse", "expected a dict of names of passes"),
    ],
)
def test_wrong_options_are_errors(passes: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        jit(lambda x: x, passes=passes)
