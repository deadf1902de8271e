"""Turns that have effects, or decide by values, run one by one, with what they do to Python objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import jitgrad as jg
from jitgrad import lax
from tests.compiled import assert_same
from tests.compiler.loops.comparison import TURNS, XS, H, cell, check, normal


@dataclass
class Counts:
    n: int = 0
    log: list[int] = field(default_factory=list)


def with_a_list(h: Any, xs: Any) -> Any:
    seen: list[Any] = []

    def turn(c: Any, x: Any) -> Any:
        seen.append(c)
        return c * 0.5 + x, None

    last, _ = lax.scan(turn, h, xs)
    return jg.stack(seen), last


def with_a_cell(h: Any, xs: Any) -> Any:
    n = 0

    def turn(c: Any, x: Any) -> Any:
        nonlocal n
        n += 1
        return (c * 0.5 + x if n % 10 else c * 0), None

    return lax.scan(turn, h, xs)[0] * n


def with_attributes(h: Any, xs: Any) -> Any:
    counts = Counts()

    def turn(c: Any, x: Any) -> Any:
        counts.n += 1
        counts.log.append(counts.n)
        return c * 0.5 + x * counts.n, None

    return lax.scan(turn, h, xs)[0] * len(counts.log) + counts.n


def with_a_dict(h: Any, xs: Any) -> Any:
    found: dict[int, Any] = {}

    def turn(c: Any, x: Any) -> Any:
        found[len(found)] = c
        return c * 0.5 + x, None

    return lax.scan(turn, h, xs)[0] + found[7] + len(found)


def with_an_iterator(h: Any, xs: Any) -> Any:
    numbers = iter(range(100))
    return lax.scan(lambda c, x: (c * 0.5 + x * next(numbers), None), h, xs)[0]


def with_a_change_outside(h: Any, xs: Any) -> Any:
    total = jg.zeros(3, dtype="float64")

    def turn(c: Any, x: Any) -> Any:
        total[...] = total + x
        return c * 0.5 + total, None

    return lax.scan(turn, h, xs)[0], total


def with_a_caught_change(h: Any, xs: Any) -> Any:
    total = jg.zeros(3, dtype="float64")

    def turn(c: Any, x: Any) -> Any:
        try:
            total[0] = c[0]
        except Exception:
            return c, None
        return c * 0.5 + total, None

    return lax.scan(turn, h, xs)[0], total


def with_a_mapped_list(xs: Any) -> Any:
    seen: list[int] = []

    def one(x: Any) -> Any:
        seen.append(1)
        return x.sum() * len(seen)

    return lax.map(one, xs)


def with_a_wrapped_list(h: Any, xs: Any) -> Any:
    seen: list[int] = []

    def turn(c: Any, x: Any) -> Any:
        seen.append(1)
        return jg.tanh(c + x) * len(seen), c

    return lax.scan(jg.checkpoint(turn), h, xs)


IN_PYTHON: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f.__name__: (f, (H, XS)) for f in (with_a_list, with_a_cell, with_attributes, with_a_dict, with_an_iterator)},
    **{f.__name__: (f, (H, XS)) for f in (with_a_change_outside, with_a_caught_change, with_a_wrapped_list)},
    "with_a_mapped_list": (with_a_mapped_list, (XS,)),
    "unroll": (lambda h, xs: lax.scan(cell, h, xs, unroll=True), (H, XS)),
    "range": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + sum(range(i)), h), (H,)),
    "list": (lambda h, xs: lax.fori_loop(0, TURNS, lambda i, c: c + [*xs][i], h), (H, XS)),
    "parity": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c * (2 if i % 2 else 0.5), h), (H,)),
    "key": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + {f"k{j}": 0.5 * j for j in range(50)}[f"k{i}"], h), (H,)),
    "large powers": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + i**40, h), (H,)),
    "large products": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + (i * 10**9) * (i * 10**9) * 10**9, h), (H,)),
    "a number as carry": (lambda h: (lax.fori_loop(0, TURNS, lambda i, c: c + i, 0), h), (H,)),
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_turns_with_effects_or_decisions_run_in_python(name: str) -> None:
    f, args = IN_PYTHON[name]
    check(f, *args, loops=0)


def test_random_numbers_and_running_statistics_are_of_every_turn() -> None:
    def drawn(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + x * jg.randn(3, dtype="float64"), None), H, xs)[0]

    jg.manual_seed(0)
    expected = drawn(XS)
    jg.manual_seed(0)
    assert_same(jg.jit(drawn)(XS), expected, rtol=1e-9)
    norms = [jg.nn.BatchNorm1d(3) for _ in range(2)]
    batches = normal(TURNS, 4, 3, dtype="float32")
    for norm, wrap in zip(norms, (lambda f: f, jg.jit), strict=True):
        wrap(lambda xs, norm=norm: lax.scan(lambda c, x: (c + norm(x), None), xs[0], xs)[0])(batches)
    assert_same(norms[1].running_mean, norms[0].running_mean, rtol=1e-6)
    assert int(norms[1].num_batches_tracked) == TURNS
