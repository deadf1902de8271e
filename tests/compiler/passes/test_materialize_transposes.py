"""A transposed matrix that many small products read is copied in row-major order once."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import jit

LEAST_PRODUCTS = Tuning().min_transposed_products


def tensor(*shape: int, seed: int = 0) -> jg.Tensor:
    return jg.tensor(np.random.default_rng([seed, *shape]).uniform(-1.0, 1.0, shape).astype(np.float32))


def strides(f: Any, *args: Any) -> list[bool]:
    """Of every product: whether its right matrix lies in the order of its rows."""
    steps = [s for s in jit(f, check="off").lookup(*args).program.plan.steps if s.node.op.name == "matmul"]
    return [s.reads[1].location.strides[-1] == 1 for s in steps]


def chain(steps: int) -> Any:
    def f(h: Any, w: Any) -> Any:
        for _ in range(steps):
            h = jg.tanh(h @ w.mT)
        return h

    return f


def test_it_is_turned_once(same: Any) -> None:
    f, args = chain(LEAST_PRODUCTS), (tensor(3, 5), tensor(5, 5, seed=1))
    same(f, *args, rtol=1e-5, atol=1e-6)

    assert strides(f, *args) == [True] * LEAST_PRODUCTS
    program = jit(f, check="off").lookup(*args).program
    assert len(program.plan.steps) == 2 * LEAST_PRODUCTS + 1


def test_gradients_of_a_loop(same: Any) -> None:
    def loss(h: Any, w: Any) -> Any:
        for _ in range(6):
            h = jg.tanh(h @ w)
        return (h * h).sum()

    args = tensor(3, 5), tensor(5, 5, seed=1)
    same(jg.grad(loss, (0, 1)), *args, rtol=1e-4, atol=1e-6)

    assert all(strides(jg.grad(loss, (0, 1)), *args))


def test_few_products_read_it_as_it_lies() -> None:
    assert strides(chain(LEAST_PRODUCTS - 1), tensor(3, 5), tensor(5, 5)) == [False] * (LEAST_PRODUCTS - 1)


def test_so_do_large_ones(tune: Any) -> None:
    tune(max_transposed_work=3 * 5 * 5 - 1)

    assert not any(strides(chain(5), tensor(3, 5), tensor(5, 5)))


def test_a_matrix_in_order_stays() -> None:
    def f(h: Any, w: Any) -> Any:
        for _ in range(5):
            h = jg.tanh(h @ w)
        return h

    program = jit(f, check="off").lookup(tensor(3, 5), tensor(5, 5)).program
    assert len(program.plan.steps) == 10
