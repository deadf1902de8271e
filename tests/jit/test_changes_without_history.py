"""In-place changes of tensors that other ops made, with and without history, under @jit with backward() outside.

A change under no_grad or through detach() gives a tensor new numbers; its gradient is still that of
what it was before. An argument that was computed may be changed in place like any other tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

CALLS = 3
Function = Callable[..., Any]


def observed(f: Function, arguments: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
    """Loss and gradient of some calls; the arguments after each of them are part of the loss."""
    seen = []
    for _ in range(CALLS):
        w = jg.tensor(np.arange(1.0, 7.0).reshape(2, 3), requires_grad=True)
        given = arguments(w)
        loss = f(*given) + sum((x * x).sum() for x in given)
        loss.backward()
        seen.append((loss.item(), w.grad.tolist()))
    return seen


def assert_equals_eager(f: Function, arguments: Callable[[Any], tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    assert observed(jg.jit(f), arguments) == observed(f, arguments)


def scaled(w: Any) -> Any:
    b = w * 3
    with jg.no_grad():
        b *= 2
    return (b * b).sum()


def scaled_row(w: Any) -> Any:
    b = w * 3
    with jg.no_grad():
        b[0] *= w[1]
    return (b * b).sum()


def scaled_through_detach(w: Any) -> Any:
    b = w * 3
    same = b.detach()
    same *= 2
    return (b * b).sum()


def scaled_view(w: Any) -> Any:
    b = w * 3
    v = b[0]
    with jg.no_grad():
        v *= w[1]
    return (b * b).sum() + (v * v * v).sum()


def with_and_without(w: Any) -> Any:
    b = w * 3
    with jg.no_grad():
        b *= 2
    b *= w
    with jg.no_grad():
        b += w
    return (b * b).sum()


def overwritten(w: Any) -> Any:
    b = w * 3
    with jg.no_grad():
        b[:] = 2.0
    return (b * b).sum()


def row_after_scaling(w: Any) -> Any:
    b = w * 3
    with jg.no_grad():
        b *= 2
    b[0] = w[1] * 0.5
    return (b * b * w).sum()


@pytest.mark.parametrize(
    "f", [scaled, scaled_row, scaled_through_detach, scaled_view, with_and_without, overwritten, row_after_scaling]
)
def test_the_gradient_is_that_of_the_value_before(f: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equals_eager(f, lambda w: (w,), monkeypatch)


def doubled(a: Any) -> Any:
    a *= 2
    return a.sum()


def changed_twice(a: Any) -> Any:
    a *= 2
    a += (a * 0.01).exp()
    return a.mean()


def changed_row(a: Any) -> Any:
    a[0] = a[1] * 2
    return a.sum()


def changed_through_a_view(a: Any) -> Any:
    v = a[0]
    v *= 3
    return (v * v).sum() + a.sum()


def changed_without_history(a: Any) -> Any:
    v = a[0]
    with jg.no_grad():
        v *= 2
    return (a * a).sum() + (v * v * v).sum()


def with_own_gradient(a: Any) -> Any:
    a *= 2
    return jg.grad(lambda x: (x * x).sum())(a).sum()


CHANGES = (doubled, changed_twice, changed_row, changed_through_a_view, changed_without_history, with_own_gradient)


@pytest.mark.parametrize("f", CHANGES)
def test_a_computed_argument_may_be_changed(f: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equals_eager(f, lambda w: (w * 3,), monkeypatch)


@pytest.mark.parametrize("f", CHANGES)
def test_the_history_of_what_a_changed_argument_is_a_view_of_follows(
    f: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(g: Function) -> Any:
        w = jg.tensor(np.arange(1.0, 10.0).reshape(3, 3), requires_grad=True)
        base = w * 3
        (g(base[1:]) + (base * base).sum()).backward()
        return w.grad.tolist()

    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    compiled = jg.jit(f)
    assert [seen(compiled) for _ in range(CALLS)] == [seen(f)] * CALLS


def test_an_argument_that_is_a_leaf_is_refused_as_in_eager() -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)

    for f in (doubled, jg.jit(doubled)):
        with pytest.raises(jg.errors.InPlaceError, match="leaf"):
            f(w)


def test_backward_inside_that_reaches_a_computed_argument_is_refused() -> None:
    @jg.jit
    def f(a: Any) -> Any:
        (a * a).sum().backward()

    with pytest.raises(jg.errors.UnguardableError, match="computed from other tensors"):
        f(jg.tensor([1.0, 2.0], requires_grad=True) * 2)


def leaf_of_untracked(w: Any) -> Any:
    with jg.no_grad():
        y = w * 2
    y.requires_grad_()
    return (y * 3).sum() + w.sum()


def tensor_of_untracked(w: Any) -> Any:
    with jg.no_grad():
        y = w * 2
    return jg.tensor(y, requires_grad=True).sum() + w.sum()


def transform_of_untracked(w: Any) -> Any:
    with jg.no_grad():
        y = w * 2
    value, gradient = jg.value_and_grad(lambda z: (z * z).sum())(y)
    return value + gradient.sum() + w.sum()


@pytest.mark.parametrize("f", [leaf_of_untracked, tensor_of_untracked, transform_of_untracked])
def test_gradients_end_at_a_leaf_that_the_function_makes(f: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equals_eager(f, lambda w: (w,), monkeypatch)


def test_a_change_does_not_ask_for_views_that_an_earlier_trace_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    w, left = jg.tensor(np.ones((2, 3)), requires_grad=True), []

    def leave_a_view(x: Any) -> Any:
        left.append(w.T)
        return x @ left[-1]

    def step(x: Any) -> None:
        (x @ w.T).sum().backward()
        with jg.no_grad():
            w.__isub__(w.grad)
        w.grad = None

    x = jg.ones((1, 3), dtype=jg.float64)
    with pytest.raises(jg.errors.TraceError):
        jg.jit(leave_a_view)(x)
    compiled = jg.jit(step)
    for _ in range(3):
        compiled(x)

    assert w.tolist() == [[-2.0] * 3] * 2


def detach_argument(x: Any) -> Any:
    x.detach_()
    return x * 2.0


@pytest.mark.parametrize("options", [{}, {"check": "off"}, {"check": "off", "backend": "python"}], ids=str)
def test_an_argument_that_is_a_view_cannot_be_detached_in_place(options: dict[str, Any]) -> None:
    def computed() -> jg.Tensor:
        return jg.tensor([[1.0, 2.0]], requires_grad=True) * 3.0

    compiled = jg.jit(detach_argument, **options)
    for _ in range(3):
        assert compiled(computed()).tolist() == [[6.0, 12.0]]
        with pytest.raises(jg.errors.AutogradError, match="a view with history"):
            compiled(computed().T)


def test_a_view_with_a_history_of_an_argument_that_lost_its_own_is_refused() -> None:
    def f(x: Any) -> Any:
        view = x[::-1]
        with jg.no_grad():
            view[0] = 0.7
        x.detach_()
        return view, x

    with pytest.raises(jg.errors.UnguardableError, match=r"shares memory with a tensor that detach_\(\).*Return \.clone\(\)"):
        jg.jit(f)(jg.tensor([1.0, 2.0], requires_grad=True) * 2.0)
