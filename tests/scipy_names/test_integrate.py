"""scipy.integrate: odeint with gradients of its adjoint, and rules for samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.errors import ArgumentError, AutogradError, ShapeError, TracedValueError
from jitgrad.scipy import integrate

BOTH = pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")], ids=["eager", "compiled"])
TIMES = np.array([0.0, 0.4, 1.0])
X = np.sort(np.random.default_rng(0).uniform(size=8))
Y = np.sin(3.0 * X)


def oscillation(y: Any, t: Any, frequency: Any) -> Any:
    """A position and a velocity, so that y = sin(frequency * t) from (0, frequency)."""
    return [y[1], -frequency * frequency * y[0]]


@BOTH
def test_solution_and_gradients_are_those_of_the_known_solution(wrap: Any) -> None:
    def last(y0: Any, times: Any, frequency: Any) -> Any:
        return integrate.odeint(oscillation, y0, times, args=(frequency,))[2, 0]

    w = 1.7
    value, grads = wrap(jg.value_and_grad(last, (0, 1, 2)))(jnp.array([0.0, w]), jnp.array(TIMES), jnp.array(w))
    np.testing.assert_allclose(value.numpy(), np.sin(w), rtol=1e-6)
    np.testing.assert_allclose(grads[0].numpy(), [np.cos(w), np.sin(w) / w], rtol=1e-5)
    np.testing.assert_allclose(grads[1].numpy(), [-w * np.cos(w), 0.0, w * np.cos(w)], rtol=1e-5, atol=1e-7)
    # of the frequency alone: the velocity at the start stays
    np.testing.assert_allclose(grads[2].numpy(), np.cos(w) - np.sin(w) / w, rtol=1e-5)


@BOTH
def test_gradients_reach_what_the_function_reads_from_outside(wrap: Any) -> None:
    def decayed(rate: Any) -> Any:
        return integrate.odeint(lambda t, y: -rate * y, 1.0, TIMES, tfirst=True, rtol=1e-10, atol=1e-10)[-1, 0]

    rate = jnp.array(0.7)
    np.testing.assert_allclose(wrap(jg.grad(decayed))(rate).numpy(), -np.exp(-0.7), rtol=1e-7)


def test_gradients_of_gradients() -> None:
    def decayed(rate: Any) -> Any:
        return integrate.odeint(lambda y, t: -rate * y, 1.0, TIMES[:2], rtol=1e-10, atol=1e-10)[-1, 0]

    second = jg.grad(jg.grad(decayed))(jnp.array(0.7))
    np.testing.assert_allclose(second.numpy(), 0.16 * np.exp(-0.28), rtol=1e-6)


def test_a_compiled_function_has_one_program_whatever_the_steps() -> None:
    solve = jg.jit(lambda rate: integrate.odeint(lambda y, t: -rate * y, 1.0, TIMES)[:, 0], backend="python")
    for rate in (0.1, 30.0):
        np.testing.assert_allclose(solve(rate).numpy(), np.exp(-rate * TIMES), atol=1e-7)
    assert solve.cache_info().programs == 1


@pytest.mark.filterwarnings("ignore::jitgrad.core.errors.BatchingWarning")
def test_vmap_solves_each_example() -> None:
    rates = jnp.array([0.1, 2.0])
    found = jg.vmap(lambda rate: integrate.odeint(lambda y, t: -rate * y, 1.0, TIMES)[:, 0])(rates)
    np.testing.assert_allclose(found.numpy(), np.exp(-rates.numpy()[:, None] * TIMES), atol=1e-7)


@pytest.mark.parametrize("times", [TIMES[::-1], TIMES[:1], TIMES[:0], np.array([0.0, 0.0, 1.0, 1.0])])
def test_times_may_fall_repeat_and_be_few(times: np.ndarray[Any, Any]) -> None:
    found = integrate.odeint(lambda y, t: 2.0 * t + 0.0 * y, jnp.array([1.0]), times)[:, 0]
    np.testing.assert_allclose(found.numpy(), 1.0 + times**2 - (times[:1] ** 2 if len(times) else 0.0), atol=1e-9)
    assert jg.grad(lambda y: integrate.odeint(lambda y, t: y, y, times).sum())(jnp.array([1.0])).shape == (1,)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ArgumentError, "mxstep", lambda: integrate.odeint(lambda y, t: -1e6 * y, 1.0, TIMES, mxstep=20)),
        (ArgumentError, "Dfun", lambda: integrate.odeint(lambda y, t: y, 1.0, TIMES, Dfun=len)),
        (ArgumentError, "give no solution", lambda: integrate.odeint(lambda y, t: y * y, 1.0, [0.0, 2.0], rtol=1e-3, atol=1e-3)),
        (ShapeError, "2 elements for a state of 1", lambda: integrate.odeint(lambda y, t: [y[0], t], 1.0, TIMES)),
        (ShapeError, "y0 must be a vector", lambda: integrate.odeint(lambda y, t: y, np.ones((2, 2)), TIMES)),
        (ShapeError, "times must be a vector", lambda: integrate.odeint(lambda y, t: y, 1.0, 3.0)),
        (TracedValueError, "bool", lambda: integrate.odeint(lambda y, t: y if y[0] > 0 else -y, 1.0, TIMES)),
    ],
)
def test_refused(error: type[Exception], match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("n", range(1, 9))
def test_rules_for_samples_are_scipys(n: int) -> None:
    theirs: Any = pytest.importorskip("scipy.integrate")
    for how in ({"x": X[:n]}, {"dx": 0.3}):
        for name, more in (("simpson", {}), ("trapezoid", {}), ("cumulative_trapezoid", {"initial": 0})):
            found, expected = (getattr(module, name)(Y[:n], **how, **more) for module in (integrate, theirs))
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-15)


@BOTH
def test_rules_for_samples_along_axes_with_gradients(wrap: Any) -> None:
    y = np.stack([Y, Y**2])
    for rule in (lambda y: integrate.simpson(y, X, axis=1), lambda y: integrate.cumulative_trapezoid(y, X, axis=1)):
        np.testing.assert_allclose(wrap(lambda y, rule=rule: rule(y.T.T))(y).numpy(), rule(y).numpy(), rtol=1e-12)
    jg.gradcheck(lambda y: integrate.simpson(y, X), [jnp.array(Y)])


def test_other_names_are_scipys_own() -> None:
    pytest.importorskip("scipy")
    assert abs(integrate.quad(np.cos, 0.0, 1.0)[0] - np.sin(1.0)) < 1e-12
    with pytest.raises(AttributeError, match="no_such_rule"):
        _ = integrate.no_such_rule
    with pytest.raises(AutogradError, match="gradient"):
        integrate.romb(jg.tensor([1.0, 2.0, 3.0], requires_grad=True))
