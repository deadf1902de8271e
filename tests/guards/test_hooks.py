"""Hooks on leaves belong to what a compiled function reads: those of outside tensors and of arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError


def _outside() -> tuple[Any, Any]:
    w = jg.ones(3, requires_grad=True)

    def step(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad

    return w, step


def _argument() -> tuple[Any, Any]:
    w = jg.ones(3, requires_grad=True)
    compiled = SimpleNamespace(of=None)

    def step(x: Any, w: Any) -> Any:
        return jg.autograd.grad((w * x).sum(), w)[0]

    def call(x: Any) -> Any:
        compiled.of = compiled.of or jg.jit(step)
        return compiled.of(x, w)

    return w, call


@pytest.mark.parametrize("place", ["outside", "argument", "one of many arguments"])
def test_hooks_come_and_go_between_calls(place: str) -> None:
    x = jg.ones(3)
    ws = [jg.ones(3, requires_grad=True) for _ in range(12)]

    def many(x: Any, ws: Any) -> Any:
        return jg.autograd.grad(sum((w * x).sum() for w in ws), ws)[5]

    if place == "one of many arguments":
        compiled = jg.jit(many)
        w, call = ws[5], lambda x: compiled(x, ws)
    elif place == "argument":
        w, call = _argument()
    else:
        w, step = _outside()
        call = jg.jit(step)
    scale = 2.0

    def gradient() -> float:
        return [call(x).tolist()[0] for _ in range(3)][-1]

    assert gradient() == 1.0
    first = w.register_hook(lambda g: g * scale)
    assert gradient() == 2.0
    second = w.register_hook(lambda g: g + 1.0)
    assert gradient() == 3.0
    first.remove()
    assert gradient() == 2.0
    second.remove()
    assert gradient() == 1.0
    w.register_hook(lambda g: g * scale)
    scale = 5.0
    assert gradient() == 5.0
    scale = 7.0
    assert gradient() == 7.0


def test_a_hook_that_stays_after_the_function_is_refused_and_taken_away() -> None:
    w, step = _outside()

    @jg.jit
    def adds(x: Any) -> Any:
        w.register_hook(lambda g: g * 2.0)
        return step(x)

    with pytest.raises(UnguardableError, match="register_hook before the @jit function"):
        adds(jg.ones(3))
    assert step(jg.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_a_hook_for_the_time_of_the_function() -> None:
    w, step = _outside()

    @jg.jit
    def doubled(x: Any) -> Any:
        handle = w.register_hook(lambda g: g * 2.0)
        try:
            return step(x)
        finally:
            handle.remove()

    for _ in range(3):
        assert doubled(jg.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert step(jg.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_a_hook_registered_anew_needs_no_trace_if_it_is_like_the_one_before() -> None:
    w, step = _outside()
    compiled = jg.jit(step)
    for _ in range(4):
        handle = w.register_hook(lambda g: g * 2.0)
        np.testing.assert_array_equal(compiled(jg.ones(3)).numpy(), [2.0, 2.0, 2.0])
        handle.remove()
    assert compiled.cache_info().traces == 1
