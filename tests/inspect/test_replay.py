"""f.replay: one element of a step, op by op, with values and adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError


def rows(replay: Any) -> dict[str, tuple[Any, Any]]:
    """The value and adjoint of the last op of each name."""
    return {o.op: (o.value, o.adjoint) for o in replay.ops}


def test_a_step_with_its_own_backward_changes_nothing() -> None:
    w = jg.tensor(np.array([1.0, 0.5, 4.0]), requires_grad=True)

    @jg.jit
    def step(x: Any) -> Any:
        h = jg.sqrt(w) * x
        loss = (h.T[::-1] ** 2).sum()
        loss.backward()
        with jg.no_grad():
            w.__isub__(0.1 * w.grad)
        return loss

    x = jg.tensor(np.arange(6.0).reshape(2, 3))
    found = rows(step.replay((1, 2), x))

    assert w.tolist() == [1.0, 0.5, 4.0]
    assert w.grad is None
    assert found["w"] == (4.0, 29.0)  # of all rows: it is one element of w
    assert found["argument 0"] == (5.0, None)
    assert found["sqrt"] == (2.0, 2 * 2.0 * 2.0**2 + 2 * 10.0 * 5.0)
    assert found["slice"] == (10.0, 20.0)
    assert found["sum"] == ((np.outer([1, 1], [1, np.sqrt(0.5), 2]) * x.numpy()).__pow__(2).sum(), 1.0)
    assert found["gradient of w"] == (29.0, None)
    assert found["subtract"] == (pytest.approx(1.1), None)


def test_a_function_is_differentiated() -> None:
    f = jg.jit(lambda a, b: jg.where(a > 0, jg.log(a) * b, 0.0))
    replay = f.replay(1, jg.tensor([0.0, 2.0, 3.0]), 2.0)

    assert rows(replay)["argument 0"] == (2.0, 1.0)
    assert rows(replay)["log"] == (pytest.approx(np.log(2.0)), 2.0)
    assert rows(replay)["where"][1] == 1.0
    assert [o.op for o in replay.ops] == ["argument 0", "greater", "log", "multiply", "where"]
    text = str(replay)
    assert text.startswith("<lambda> at element [1] of [3]\nline")
    assert "multiply(0.6931472, 2)" in text
    assert "test_replay.py:" in text


def test_negative_positions_and_rows() -> None:
    f = jg.jit(lambda x: (x - x.mean(axis=1, keepdims=True)) * 2.0)
    replay = f.replay((-1, 0), jg.tensor([[1.0, 2.0], [3.0, 7.0]]))

    assert replay.index == (1, 0)
    assert rows(replay)["divide"] == (5.0, -4.0)
    assert rows(replay)["subtract"] == (-2.0, 2.0)


def test_values_are_those_before_a_change() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        z = y + 1.0
        y += 10.0
        return y * z

    found = rows(jg.jit(f).replay(0, jg.tensor([1.0, 2.0])))
    assert found["multiply"][0] == 36.0
    assert next(o.value for o in jg.jit(f).replay(0, jg.tensor([1.0, 2.0])).ops if o.op == "add") == 3.0


def test_ops_that_mix_elements_show_shapes() -> None:
    f = jg.jit(lambda x, w: jg.tanh(x @ w))
    replay = f.replay((0, 1), jg.ones((2, 3)), jg.ones((3, 4)))

    product = next(o for o in replay.ops if o.op == "matmul")
    assert product.operands == ("f32[2,3]", "f32[3,4]")
    assert product.value == 3.0


def test_an_element_that_does_not_exist() -> None:
    f = jg.jit(lambda x: x * 2.0)
    with pytest.raises(ArgumentError, match=r"arrays of shape \[3\] element by element; there is no element \[3\]"):
        f.replay(3, jg.ones(3))
    with pytest.raises(ArgumentError, match=r"no element \[0, 0\]"):
        f.replay((0, 0), jg.ones(3))
