"""Parts of a joined array and the whole share memory: who may change it, and who writes where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)

pytestmark = pytest.mark.numba


def tensor(*shape: int) -> jg.Tensor:
    return jg.tensor(R.standard_normal(shape))


def add_to_the_whole(x: Any, y: Any, m: Any) -> Any:
    part = jg.exp(x)
    whole = jg.index_add(jg.concat([part, y * 2.0], 0), 0, jg.tensor([0, 1]), y[:2])
    return whole, part @ m


def assign_to_the_whole(x: Any, y: Any, m: Any) -> Any:
    part = jg.exp(x)
    whole = jg.concat([part, y * 2.0], 0)
    whole[0] = y[1]
    return whole, part @ m


def add_to_a_part(x: Any, y: Any, m: Any) -> Any:
    part = jg.exp(x)
    whole = jg.concat([part, y * 2.0], 0)
    changed = jg.index_add(part, 0, jg.tensor([0, 1]), y[:2])
    return whole @ m, changed @ m


def add_to_a_row(x: Any, y: Any, m: Any) -> Any:
    row = jg.exp(x[0])
    whole = jg.stack([row, y[0] * 2.0])
    changed = jg.index_add(row, 0, jg.tensor([0, 1]), y[0, :2])
    return whole @ m, changed @ m, row @ m


@pytest.mark.parametrize("f", [add_to_the_whole, assign_to_the_whole, add_to_a_part, add_to_a_row])
def test_updates_in_place_wait_for_readers_of_parts_and_wholes(f: Any) -> None:
    args = tensor(32, 32), tensor(32, 32), tensor(32, 32)

    for compiled, eager in zip(jit(f, check="off")(*args), f(*args), strict=True):
        np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-12, atol=1e-12)


def adjoint(x: Any) -> Any:
    """The gradients of all rows build up from the last one to the first."""
    state, total = x[0] * 0.5, 0.0
    for k in range(len(x)):
        state = state + x[k]
        total = total + jg.sin(state)
    return jg.sum(total)


def test_rows_that_later_rows_need_are_written_to_their_places(same: Any) -> None:
    x = tensor(8, 300)
    gradient = jg.grad(adjoint)

    same(gradient, x, rtol=1e-13)
    assert "identity" not in [op for step in jit(gradient, check="off").explain(x).steps for op in step.ops]


def joined_rows(x: Any, m: Any) -> Any:
    rows = [jg.exp(x[k] + 1.0) for k in range(len(x))]
    columns = jg.concat([row[:, None] for row in rows], 1)
    return jg.stack(rows) @ m, columns * 2.0, rows[1] @ m, rows[2].sum()


@pytest.mark.parametrize("shape", [(3, 64), (5, 1), (3, 0)])
def test_rows_of_two_wholes(shape: tuple[int, int], same: Any) -> None:
    x, m = tensor(*shape), tensor(shape[1], 4)

    same(joined_rows, x, m, rtol=1e-13, atol=1e-13)
    same(jg.grad(lambda x, m: sum([jg.sum(jg.sin(y)) for y in joined_rows(x, m)])), x, m, rtol=1e-12, atol=1e-12)
