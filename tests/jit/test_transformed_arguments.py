"""Arguments of transforms within compiled functions share memory with the caller's tensors, as in eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

Body = Callable[[Any], Any]


def halved(w: Any) -> Any:
    with jg.no_grad():
        w.mul_(0.5)
    return (w * w).sum()


def halved_data(w: Any) -> Any:
    w.data[1:] *= 0.5
    return (w * w * w).sum()


def own_memory(w: Any) -> Any:
    w.data = w.data * 2.0
    return (w * w).sum()


def on_a_new_tensor(f: Body) -> Body:
    def g(w: Any) -> Any:
        new = w + 1.0
        return jg.grad(f)(new), new * 1.0

    return g


TRANSFORMS: dict[str, Callable[[Body], Body]] = {
    "grad": jg.grad,
    "value_and_grad": jg.value_and_grad,
    "vjp": lambda f: lambda w: jg.vjp(f, w)[0],
    "jvp": lambda f: lambda w: jg.jvp(f, (w,), (jg.ones_like(w),)),
    "hessian": jg.hessian,
    "checkpoint": jg.checkpoint,
    "of a view": lambda f: lambda w: jg.grad(f)(w[::-1]),
    "of a new tensor": on_a_new_tensor,
}


@pytest.mark.parametrize("body", [halved, halved_data, own_memory])
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("learned", [False, True])
def test_changes_in_place_reach_the_caller(name: str, body: Body, learned: bool) -> None:
    f = TRANSFORMS[name](body)

    def run(call: Body) -> list[Any]:
        w = jg.tensor([1.0, 2.0, 3.0], dtype=jg.float64, requires_grad=learned)
        results = [call(w) for _ in range(2)]
        return [np.asarray(x.detach()).tolist() for x in optree.tree_leaves((results, w * 1.0, w))]

    assert run(jit(lambda w: (f(w), w * 1.0), check="off", backend="python")) == run(lambda w: (f(w), w * 1.0))


@pytest.mark.parametrize("learned", [False, True])
def test_results_that_are_arguments_share_their_memory(learned: bool) -> None:
    programs: list[Body] = [
        lambda w: jg.vjp(lambda w: (w, w.T, w * 1.0), w)[0],
        lambda w: jg.jvp(lambda w: (w, w[0]), (w,), (jg.ones_like(w),))[0],
        lambda w: jg.value_and_grad(lambda w: (w.sum(), w.T), has_aux=True)(w)[0],
        jg.checkpoint(lambda w: (w, w.T, w * 1.0)),
    ]
    for f in programs:
        w = jg.ones((2, 3), requires_grad=learned)
        shared = [
            [(np.shares_memory(x.detach(), w.detach()), x.requires_grad) for x in call(w)]
            for call in (f, jit(f, check="off", backend="python"))
        ]
        assert shared[0] == shared[1]
