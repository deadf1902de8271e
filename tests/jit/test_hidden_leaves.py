"""Results computed from leaves that a compiled function makes require grad in every call, as in eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg


def scaled(x: Any) -> Any:
    return jg.ones(3).requires_grad_() * x


def of_a_parameter(x: Any) -> Any:
    return jg.nn.Parameter(jg.ones(3)) + x, x * 2


def of_a_layer(x: Any) -> Any:
    return jg.nn.Linear(3, 2)(x)


def detached(x: Any) -> Any:
    y = (leaf := x.detach().requires_grad_()) * 2
    y.sum().backward(retain_graph=True)
    return y, leaf.grad


def views(x: Any) -> Any:
    y = jg.exp(x.clone().requires_grad_())
    return y, y.reshape(3, 1), y[1:], y.detach()


def in_place(x: Any) -> Any:
    y = x * 1
    y += jg.ones(3).requires_grad_()
    return {"y": y}


def without_history(x: Any) -> Any:
    with jg.no_grad():
        return jg.ones(3).requires_grad_() * x


def second(x: Any) -> Any:
    leaf = x.detach().requires_grad_()
    return jg.autograd.grad((leaf**3).sum(), leaf, create_graph=True)[0]


FUNCTIONS = [scaled, of_a_parameter, of_a_layer, detached, views, in_place, without_history, second]


def flags(result: Any) -> list[tuple[bool, bool, bool]]:
    return [(t.requires_grad, t.is_leaf, t.grad_fn is not None) for t in jg.tree_util.tree_leaves(result)]


@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_have_the_flags_of_eager_results(f: Callable[..., Any], requires_grad: bool, check: Any) -> None:
    compiled = jg.jit(f, check=check)
    expected = flags(f(jg.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad)))

    for _ in range(3):
        assert flags(compiled(jg.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad))) == expected


def test_gradients_go_through_what_is_computed_from_such_results() -> None:
    compiled, w = jg.jit(scaled), jg.tensor([3.0, 4.0, 5.0], requires_grad=True)
    for k in range(1, 4):
        y = compiled(jg.tensor([1.0, 2.0, 3.0]))
        y.retain_grad()
        (y * w).sum().backward()
        assert y.grad is not None
        assert y.grad.tolist() == [3.0, 4.0, 5.0]
        assert w.grad is not None
        assert w.grad.tolist() == [1.0 * k, 2.0 * k, 3.0 * k]
    with jg.Tape() as tape:
        y = compiled(jg.ones(3)).sum()
    tape.backward(y)
    y = compiled(jg.ones(3))
    y += 1
    y.sum().backward()
