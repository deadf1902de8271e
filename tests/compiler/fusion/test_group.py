"""Which ops may share a loop nest."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitgrad as jg


def test_a_value_read_along_rows_and_along_columns_is_not_computed_in_the_same_loop(same: Any) -> None:
    """``minimum(y, y.mT)``: an element needs two elements of ``y``, and a loop has only one of them at a time."""
    x = jg.tensor(np.random.default_rng(0).uniform(-1.0, 1.0, (1, 7)))

    same(lambda x: jg.minimum(jg.relu(x), jg.relu(x).mT), x)
    same(jg.value_and_grad(lambda x: (jg.minimum(jg.relu(x), jg.relu(x).mT) * 0.3).sum()), x)


def test_a_square_matrix_beside_its_transpose(same: Any) -> None:
    x = jg.tensor(np.random.default_rng(1).uniform(-1.0, 1.0, (5, 5)))

    def asymmetry(x: Any) -> Any:
        y = jg.square(x) * 3.0
        return (jg.abs(y - y.mT) + y.sum(axis=0) - y.mT.sum(axis=0)).sum(axis=1)

    same(asymmetry, x, rtol=1e-14, atol=1e-14)
    same(jg.value_and_grad(lambda x: asymmetry(x).sum()), x, rtol=1e-13, atol=1e-13)


def test_a_value_beside_its_own_flip_and_shift(same: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return jg.flip(y, 0) + y, y[1:] - y[:-1], y[::2] + y[1::2]

    same(f, jg.tensor(np.arange(8.0)))


def test_the_outer_sum_of_a_vector_with_itself(same: Any) -> None:
    def f(x: Any) -> Any:
        y = jg.exp(x)
        d = y[:, None] - y[None, :]
        return d, (d * d).sum(), d.sum(axis=0), d.sum(axis=1)

    x = jg.tensor(np.linspace(-1.0, 1.0, 6))
    same(f, x, ulp=64.0, atol=1e-14)
    same(jg.grad(lambda x: f(x)[1]), x, rtol=1e-13)
