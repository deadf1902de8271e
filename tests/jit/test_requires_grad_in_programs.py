"""Which results of compiled functions require grad, and where their gradients go: as in eager execution, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import GraphFreedError, UnguardableError

CALLS = 4


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def leaf() -> Any:
    return jg.tensor([1.0, 2.0, 3.0], requires_grad=True)


# --- histories that the function has used up ---------------------------------------------------------------------


def test_backward_through_a_returned_loss_is_an_error_after_the_function_called_it() -> None:
    w = leaf()

    def step(x: Any) -> Any:
        w.grad = None
        loss = ((w * x) ** 2).mean()
        loss.backward()
        return loss

    for f in (step, *[jg.jit(step, check="off")] * CALLS):
        loss = f(jg.ones(3))
        assert loss.requires_grad
        with pytest.raises(GraphFreedError, match="the first one freed the graph"):
            (loss + w.sum()).backward()  # the gradient of the first part was missing, in silence


def test_backward_through_a_sum_passes_twice_as_in_eager() -> None:
    w = leaf()

    def step(x: Any) -> Any:
        w.grad = None
        loss = (w + x).sum()
        loss.backward()
        return loss

    for f in (step, *[jg.jit(step, check="off")] * CALLS):
        f(jg.ones(3)).backward()
        assert w.grad.tolist() == [2.0, 2.0, 2.0]


# --- leaves that the function makes --------------------------------------------------------------------------------


def test_a_detached_argument_that_requires_grad_is_a_leaf_with_the_memory_of_the_argument() -> None:
    def function(x: Any) -> Any:
        y = x.detach().requires_grad_()
        (y**2).sum().backward()
        return y, y.grad, x[1:].detach().requires_grad_(), x.detach()

    for f in (function, *[jg.jit(function, check="off")] * CALLS):
        x = leaf()
        y, grad, part, detached = f(x)
        assert [t.requires_grad for t in (y, grad, part, detached)] == [True, False, True, False]
        assert y.is_leaf and part.is_leaf and grad.tolist() == [2.0, 4.0, 6.0]
        (y.sum() + part.sum()).backward()
        assert x.grad is None and part.grad.tolist() == [1.0, 1.0]
        with jg.no_grad():
            part.fill_(7.0)
        assert x.tolist() == y.tolist() == [1.0, 7.0, 7.0]


@pytest.mark.parametrize("made_of", [lambda x: x.detach(), lambda x: (x * 2).detach()])
def test_a_result_computed_from_a_new_leaf_that_is_a_result_is_an_error(made_of: Callable[[Any], Any]) -> None:
    @jg.jit
    def function(x: Any) -> Any:
        y = made_of(x).requires_grad_()
        return y, y[1:] * 3

    with pytest.raises(UnguardableError, match=r"new leaf f32\[3\].* a result f32\[2\] that .*computed from it"):
        function(jg.ones(3))


# --- flags of the caller's tensors -----------------------------------------------------------------------------------


def test_requires_grad_of_an_argument_may_not_change() -> None:
    @jg.jit
    def function(x: Any) -> Any:
        return x.requires_grad_() * 2

    x = jg.ones(3)
    with pytest.raises(UnguardableError, match=r"changes requires_grad of argument 0 f32\[3\] to True.*detach"):
        function(x)
    assert not x.requires_grad


def test_a_refused_change_of_an_outside_tensor_is_undone() -> None:
    w = leaf()

    @jg.jit
    def function(x: Any) -> Any:
        w.requires_grad = False
        return x * w

    with pytest.raises(UnguardableError, match=r"requires_grad"):
        function(jg.ones(3))
    assert w.requires_grad


def test_tensors_may_be_frozen_for_a_part_of_a_step() -> None:
    w, v = leaf(), leaf()

    def step(x: Any) -> Any:
        w.grad = v.grad = None
        w.requires_grad_(False)
        first = (x * w * v).sum()
        w.requires_grad_(True)
        (first + (w * 5).sum()).backward()
        return first

    for f in (step, *[jg.jit(step, check="off")] * CALLS):
        f(jg.ones(3))
        assert w.requires_grad and w.grad.tolist() == [5.0, 5.0, 5.0] and v.grad.tolist() == [1.0, 2.0, 3.0]


# --- arguments changed without a history --------------------------------------------------------------------------------


def _changed(x: Any) -> Any:
    part = x[1:]
    with jg.no_grad():
        x += 3
    return part, x[1:], x.reshape(3, 1)


@pytest.mark.parametrize("computed", [False, True])
def test_views_of_an_argument_changed_under_no_grad_share_its_memory(computed: bool) -> None:
    for f in (_changed, *[jg.jit(_changed, check="off")] * CALLS):
        w = leaf()
        x = w * 2 if computed else w
        before, after, reshaped = f(x)
        (before.sum() + 2 * after.sum() + reshaped.sum()).backward()
        factor = 2 if computed else 1
        np.testing.assert_array_equal(w.grad.numpy(), factor * np.array([1.0, 4.0, 4.0], "f"))
        with jg.no_grad():
            after.fill_(9.0)
        assert x.tolist()[1:] == before.tolist() == reshaped[1:, 0].tolist() == [9.0, 9.0]
