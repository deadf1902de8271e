"""Branches and loops that values of a call decide: a program for each outcome, and the results of eager execution."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import EjectError, RetraceWarning, TracedValueError
from jitgrad.jit.trace_warnings import MANY_TRACES

ROW = np.linspace(-0.5, 1.0, 5)
SCALES = (1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0, 3.0, 0.1, 0.1, 0.1, 1.0, -2.0)


@pytest.fixture(autouse=True, params=["python", pytest.param("cpu", marks=pytest.mark.numba)])
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)


def branch(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x * 3 - 1


def truth_of_a_number(x: Any) -> Any:
    return x * 2 if jg.relu(x).sum() - 1.75 else x + 1


def conditions(x: Any) -> Any:
    return x * 2 if x.sum() > 0 and not x[0] > 0 else x - 1


def largest(x: Any) -> Any:
    return max(x.sum(), x.prod(), 0.0) * x


def position(x: Any) -> Any:
    return x[int(x.argmax())] * x


def listed(x: Any) -> Any:
    return [x + 1, x + 2, x + 3, x + 4, x + 5][jg.argmax(x)]


def chosen(x: Any) -> Any:
    return x * int(x.argmax())


def whole_part(x: Any) -> Any:
    return x * int(x.sum() * 2)


def large(x: Any) -> Any:
    return x, int(x.argmax() + 2**60)


def loop(x: Any) -> Any:
    turns = 0
    while (x * x).sum() > 1e-2:
        x = x * 0.5
        turns += 1
    return x, turns


def asserted(x: Any) -> Any:
    if not (x > -10).all():
        raise ValueError("too small")
    return x + 1


FUNCTIONS = [
    branch, truth_of_a_number, conditions, largest, position, listed, chosen, whole_part, large, loop, asserted,
]  # fmt: skip


def assert_same(found: Any, expected: Any) -> None:
    pairs = zip(jg.tree.leaves(found), jg.tree.leaves(expected), strict=True)
    for a, b in pairs:
        assert type(a) is type(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_call_takes_its_branch(function: Callable[[Any], Any]) -> None:
    f = jg.jit(function)

    for scale in SCALES:
        x = jg.tensor(ROW * scale)
        assert_same(f(x), function(x))
    assert f.cache_info().fallbacks == 0


@pytest.mark.parametrize("function", [branch, conditions, largest, position, whole_part])
def test_gradients_are_those_of_the_branch(function: Callable[[Any], Any]) -> None:
    f = jg.jit(function)

    for scale in SCALES:
        x, y = (jg.tensor(ROW * scale, requires_grad=True) for _ in range(2))
        (f(x) ** 2).sum().backward()
        (function(y) ** 2).sum().backward()
        assert_same(x.grad, y.grad)


def test_second_derivatives() -> None:
    def slope(x: Any) -> Any:
        return jg.grad(lambda v: v**3 if v > 0 else v**2)(x)

    second = jg.jit(jg.grad(slope))

    assert [second(jg.tensor(v)).item() for v in (2.0, -1.0, 3.0, 3.0, -2.0)] == [12.0, 2.0, 18.0, 18.0, 2.0]


def test_an_outcome_is_traced_once() -> None:
    f = jg.jit(branch)

    for scale in SCALES:
        f(jg.tensor(ROW * scale))
    assert f.cache_info().traces == 2
    assert len(f.why_retraced()) == 1 and "bool()" in f.why_retraced()[0] and "was True and is False" in f.why_retraced()[0]


def training(limit: float) -> tuple[Callable[[Any, Any], Any], Any]:
    """A step that clips gradients, and its state."""
    model = jg.nn.Linear(3, 1, dtype=jg.float64)
    model.load_state_dict({"weight": jg.tensor([[0.5, -1.0, 2.0]]), "bias": jg.tensor([0.1])})
    optimizer = jg.optim.Adam(model.parameters(), 0.1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        norm = sum((p.grad**2).sum() for p in model.parameters()) ** 0.5
        if norm > limit:
            for p in model.parameters():
                p.grad = p.grad * (limit / norm)
        optimizer.step()
        return loss

    return step, model


@pytest.mark.parametrize("check", ["first", "off", "always"])
def test_a_step_that_clips_gradients_updates_its_state_once(check: str) -> None:
    rng = np.random.default_rng(0)
    x, y = jg.tensor(rng.normal(size=(20, 3))), jg.tensor(rng.normal(size=(20, 1)))
    (eager, model), (step, compiled) = training(1.0), training(1.0)
    f = jg.jit(step, check=check)

    for _ in range(25):
        np.testing.assert_allclose(f(x, y).item(), eager(x, y).item(), rtol=1e-9)
    for p, q in zip(model.parameters(), compiled.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-9)
    assert f.cache_info().traces == 2


def test_a_random_walk_draws_the_numbers_of_eager_execution() -> None:
    def walk(x: Any, generator: Any) -> Any:
        proposal = x + jg.randn(3, generator=generator)
        if jg.rand(generator=generator).log() < (x**2).sum() - (proposal**2).sum():
            return proposal
        return x

    generators = [jg.Generator(5), jg.Generator(5)]
    f = jg.jit(walk, static_argnames="generator")
    a = b = jg.zeros(3)
    for _ in range(40):
        a, b = f(a, generators[0]), walk(b, generators[1])
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    assert f.cache_info().traces == 2


def test_another_program_finds_what_the_first_one_read() -> None:
    """A program that is not right for a call has written nothing, not even over donated memory."""

    def update(x: Any, count: Any) -> Any:
        count += 1
        x = x * 2
        return x if x.sum() > 0 else x + 100

    f = jg.jit(update, donate="x")
    count = jg.tensor(0)
    for k, scale in enumerate(SCALES):
        assert_same(f(jg.tensor(ROW * scale), count), update(jg.tensor(ROW * scale), jg.tensor(0)))
        assert count.item() == k + 1


def test_what_fails_in_one_branch_alone_does_not_fail_in_the_other() -> None:
    def solve(a: Any, b: Any) -> Any:
        if jg.linalg.det(a) == 0:
            return b * 0
        return jg.linalg.solve(a, b)

    f, b = jg.jit(solve), jg.ones(2, dtype=jg.float64)
    for scale in (1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0):
        a = jg.eye(2, dtype=jg.float64) * scale
        assert_same(f(a, b), solve(a, b))


def test_an_error_of_the_function_is_raised_as_in_eager_execution() -> None:
    f = jg.jit(asserted)

    for _ in range(3):
        assert_same(f(jg.tensor(ROW)), jg.tensor(ROW) + 1)
        with pytest.raises(ValueError, match="too small"):
            f(jg.tensor(ROW * 100))


def test_many_outcomes_run_eagerly_and_say_so() -> None:
    f, x = jg.jit(chosen), np.zeros(60)

    with pytest.warns(RetraceWarning, match="int"):
        for k in range(MANY_TRACES):
            f(jg.tensor(np.eye(60)[k]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (*range(60), 3, 3, 3, 50):
            x = jg.tensor(np.eye(60)[k])
            assert_same(f(x), chosen(x))
    assert f.cache_info().traces == MANY_TRACES


def test_a_decision_that_rounding_makes_is_that_of_eager_execution() -> None:
    """The program adds in another order, and finds another truth than the ops one by one."""
    x = jg.tensor(np.random.default_rng(3).normal(size=1000))
    exactly = x.exp().sum().item()

    def f(x: Any) -> Any:
        return x + 1 if x.exp().sum() == exactly else x - 1

    g = jg.jit(f)
    for _ in range(5):
        assert_same(g(x), f(x))


def test_loops_over_what_lax_loops_over() -> None:
    f = jg.jit(lambda x: jg.lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2, x))

    assert [f(jg.ones(3, 2) * k)[0, 0].item() for k in (1, 1, 2, 0.25, 1)] == [2.0, 2.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("function", [branch, position, listed, loop])
def test_without_a_call_there_is_nothing_to_decide_by(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TracedValueError) as caught:
        jg.jit(function).compile(jg.ShapeDtypeStruct((5,)))

    text = str(caught.value)
    assert "needs the value of an array that is only being traced" in text and "test_decisions.py" in text
    assert ("Keep the number a tensor" if function in (position, listed) else "jitgrad.where(cond, a, b)") in text


def test_one_example_of_many_cannot_decide() -> None:
    with pytest.raises(TracedValueError, match="differ"):
        jg.jit(jg.vmap(branch))(jg.ones(3, 5))


def test_a_compiled_program_says_what_it_supposes() -> None:
    f = jg.jit(branch)
    for scale, truth in ((1.0, "True"), (-1.0, "False"), (1.0, "True")):
        text = str(f.explain(jg.tensor(ROW * scale)))
        assert "supposes: bool() at" in text and f"is {truth}" in text and "test_decisions.py" in text


def test_comparing_and_replaying_follow_the_call() -> None:
    f = jg.jit(branch)
    for scale in (1.0, -1.0):
        x = jg.tensor(ROW * scale, requires_grad=True)
        assert jg.compare(f, x, seconds=0.01).agrees
        assert f.replay(2, x).ops[-1].value == branch(x)[2].item()


def test_a_thread_compiles_the_other_program() -> None:
    f = jg.jit(branch, background=True)
    for scale in SCALES:
        x = jg.tensor(ROW * scale)
        for _ in range(2):
            assert_same(f(x), branch(x))
            f.compile(x)
    assert f.cache_info().traces == 2


def test_threads_take_their_branches() -> None:
    f = jg.jit(branch)
    xs = [jg.tensor(ROW * scale) for scale in SCALES]
    expected = [branch(x).tolist() for x in xs]
    with ThreadPoolExecutor(4) as pool:
        runs = [*pool.map(lambda k: [f(x).tolist() for x in xs[k % 3 :]], range(24))]
    assert all(run == expected[k % 3 :] for k, run in enumerate(runs))


def test_a_module_of_its_own_cannot_go_to_another_program(tmp_path: Any) -> None:
    with pytest.raises(EjectError, match=r"bool\(\) at .*test_decisions"):
        jg.jit(branch).eject(tmp_path / "kernel.py", jg.tensor(ROW))


def test_a_step_that_raises_in_the_program_of_another_call_is_no_error() -> None:
    def classes(x: Any) -> Any:
        return jg.one_hot(x, int(x.max()) + 1) * 2, x.sum()

    def rows(x: Any) -> Any:
        return jg.take(jg.arange(int(x.max()) + 1) * 0.5, x, 0)

    for function in (classes, rows):
        f = jg.jit(function)
        for row in ([3, 1], [3, 1], [3, 0], [0, 1], [4, 1], [4, 1], [4, 2], [5, 0]):
            assert_same(f(jg.tensor(row)), function(jg.tensor(row)))
        with pytest.raises(IndexError):
            f(jg.tensor([-9, 1]))
