"""Arguments that the function tells apart from outside tensors by identity: with `is`, as keys and items, by `id`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

A, B, C = jg.tensor([1.0, 2.0]), jg.tensor([3.0, 4.0]), jg.tensor([5.0, 6.0])
LISTED, KEYED, TUPLES, SET = [A, B], {A: 2.0, B: 3.0}, {(A, 1): 5.0}, {A}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "is": lambda x: x * 2 if x is A else x * 3,
    "is not": lambda x: x * 2 if x is not A else x * 3,
    "operator.is_": lambda x: x * 2 if operator.is_(x, A) else x * 3,
    "is an item": lambda x: x * 2 if any(x is t for t in LISTED) else x * 3,
    "in a set": lambda x: x * 2 if x in SET else x * 3,
    "in a new set": lambda x: x * 2 if x in frozenset([A, B]) else x * 3,
    "in a dict": lambda x: x * 2 if x in KEYED else x * 3,
    "get": lambda x: x * KEYED.get(x, 10.0),
    "key in a tuple": lambda x: x * TUPLES.get((x, 1), 10.0),
    "id": lambda x: x * 2 if id(x) == id(A) else x * 3,
    "in a set of ids": lambda x: x * 2 if id(x) in {id(A), id(B)} else x * 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_is_the_outside_tensor_that_was_passed(name: str) -> None:
    f = jg.jit(FUNCTIONS[name], backend="python", check="off")
    for x in (A, B, A, C, jg.tensor([1.0, 2.0]), A, B, C):
        assert f(x).tolist() == FUNCTIONS[name](x).tolist()


def test_a_key_that_is_missing_for_another_argument() -> None:
    f = jg.jit(lambda x: x * KEYED[x], backend="python", check="off")
    for x in (A, B, A):
        assert f(x).tolist() == (x * KEYED[x]).tolist()
    with pytest.raises(KeyError):
        f(C)
    assert f(B).tolist() == [9.0, 12.0]


def test_gradients_flow_to_the_tensor_that_is_both() -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)
    f = jg.jit(lambda x: (x * w).sum() if x is w else (x * w * w).sum(), backend="python", check="off")
    for x in (w, jg.ones(2), w, jg.ones(2)):
        w.grad = None
        f(x).backward()
        assert w.grad is not None
        assert w.grad.tolist() == [2.0, 4.0]


def test_ids_of_arguments_mean_nothing_outside_of_the_function() -> None:
    scales = {id(A): 2.0, id(B): 3.0}
    with pytest.raises(UnguardableError, match=r"`scales` is asked for what id\(\) gave of a tensor"):
        jg.jit(lambda x: x * scales[id(x)], backend="python")(A)


def test_ids_of_arguments_among_each_other() -> None:
    def unlike(tensors: list[Any]) -> list[Any]:
        seen: set[int] = set()
        return [t * 2 for t in tensors if not (id(t) in seen or seen.add(id(t)))]

    f = jg.jit(unlike, backend="python", check="off")
    assert [len(f(tensors)) for tensors in ([A, A], [A, B], [B, B, A], [A, A])] == [1, 2, 2, 1]
