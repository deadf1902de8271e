"""Carries that a turn hands on, or shares: after a loop, a change of one in place shows where it does in eager execution."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg
from jitgrad import lax
from tests.compiled import assert_same
from tests.compiler.loops.comparison import XS, loops_of


def doubled(c: Any, x: Any, _y: Any) -> Any:
    new = c[0] + x
    return new, new


def with_view(c: Any, x: Any, _y: Any) -> Any:
    new = c[0] + x
    return new, new[::-1]


# the new carries, and whether the turns are a loop: a view of what is not its own is made in Python
HANDED_ON: dict[str, tuple[Callable[..., Any], bool]] = {
    "swapped": (lambda c, x, y: (c[1], c[0]), True),
    "the carry before": (lambda c, x, y: (c[0] * 0.5 + x, c[0]), True),
    "a fixed one": (lambda c, x, y: (c[1], c[1]), True),
    "the slice": (lambda c, x, y: (c[0] * 0.5 + x, x), True),
    "the slice before": (lambda c, x, y: (x, c[0]), True),
    "one tensor": (doubled, True),
    "a view of the other": (with_view, False),
    "a detached one": (lambda c, x, y: (c[0].detach() + x, c[1].detach() * 2), True),
    "a tensor outside": (lambda c, x, y: (y, c[0] + x), True),
    "a view of a carry": (lambda c, x, y: (c[0][::-1], c[1] + x), False),
    "a view outside": (lambda c, x, y: (y[::-1], c[1] + x), False),
    "a broadcast": (lambda c, x, y: (jg.broadcast_to(x[:1] * 2, (3,)), c[1] + x), False),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", HANDED_ON)
def test_changes_of_last_carries_show_where_they_do_in_eager(name: str, reverse: bool) -> None:
    turn, in_loop = HANDED_ON[name]

    def f(h: Any, xs: Any) -> Any:
        first, second, y = h * 1, h * 2, h * 3
        (a, b), parts = lax.scan(lambda c, x: (turn(c, x, y), c[0] * x), (first, second), xs, reverse=reverse)
        for k, x in enumerate((a, b)):
            with contextlib.suppress(jg.errors.ReadOnlyError):
                x += k + 1
        return a, b, first, second, y, xs, parts

    compiled = jg.jit(f, check="off")
    for _ in range(2):
        assert_same(compiled(XS[0], XS.clone()), f(XS[0], XS.clone()), rtol=1e-9)
    assert loops_of(compiled, XS[0], XS) == in_loop


def test_gradients_flow_to_carries_that_are_handed_on() -> None:
    def loss(h: Any, xs: Any) -> Any:
        (a, b, c), _ = lax.scan(lambda c, x: ((c[1], c[0] * x, x), None), (h, h * 2, h), xs)
        return (a * b * c).sum()

    f = jg.grad(loss, argnums=(0, 1))
    compiled = jg.jit(f)
    assert_same(compiled(XS[0], XS), f(XS[0], XS), rtol=1e-9)
