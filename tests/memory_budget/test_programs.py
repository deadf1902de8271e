"""Programs with a memory budget keep to it, in the plan and when they run, and compute what they compute without it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import Plan
from jitgrad.compiler.recompute.simulate import _Simulation
from jitgrad.compiler.recompute.units import Model
from jitgrad.eager.buffer_pool import POOL
from tests.memory_budget.programs import PROGRAMS, Program, mlp, with_dropout

ALL = pytest.mark.parametrize("name", PROGRAMS)
MEGABYTE = 1 << 20


def plan_of(f: Any, *args: Any) -> Plan:
    plan: Plan = f.lookup(*args).program.plan
    return plan


def trained(program: Program, steps: int = 3, **options: Any) -> tuple[Plan, list[np.ndarray[Any, Any]]]:
    """The plan of the compiled step, and the losses and parameters after some calls."""
    f = jg.jit(program.step, **options)
    jg.manual_seed(1)
    losses = [np.asarray(f(*program.args).item()) for _ in range(steps)]
    assert f.cache_info().fallbacks == 0
    return plan_of(f, *program.args), losses + [p.detach().cpu().numpy() for p in program.model.parameters()]


def assert_same(found: list[np.ndarray[Any, Any]], expected: list[np.ndarray[Any, Any]], exact: bool = False) -> None:
    for x, y in zip(found, expected, strict=True):
        if exact:
            np.testing.assert_array_equal(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-5)


@ALL
def test_the_plan_keeps_to_the_budget_and_the_results_stay_the_same(name: str):
    make, smallest = PROGRAMS[name]
    whole, expected = trained(make())
    for part in (0.9, (0.9 + smallest) / 2, smallest):
        plan, found = trained(make(), memory_budget=part)
        assert plan.limited is not None
        assert plan.limited.before == whole.temporary_bytes
        assert plan.temporary_bytes <= plan.limited.budget == int(part * whole.temporary_bytes)
        same_kernels = plan.limited.spare_memory == 0 and name != "transformer"  # BLAS or own products
        assert_same(found, expected, exact=same_kernels)


@pytest.mark.parametrize("make", [mlp, with_dropout])
def test_values_computed_again_have_the_same_bits(make: Callable[[], Program]):
    """Elementwise kernels and products only: fusion may be another one, and changes no bit."""
    _, expected = trained(make())
    plan, found = trained(make(), memory_budget=0.4)

    assert plan.limited is not None
    assert plan.limited.again
    assert_same(found, expected, exact=True)


def test_random_numbers_computed_again_are_those_of_the_forward_pass():
    plan, found = trained(with_dropout(), memory_budget=0.4)
    ops = {node.op.name for k in plan.limited.again for node in _nodes(plan.steps[k])}  # type: ignore[union-attr]
    with jg.disable_jit():
        program = with_dropout()
        jg.manual_seed(1)
        losses = [program.step(*program.args).item() for _ in range(3)]

    assert "drop" in ops
    np.testing.assert_allclose(found[:3], losses, rtol=1e-5)


def _nodes(step: Any) -> Any:
    return step.node.attr("body").nodes if hasattr(step, "lowered") else (step.node,)


def peak_of_call(f: Any, *args: Any) -> int:
    """The bytes that the first call of a compiled function allocates at a time."""
    assert f.lookup(*args).program.runner  # its tables are no memory of the call
    gc.collect()
    POOL.trim()  # memory that it has already is not counted
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_call_allocates_no_more_than_the_plan_says():
    program = mlp(layers=16, width=32, batch=4096)
    peaks = {}
    for part in (None, 0.7, 0.4):
        f = jg.jit(program.step, memory_budget=part, check="off")
        planned = plan_of(f, *program.args).temporary_bytes
        peaks[part] = peak_of_call(f, *program.args)
        assert planned < peaks[part] < planned + MEGABYTE

    assert peaks[0.4] < 0.45 * peaks[None]


def test_library_calls_that_return_arrays_count():

    def f(x: Any) -> Any:
        for _ in range(3):
            x = jg.sort(x, axis=0) * 0.5
        return x.sum()

    x = jg.randn(300, 500)
    g = jg.jit(f, check="off")
    plan = plan_of(g, x)

    assert plan.external_bytes >= 3 * x.size * 4
    assert peak_of_call(g, x) > plan.temporary_bytes


def test_kernels_that_run_block_by_block_are_computed_again_together():
    def long_formulas(x: Any, w: Any) -> Any:
        values = []
        h = x
        for _ in range(4):
            h = h @ w
            for j in range(120):
                h = jg.minimum(h * 0.9, 1.0) + 0.1 * j
            values.append(h)
        y = x
        for h in reversed(values):
            y = (y @ w) * h
        return y.sum()

    args = jg.randn(3000, 100), 0.01 * jg.randn(100, 100)
    whole = jg.jit(long_formulas)
    f = jg.jit(long_formulas, memory_budget=0.6)
    plan = plan_of(f, *args)
    again = set(plan.limited.again)  # type: ignore[union-attr]

    assert plan_of(whole, *args).block_runs
    assert any(again.issuperset(range(run.first, run.stop)) for run in plan.block_runs)
    assert f(*args).item() == whole(*args).item()
    assert f(*args).item() == whole(*args).item()  # the first calls return eager results


@pytest.mark.parametrize("backend", ["cpu", "python"])
def test_backends_run_the_same_plan(backend: str):
    _, expected = trained(mlp(layers=6, width=4, batch=32))
    plan, found = trained(mlp(layers=6, width=4, batch=32), memory_budget=0.8, backend=backend, steps=3)

    assert plan.limited is not None
    assert_same(found, expected)


def test_passes_can_be_switched_off_too():
    _, expected = trained(mlp())
    plan, found = trained(mlp(), memory_budget=0.4, passes={"hoist_small_reductions": False})

    assert plan.limited is not None
    assert_same(found, expected)


def layers_then_update(w: Any, u: Any, x: Any, y: Any) -> Any:
    """Three layers of ``w`` and nine of ``u``; then ``w`` changes in place, and all layers are read again."""
    first, second = [x], [y]
    for _ in range(3):
        first.append(jg.tanh(first[-1] @ w))
    for _ in range(9):
        second.append(jg.tanh(second[-1] @ u))
    w += 0.01 * first[-1].mean(axis=0) + 0.01 * second[-1].mean(axis=0)
    v = x @ w
    for h in reversed([*first, *second]):
        v = jg.tanh(v @ w) * h
    return v.sum()


def weights_and_data() -> tuple[Any, ...]:
    jg.manual_seed(0)
    return 0.1 * jg.randn(16, 16), 0.1 * jg.randn(16, 16), jg.randn(512, 16), jg.randn(512, 16)


def test_what_was_made_of_weights_before_they_changed_is_not_computed_again():
    expected, args = weights_and_data(), weights_and_data()
    with jg.disable_jit():
        total = layers_then_update(*expected)
    f = jg.jit(layers_then_update, memory_budget=0.65, check="off")

    np.testing.assert_allclose(f(*args).item(), total.item(), rtol=1e-4)
    np.testing.assert_allclose(args[0].numpy(), expected[0].numpy(), rtol=1e-5)
    assert plan_of(f, *args).limited.again  # type: ignore[union-attr]


def test_kernels_that_change_weights_never_run_again():
    program = mlp()
    plan = plan_of(jg.jit(program.step, memory_budget=0.4), *program.args)
    inputs = set(plan.inputs)

    for k in plan.limited.again:  # type: ignore[union-attr]
        assert not any(place.location.buffer in inputs for place in plan.steps[k].writes if place.location is not None)


def test_functions_that_jitgrad_does_not_know_run_once():
    calls = []

    def opaque(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        calls.append(1)
        return np.tanh(x)

    op = jg.custom_op(forward=opaque, vjp=lambda g, out, x: (g * (1 - out * out),))
    w, x = 0.1 * jg.randn(32, 32), jg.randn(400, 32)

    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            h = op(x)
            for _ in range(8):
                h = jg.tanh(h @ w)
            return (op(h) ** 2).mean()

        return jg.value_and_grad(loss)(w)

    f = jg.jit(step, memory_budget=0.7, check="off")
    f(w, x)
    calls.clear()
    f(w, x)

    assert plan_of(f, w, x).limited.again  # type: ignore[union-attr]
    assert len(calls) == 2


@pytest.mark.slow
def test_a_long_program_is_planned_in_little_time():
    """The work on paper grows with the program, not with its square: counted in values whose cost is estimated."""
    counts = []
    for layers in (40, 80, 160):
        program = mlp(layers=layers, width=8, batch=512)
        plan = plan_of(jg.jit(program.step), *program.args)
        counts.append(_estimates(plan))

    assert counts[2] < 5 * counts[1] < 25 * counts[0]


def _estimates(plan: Plan) -> int:
    simulation = _Simulation(Model(plan), plan.arena_bytes // 4)
    count = 0
    score = simulation._score

    def counted(buffer: Any) -> float:
        nonlocal count
        count += 1
        return score(buffer)

    simulation._score = counted  # type: ignore[method-assign]
    simulation.run()
    return count
