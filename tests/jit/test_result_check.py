"""A result holds nothing that a compiled call cannot make anew."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import UnguardableError


@pytest.fixture(autouse=True)
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


class Parts:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts


@dataclass
class Output:
    loss: Any


def generator(x: Any) -> Iterator[Any]:
    yield x * 2


async def coroutine(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (generator, "generator"),
        (coroutine, "coroutine"),
        (lambda x: (y for y in (1, 2)), "generator"),
        (lambda x: map(str, (1, 2)), "map"),
        (lambda x: {"rest": iter([1, 2])}, "list_iterator"),
    ],
)
def test_what_is_used_up_is_refused(function: Callable[..., Any], kind: str) -> None:
    expected = f"an instance of {kind}, which can be used only once.*return a list"
    with warnings.catch_warnings(), pytest.raises(UnguardableError, match=expected):
        warnings.simplefilter("error")
        jg.jit(function)(jg.ones(2))


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (lambda x: Output(x * 2), r"an instance of Output, whose \.loss is"),
        (lambda x: Output(x), r"an instance of Output, whose \.loss is"),
        (lambda x: Parts(1, {"sum": x.sum()}), r"\.parts\[1\]\['sum'\]"),
        (lambda x: lambda: x * 2, "an instance of function, whose variable x"),
        (lambda x: partial(jg.add, x * 2), r"an instance of partial, whose \[1\]"),
        (lambda x: nn.Sequential(nn.Linear(2, 3)), r"\.weight"),
    ],
)
def test_objects_that_hold_traced_tensors_are_refused(function: Callable[..., Any], path: str) -> None:
    with pytest.raises(UnguardableError, match=f"{path}.* no data in later calls: return its parts in a tuple"):
        jg.jit(function)(jg.ones(2))


def test_they_may_run_eagerly() -> None:
    f = jg.jit(lambda x: Output(x * 2), fallback="eager")
    with pytest.warns(jg.errors.FallbackWarning):
        results = [f(k * jg.ones(2)).loss.tolist() for k in range(3)]

    assert results == [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]


def test_an_object_from_outside_may_be_returned() -> None:
    class Cell:
        def __init__(self) -> None:
            self.state = jg.zeros(2)

        def step(self, x: Any) -> Any:
            self.state = self.state * 0.5 + x
            self.last = x * 3
            return self

    cell = Cell()
    step = jg.jit(cell.step)
    results = [(step(k * jg.ones(1)) is cell, cell.state.tolist(), cell.last.tolist()) for k in range(3)]

    assert results == [(True, [0.0, 0.0], [0.0]), (True, [1.0, 1.0], [3.0]), (True, [2.5, 2.5], [6.0])]
