"""lax.while_loop and fori_loop under vmap: each example has a number of turns of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax


def collatz(n: Any) -> Any:
    def turn(state: Any) -> Any:
        number, turns = state
        return jg.where(number % 2 == 0, number // 2, 3 * number + 1), turns + 1

    return lax.while_loop(lambda state: state[0] != 1, turn, (n, 0))[1]


def newton_root(a: Any) -> Any:
    return lax.while_loop(lambda z: jg.abs(z * z - a) > 1e-12, lambda z: 0.5 * (z + a / z), 0.0 * a + 1.0)


NUMBERS = [7, 12, 27, 1]
TURNS = [16, 9, 111, 0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_examples_keep_their_values_once_their_condition_fails(compiled: bool) -> None:
    function = jg.vmap(collatz)
    function = jg.jit(function, backend="python") if compiled else function

    assert function(jg.tensor(NUMBERS)).tolist() == TURNS
    assert function(jg.tensor([1, 1, 1, 2])).tolist() == [0, 0, 0, 1]


def test_vmap_nests_and_an_empty_axis_has_no_turns() -> None:
    assert jg.vmap(jg.vmap(collatz))(jg.tensor([NUMBERS[:2], NUMBERS[2:]])).tolist() == [TURNS[:2], TURNS[2:]]
    assert jg.vmap(collatz)(jg.zeros(0, dtype=jg.int64)).shape == (0,)


def test_gradients_flow_through_the_turns_of_each_example() -> None:
    a = jg.tensor([4.0, 2.0, 9.5], dtype=jg.float64)

    np.testing.assert_allclose(jg.vmap(newton_root)(a).numpy(), np.sqrt([4.0, 2.0, 9.5]), rtol=1e-12)
    np.testing.assert_allclose(jg.vmap(jg.grad(newton_root))(a).numpy(), 0.5 / np.sqrt([4.0, 2.0, 9.5]), rtol=1e-5)


def test_a_value_that_is_not_finite_in_a_finished_example_does_not_reach_it() -> None:
    def halved(x: Any) -> Any:
        return lax.while_loop(lambda s: s[1] > 0, lambda s: (s[0] / s[1], s[1] - 1), (x, x))[0]

    x = jg.tensor([1.0, 3.0], dtype=jg.float64)
    assert jg.vmap(halved)(x).tolist() == [1.0, 0.5]
    assert np.isfinite(jg.vmap(jg.grad(halved))(x).numpy()).all()


def test_bounds_of_fori_loop_may_differ_between_examples() -> None:
    triangular = jg.vmap(lambda n: lax.fori_loop(0, n, lambda k, total: total + k, 0))

    assert triangular(jg.tensor([3, 5, 0])).tolist() == [3, 10, 0]


def test_a_condition_that_all_examples_share_is_read_once_a_turn() -> None:
    count = jg.vmap(lambda x, n: lax.while_loop(lambda s: s[1] > 0, lambda s: (s[0] * 2, s[1] - 1), (x, n))[0], (0, None))

    assert count(jg.tensor([1.0, 2.0]), 3).tolist() == [8.0, 16.0]
