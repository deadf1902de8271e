"""compare: its checks, its side effects, and its table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.core.errors import ArgumentError, TracedValueError
from jitgrad.testing import random_program

QUICK = 0.01  # seconds of timing


def array(*shape: int, grad: bool = False) -> jg.Tensor:
    return jg.tensor(np.random.default_rng(0).standard_normal(shape).astype("f4"), requires_grad=grad)


def named(comparison: jg.inspect.Comparison) -> dict[str, object]:
    return {d.what: d for d in comparison.differences}


def test_values_and_gradients_are_compared():
    found = jg.compare(lambda x, w: jg.tanh(x * w).sum(), array(6, grad=True), array(6, grad=True), seconds=QUICK)

    assert found.agrees and found.backward
    assert set(named(found)) == {"result 0", "gradient to argument 0", "gradient to argument 1"}
    assert (found.kernels, found.launches) == (2, 2)
    assert found.max_error is not None and found.max_error.ulps < 16


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_agree_with_eager(seed: int):
    program = random_program(seed, 14)
    operands = [jg.tensor(x, requires_grad=True) for x in program.operands()]

    found = jg.compare(program.function, *operands, seconds=0)

    assert found.agrees, f"{program}\n{found}"


def test_a_jitted_function_keeps_its_own_programs_and_counters():
    f = jg.jit(lambda x: x * 2)

    jg.compare(f, array(3), seconds=QUICK)

    assert (f.cache_info().calls, f.cache_info().traces) == (0, 0)


def test_static_arguments_stay_static():
    f = jg.jit(lambda x, n: x * n, static_argnames=("n",))

    assert jg.compare(f, array(3), n=3, seconds=QUICK).agrees


def test_every_tensor_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    x = array(3, 4)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        return loss

    step(x)
    state = {k: v.numpy().copy() for k, v in {**model.state_dict(), **optimizer.state_dict()}.items()}
    grads = [(p.grad, p.grad.numpy().copy()) for p in model.parameters()]
    jg.manual_seed(7)
    expected_draw = jg.rand(3).numpy()
    jg.manual_seed(7)

    found = jg.compare(step, x, seconds=QUICK)

    assert found.agrees and not found.backward
    np.testing.assert_array_equal(jg.rand(3).numpy(), expected_draw)
    after = {**model.state_dict(), **optimizer.state_dict()}
    for name, old in state.items():
        np.testing.assert_array_equal(after[name].numpy(), old, err_msg=name)
    for p, (grad, values) in zip(model.parameters(), grads, strict=True):
        assert p.grad is grad
        np.testing.assert_array_equal(grad.numpy(), values)
    assert {"new value of model[0].weight", "gradient of model[0].weight"} <= set(named(found))


def test_state_is_put_back_if_the_function_fails():
    w = array(3, grad=True)
    calls = itertools.count()

    def explode(x):
        if next(calls) > 1:
            raise FloatingPointError("third call")
        return x

    fragile = jg.custom_op(forward=explode, vjp=lambda g, out, x: (g,), abstract=lambda x: x)
    before = w.detach().numpy().copy()

    def step(x):
        with jg.no_grad():
            w.sub_(fragile(x))

    with pytest.raises(FloatingPointError):
        jg.compare(step, array(3), seconds=QUICK)

    np.testing.assert_array_equal(w.detach().numpy(), before)


def test_disagreement_is_found_and_shown():
    extra = iter([0.0, 100.0])  # the second run is the compiled one that is checked
    drifting = jg.custom_op(
        forward=lambda x: x + np.float32(next(extra, 0.0)), vjp=lambda g, out, x: (g,), abstract=lambda x: x
    )

    found = jg.compare(lambda x: drifting(x) * 2, array(3), seconds=QUICK)

    assert not found.agrees
    assert found.max_error is not None and found.max_error.problem
    assert "DISAGREES" in str(found) and "WRONG: result 0" in str(found)


def test_a_wrong_gradient_is_found():
    factors = iter([1.0, 3.0])

    def scaled(g):
        return g * np.float32(next(factors, 1.0))

    scale = jg.custom_op(forward=scaled, vjp=lambda g, out, x: (g,), abstract=lambda x: x)
    odd = jg.custom_op(forward=lambda x: x.copy(), vjp=lambda g, out, x: (scale(g),), abstract=lambda x: x)

    found = jg.compare(lambda x: odd(x).sum(), array(3, grad=True), seconds=QUICK)

    problems = {name: bool(d.problem) for name, d in named(found).items()}
    assert problems == {"result 0": False, "gradient to argument 0": True}


def test_a_recording_that_does_something_else_is_found_though_its_kernels_are_right():
    factors = itertools.count(1)
    odd = jg.custom_op(
        forward=lambda x: x.copy(), vjp=lambda g, out, x: (g * float(next(factors)),), abstract=lambda x: x
    )

    found = jg.compare(lambda x: odd(x).sum(), array(3, grad=True), seconds=QUICK)

    assert "the recorded program, run op by op" in named(found)["gradient to argument 0"].problem


def test_integers_are_compared_exactly():
    found = jg.compare(lambda x: x.argmax(axis=1), array(4, 5), seconds=QUICK)

    assert found.agrees
    assert found.max_error is not None and found.max_error.absolute == 0


def test_eager_and_fused_are_timed_and_compiling_apart():
    found = jg.compare(jg.tanh, array(3), seconds=QUICK)

    for timing in (found.eager, found.fused):
        assert timing.samples >= 5
        assert 0 < timing.low <= timing.median <= timing.high
    assert found.first_call > 0
    assert found.speedup == found.eager.median / found.fused.median


def test_bytes_count_what_eager_writes_between_ops():
    found = jg.compare(lambda x: jg.exp(jg.tanh(x)), array(100), seconds=QUICK)

    assert (found.eager_ops, found.eager_bytes, found.fused_bytes) == (2, 4 * 400, 2 * 400)


def test_the_table_shows_both_sides():
    text = str(jg.compare(jg.tanh, array(3), seconds=QUICK))

    assert "agrees with eager" in text
    for word in ("eager", "fused", "median", "first call", "1 (1 kernel)", "largest error"):
        assert word in text


@pytest.mark.parametrize(("variable", "value"), [("JITGRAD_DISABLE", "1"), ("JITGRAD_CHECK", "always")])
def test_settings_that_leave_nothing_to_time_are_refused(monkeypatch, variable: str, value: str):
    monkeypatch.setenv(variable, value)

    with pytest.raises(ArgumentError, match=variable):
        jg.compare(lambda x: x + 1, array(3))


def test_a_function_that_cannot_be_compiled_says_so():
    with pytest.raises(TracedValueError):
        jg.compare(lambda x: x + 1 if float(x.sum()) > 0 else x, array(3))


@pytest.mark.numba
def test_the_time_of_copies_of_the_kernels_bytes_is_in_the_table():
    large = jg.compare(lambda x: jg.exp(x) * 2.0, array(512, 512), seconds=QUICK)
    small = jg.compare(lambda x: jg.exp(x) * 2.0, array(4), seconds=QUICK)

    assert large.copy_seconds > 0 and "copies of the kernels' bytes" in str(large)
    assert small.copy_seconds == 0 and "copies of" not in str(small)
