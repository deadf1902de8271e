"""What a trace does with the frames that it follows, and with what Python keeps for itself."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import EffectWarning


def test_copying_an_object_for_the_first_time_changes_nothing() -> None:
    class Settings:
        rate = 2.0

    settings = Settings()
    compiled = jg.jit(lambda x: x * copy.copy(settings).rate, check="off", backend="python")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(jg.ones(1)).tolist() == [2.0]
    settings.rate = 3.0
    assert compiled(jg.ones(1)).tolist() == [3.0]


def test_a_trace_keeps_no_variables_of_the_frames_that_it_followed() -> None:
    class Held:
        """What can be referred to weakly."""

    found: list[Any] = []

    def inner(x: Any) -> Any:
        held = Held()
        found.append(weakref.ref(held))

        def rates() -> Any:
            of_generator = Held()
            found.append(weakref.ref(of_generator))
            yield 1.0
            yield 2.0

        for rate in rates():
            x = x * rate
        return x

    gc.disable()
    try:
        with pytest.warns(EffectWarning):
            jg.jit(inner, check="off", backend="python")(jg.ones(2))
        assert [ref() for ref in found] == [None, None]
    finally:
        gc.enable()


class Settings:
    rate = 2.0


def _in_hook(x: Any) -> Any:
    y = jg.sin(x)
    y.register_hook(lambda g: g * Settings.rate)
    return jg.autograd.grad(y.sum(), x)[0]


def _in_custom_gradient(x: Any) -> Any:
    @jg.custom_vjp
    def f(x: Any) -> Any:
        return jg.sin(x)

    f.defvjp(lambda x: (jg.sin(x), x), lambda x, g: (g * jg.cos(x) * Settings.rate,))
    return jg.grad(lambda x: (jg.tanh(f(x)) * 2.0).sum())(x)


def _in_nested_function(x: Any) -> Any:
    return jg.vmap(lambda row: jg.sin(row) * Settings.rate)(x[None])[0]


def _in_checkpoint(x: Any) -> Any:
    return jg.grad(lambda x: jg.checkpoint(lambda x: jg.sin(x) * Settings.rate)(x).sum())(x)


@pytest.mark.parametrize("function", [_in_hook, _in_custom_gradient, _in_nested_function, _in_checkpoint])
def test_functions_that_jitgrad_calls_are_followed(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The observer rests while an op is recorded or differentiated, not while a function of the user runs."""
    compiled = jg.jit(function, check="off", backend="python")
    x = jg.ones(3, requires_grad=True)
    first = compiled(x).tolist()
    monkeypatch.setattr(Settings, "rate", 3.0)
    assert compiled(x).tolist() == pytest.approx([1.5 * y for y in first])


def test_an_op_that_fails_does_not_stop_the_observer(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        try:
            jg.add(x, jg.ones(4))
        except jg.errors.ShapeError:
            x = x * 2.0
        return x * Settings.rate

    compiled = jg.jit(function, check="off", backend="python")
    assert compiled(jg.ones(3)).tolist() == [4.0] * 3
    monkeypatch.setattr(Settings, "rate", 3.0)
    assert compiled(jg.ones(3)).tolist() == [6.0] * 3
