"""What a memory budget may be, what it says about a program, and how it refuses one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.compiler.recompute.limit import MemoryBudget, parse_budget
from jitgrad.core.errors import ArgumentError, MemoryBudgetError
from tests.memory_budget.programs import mlp, with_checkpoint


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0, MemoryBudget(nbytes=0)),
        (1, MemoryBudget(nbytes=1)),
        (1.0, MemoryBudget(part=1.0)),
        (0.25, MemoryBudget(part=0.25)),
        ("512 MB", MemoryBudget(nbytes=512_000_000)),
        ("1.5GiB", MemoryBudget(nbytes=3 << 29)),
        (" 64 kib ", MemoryBudget(nbytes=1 << 16)),
        ("100 B", MemoryBudget(nbytes=100)),
    ],
)
def test_bytes_are_ints_or_text_and_parts_are_floats(given: Any, expected: MemoryBudget):
    assert parse_budget(given) == expected


@pytest.mark.parametrize("given", [-1, 1.5, -0.1, float("nan"), True, "512", "MB", "5 MBit", "-1 MB", [1], "50 %"])
def test_anything_else_is_refused_before_the_first_call(given: Any):
    with pytest.raises(ArgumentError, match="expected bytes as an int of at least 0, or as text with a unit"):
        jg.jit(lambda x: x, memory_budget=given)


def test_a_budget_that_cannot_be_met_says_what_takes_the_memory_and_where():
    program = mlp(activation=nn.GELU)

    with pytest.raises(MemoryBudgetError) as caught:
        jg.jit(program.step, memory_budget="10 kB").lookup(*program.args)

    text = str(caught.value)
    assert "'step': memory_budget allows 10 kB of temporaries" in text
    assert "f32[256,32] matmul (" in text
    assert "programs.py:" in text
    least = int(text.partition("Allow ")[2].partition(" bytes")[0])
    plan = jg.jit(program.step, memory_budget=least).lookup(*program.args).program.plan
    assert plan.temporary_bytes <= least


def test_a_refused_call_changes_nothing_and_the_next_is_refused_too():
    program = mlp()
    before = [p.detach().numpy().copy() for p in program.model.parameters()]
    f = jg.jit(program.step, memory_budget=1000)

    for _ in range(2):
        with pytest.raises(MemoryBudgetError):
            f(*program.args)
    for p, old in zip(program.model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), old)


def test_a_budget_needs_the_gradient_inside():
    w = jg.randn(8, 8, requires_grad=True)

    @jg.jit(memory_budget="1 MB")
    def loss(x: Any) -> Any:
        return jg.tanh(x @ w).sum()

    with pytest.raises(ArgumentError, match=r"memory_budget=, and gradients flow .* jg\.value_and_grad inside"):
        loss(jg.randn(4, 8))
    with jg.no_grad():
        loss(jg.randn(4, 8))


def test_eager_calls_ignore_the_budget():
    def f(x: Any) -> Any:
        return jg.sort(jg.sort(x) * 2.0).sum()

    x = jg.randn(1000)
    with jg.disable_jit():
        assert jg.jit(f, memory_budget=0)(x).item() == f(x).item()


def test_functions_with_different_budgets_have_programs_of_their_own():
    program = mlp()
    whole, half = jg.jit(program.step), jg.jit(program.step, memory_budget=0.5)
    plans = [f.lookup(*program.args).program.plan for f in (whole, half)]

    assert plans[0].limited is None
    assert plans[1].temporary_bytes <= 0.5 * plans[0].temporary_bytes


def test_methods_keep_their_budget():
    class Model:
        @jg.jit(memory_budget=0)
        def double(self, x: Any) -> Any:
            return jg.sort(x) + jg.sort(-x)

    with pytest.raises(MemoryBudgetError):
        Model().double(jg.randn(100))


def test_explain_says_what_is_computed_again_and_what_that_costs():
    program = mlp(activation=nn.GELU)
    explanation = jg.jit(program.step, memory_budget=0.5).explain(*program.args)
    report = explanation.budget

    assert report is not None
    assert report.after <= report.budget == report.before // 2
    assert {kept.op for kept in report.again} >= {"matmul", "gelu"}
    assert 0 < report.extra < 0.5
    assert report.extra_bytes > 0
    assert report.extra_operations > 0
    text = str(explanation)
    assert "memory budget " in text
    assert f"computed again in {report.steps} steps" in text
    assert "programs.py" in text.partition("computed again")[2]


def test_explain_without_a_budget_says_nothing_of_it():
    program = mlp(layers=2)
    explanation = jg.jit(program.step).explain(*program.args)

    assert explanation.budget is None
    assert "budget" not in str(explanation)


def test_a_program_that_fits_is_left_alone():
    program = mlp(layers=4)
    whole, fits = jg.jit(program.step), jg.jit(program.step, memory_budget=1.0)
    texts = [str(f.lookup(*program.args).program.plan.graph) for f in (whole, fits)]

    assert texts[0] == texts[1]
    assert fits.explain(*program.args).budget.steps == 0


def test_graph_shows_the_passes_of_the_program_that_runs():
    program = mlp()
    f = jg.jit(program.step, memory_budget=0.5)

    assert str(f.graph(*program.args, stage="fuse")) == str(f.lookup(*program.args).program.plan.graph)


def test_replay_and_compare_follow_programs_that_compute_again():
    program = mlp(layers=4)
    f = jg.jit(program.step, memory_budget=0.9)

    assert "step" in str(jg.compare(f, *program.args))


def test_checkpoint_in_a_compiled_step_changes_nothing():
    """Equal values are computed once in one program, so that a budget does what `checkpoint` asks for."""
    program = with_checkpoint()
    explanation = jg.jit(program.step, memory_budget=0.7).explain(*program.args)

    assert explanation.budget is not None
    assert explanation.budget.after <= explanation.budget.budget
