"""Many turns of lax.scan, lax.map and lax.fori_loop are one loop, whose results, gradients and errors are eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax
from tests.compiled import assert_same
from tests.compiler.loops.comparison import RNG, TURNS, XS, H, W, cell, check, loops_of, normal


def loss(h: Any, xs: Any, w: Any) -> Any:
    def turn(c: Any, x: Any) -> Any:
        c = jg.tanh(c @ w + x)
        return c, jg.sin(c)

    last, ys = lax.scan(turn, h, xs)
    return (last * last).sum() + (ys[::2] ** 2).sum()


def with_detached(h: Any, xs: Any) -> Any:
    def turn(c: Any, x: Any) -> Any:
        with jg.no_grad():
            k = jg.tanh(c)
        return jg.sin(c) * k + x + c.detach(), (k, c)

    last, (k, ys) = lax.scan(turn, h, xs)
    return last.sum() + (k * ys).sum()


class Pair(NamedTuple):
    scale: float
    matrix: Any


PAIR = Pair(0.5, W)
LAYER = jg.nn.Linear(3, 3, dtype="float64")

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "scan": (lambda h, xs: lax.scan(cell, h, xs), (H, XS), 1),
    "in reverse": (lambda h, xs: lax.scan(cell, h, xs, reverse=True), (H, XS), 1),
    "gradient": (jg.value_and_grad(loss, (0, 1, 2)), (H, XS, W), 2),
    "gradient in reverse": (
        jg.grad(lambda h, xs: (lax.scan(cell, h, xs, reverse=True)[1] ** 2).sum(), (0, 1)),
        (H, XS),
        2,
    ),
    "second order": (jg.grad(lambda h: (jg.grad(loss, (0, 1, 2))(h, XS, W)[2] ** 2).sum()), (H,), 5),
    "Hessian": (jg.hessian(lambda h: loss(h, XS, W)), (H,), 5),
    "Jacobian": (jg.jacobian(lambda h: lax.scan(cell, h, XS)[0]), (H,), 2),
    "detached": (jg.value_and_grad(with_detached), (H, XS), 2),
    "detached, second order": (jg.hessian(with_detached), (H, XS), 4),
    "vmap": (jg.vmap(lambda h, xs: lax.scan(cell, h, xs), (0, None)), (normal(4, 3), XS), 1),
    "vmap of slices": (jg.vmap(lambda xs: lax.scan(cell, H, xs, reverse=True)), (normal(4, TURNS, 3),), 1),
    "vmap of gradients": (jg.vmap(lambda xs: jg.value_and_grad(loss)(H, xs, W)), (normal(4, TURNS, 3),), 2),
    "no slices": (lambda h: lax.scan(lambda c, _: (c * 0.9 + 0.1, None), h, None, length=TURNS), (H,), 1),
    "swapped carries": (lambda h, xs: lax.scan(lambda c, x: ((c[1], c[0] * 0.5 + x), c[0]), (h, h * 2), xs), (H, XS), 1),
    "fixed carry": (lambda h, xs: lax.scan(lambda c, x: ((c[0], c[1] * c[0] + x), x), (h, h), xs), (H, XS), 1),
    "carry of a constant": (lambda h, xs: lax.scan(lambda c, x: (jg.ones(3, dtype="float64"), c + x), h, xs), (H, XS), 1),
    "equal parts": (lambda h, xs: lax.scan(lambda c, x: (c * 0.5 + x, (c, c, x)), h, xs), (H, XS), 1),
    "turned parts": (lambda h, xs: lax.scan(lambda c, x: (c + x, (c[::-1], (c[:, None] * x).T)), h, xs), (H, XS), 1),
    "turned slices": (lambda h, xs: lax.scan(lambda c, x: (c + x, c.sum()), h, xs.T[::-1].T), (H, XS), 1),
    "repeated slices": (lambda h: lax.scan(cell, h, jg.broadcast_to(h, (TURNS, 3))), (H,), 1),
    "first turns of another dtype": (
        lambda xs: lax.scan(lambda c, x: (c + x, c), jg.zeros(3, dtype="float32"), xs),
        (XS,),
        1,
    ),
    "a number first": (lambda xs: lax.scan(lambda c, x: (c * 0.5 + x.sum(), c), 0.0, xs), (XS,), 1),
    "a wider carry": (lambda xs: lax.scan(lambda c, x: (c + x, c.sum()), jg.zeros((), dtype="float64"), xs), (XS,), 1),
    "ints and bools": (
        lambda xs: lax.scan(
            lambda c, x: ((c[0] + 1, c[1] & (x.sum() > -9)), c[0] * x), (jg.tensor(0), jg.tensor(True)), xs
        ),
        (XS,),
        1,
    ),
    "complex": (lambda h, xs: jg.real(lax.scan(lambda c, x: (c * (0.5 + 0.1j) + x, None), h + 0j, xs)[0]), (H, XS), 1),
    "nested": (
        jg.value_and_grad(
            lambda h: lax.scan(lambda c, x: lax.scan(lambda d, y: (jg.tanh(d + y * x), d.sum()), c, XS[:16]), h, XS[:16])[0].sum()
        ),
        (H,),
        2,
    ),
    "gradient in a turn": (
        jg.grad(lambda p: lax.scan(lambda p, x: (p - 0.1 * jg.grad(lambda q: ((q * x - 1) ** 2).sum())(p), None), p, XS)[0][0]),
        (H,),
        2,
    ),
    "reads at indices": (
        jg.value_and_grad(lambda t, k: (lax.scan(lambda c, i: (jg.tanh(c + t[i]), c), H, k)[1] ** 2).sum()),
        (normal(10, 3), jg.tensor(RNG.integers(0, 10, TURNS))),
        2,
    ),
    "a method of a layer": (lambda h, xs: lax.scan(lambda c, x: (jg.tanh(LAYER(c) + x), c), h, xs), (H, XS), 1),
    "a named tuple": (lambda h, xs: lax.scan(lambda c, x: (jg.tanh(c @ PAIR.matrix * PAIR.scale + x), c), h, xs), (H, XS), 1),
    "numbers as arguments": (lambda h, k, n: lax.scan(lambda c, x: (c * k + x * n, c), h, XS), (H, 0.5, 3), 1),
    "checkpoint": (jg.grad(lambda h: lax.scan(jg.checkpoint(cell), h, XS)[1].sum()), (H,), 2),
    "map": (lambda xs: lax.map(lambda x: (x**2).sum(), xs), (XS,), 1),
    "solutions": (
        lambda b, m: lax.scan(lambda c, a: (jg.linalg.solve(a, c), c.sum()), b, m),
        (normal(2), jg.tensor(np.stack([np.eye(2) * (1 + k) for k in range(TURNS)]))),
        1,
    ),
    "fori_loop": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c * 0.9 + i / 7 + i % 3 + i**2, h), (H,), 1),
    "fori_loop in float32": (lambda h: lax.fori_loop(-9, TURNS, lambda i, c: c * 0.9 + i, h), (normal(3, dtype="float32"),), 1),
    "reads at turns": (
        jg.value_and_grad(
            lambda h, xs: lax.fori_loop(1, TURNS - 1, lambda i, c: jg.tanh(c + xs[i] * xs[i - 1] - xs[i + 1]), h).sum(), (0, 1)
        ),
        (H, XS),
        2,
    ),
    "reads from the end": (lambda xs: lax.fori_loop(0, TURNS, lambda i, c: c * 0.5 + xs[i - 1] + xs[-i], H), (XS,), 1),
    "changes at turns": (
        jg.grad(lambda xs: (lax.fori_loop(1, TURNS, lambda i, y: y.at[i].set(jg.tanh(y[i - 1] + y[i])), xs) ** 2).sum()),
        (XS,),
        2,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_are_as_eager(name: str) -> None:
    f, args, loops = PROGRAMS[name]
    check(f, *args, loops=loops)


@pytest.mark.numba
@pytest.mark.parametrize(
    "name", ["scan", "gradient", "second order", "nested", "swapped carries", "solutions", "changes at turns"]
)
def test_loops_in_machine_code_are_as_eager(name: str) -> None:
    f, args, loops = PROGRAMS[name]
    check(f, *args, loops=loops)


@pytest.mark.parametrize("name", ["scan", "gradient", "changes at turns"])
def test_turns_are_written_out_within_a_memory_budget(name: str) -> None:
    f, args, _ = PROGRAMS[name]
    compiled = jg.jit(f, memory_budget=1.0)
    assert_same(compiled(*args), f(*args), rtol=1e-9, atol=1e-9)
    assert loops_of(compiled, *args) == 0
