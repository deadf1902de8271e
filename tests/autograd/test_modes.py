"""Grad modes as context managers and decorators of functions, generators and coroutines."""

from __future__ import annotations

import asyncio

import pytest

import jitgrad as jg
from jitgrad.autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from jitgrad.ops.creation import tensor


def test_modes_nest_and_are_restored_by_exceptions():
    with pytest.raises(ZeroDivisionError), no_grad():
        assert not is_grad_enabled()
        with enable_grad():
            assert is_grad_enabled()
            with inference_mode():
                assert not is_grad_enabled()
                with inference_mode(False):
                    assert is_grad_enabled()
            assert is_grad_enabled()
        raise ZeroDivisionError
    assert is_grad_enabled()


def test_no_grad_records_nothing():
    x = tensor([1.0], requires_grad=True)
    with no_grad():
        y = x * 2.0
    assert not y.requires_grad
    assert y.grad_fn is None


def test_one_object_may_be_entered_twice():
    mode = no_grad()
    with mode:
        with mode:
            assert not is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_set_grad_enabled_works_at_once_and_as_a_block():
    with set_grad_enabled(False):
        assert not is_grad_enabled()
    assert is_grad_enabled()
    set_grad_enabled(False)
    try:
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)


def test_set_grad_enabled_as_decorator_changes_only_the_function():
    @set_grad_enabled(False)
    def mode_inside():
        return is_grad_enabled()

    assert is_grad_enabled()
    assert mode_inside() is False
    assert mode_inside() is False
    assert is_grad_enabled()


def test_decorated_function_keeps_its_name_and_recurses():
    @no_grad()
    def count_down(n):
        return [is_grad_enabled()] + (count_down(n - 1) if n else [])

    assert count_down(2) == [False] * 3
    assert count_down.__name__ == "count_down"
    assert is_grad_enabled()


def test_generator_runs_in_the_mode_and_its_caller_does_not():
    @no_grad()
    def modes():
        try:
            received = yield is_grad_enabled()
            while True:
                try:
                    received = yield (is_grad_enabled(), received)
                except KeyError:
                    received = yield ("caught", is_grad_enabled())
        finally:
            closed.append(is_grad_enabled())

    closed = []
    running = modes()
    assert next(running) is False
    assert is_grad_enabled()
    assert running.send(5) == (False, 5)
    assert running.throw(KeyError) == ("caught", False)
    assert is_grad_enabled()
    running.close()
    assert closed == [False]
    assert is_grad_enabled()


def test_generator_return_value_passes_through():
    @no_grad()
    def items():
        yield 1
        return is_grad_enabled()

    def outer():
        result = yield from items()
        yield result

    assert list(outer()) == [1, False]


def test_coroutine_runs_in_the_mode_beside_others():
    @no_grad()
    async def mode_inside():
        await asyncio.sleep(0)
        return is_grad_enabled()

    async def both():
        return await asyncio.gather(mode_inside(), mode_of_task())

    async def mode_of_task():
        await asyncio.sleep(0)
        return is_grad_enabled()

    assert asyncio.run(both()) == [False, True]


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")])
def test_detach_in_place_cuts_the_history(wrap) -> None:
    x = jg.tensor([1.0, 2.0], requires_grad=True)

    def loss(x):
        y = x * 3.0
        assert y.detach_() is y and y.is_leaf and not y.requires_grad
        return (x * y).sum()

    wrap(loss)(x).backward()
    assert x.grad.tolist() == [3.0, 6.0]
    with pytest.raises(jg.errors.AutogradError, match=r"detach_ of .*, a view with history"):
        (x * 2.0)[:1].detach_()
    assert not x.detach_().requires_grad
