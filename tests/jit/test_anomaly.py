"""detect_anomaly names the op, the line, the element and the operands of the first NaN in a compiled call."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AnomalyError


def line_of(function: Any, offset: int) -> str:
    return f"test_anomaly.py:{function.eager.__code__.co_firstlineno + offset}"


def error_of(function: Any, *args: Any) -> str:
    """The message of the same error twice: at the first call, and when the program exists."""
    with jg.detect_anomaly():
        with pytest.raises(AnomalyError) as first:
            function(*args)
        with pytest.raises(AnomalyError) as second:
            function(*args)
    assert str(first.value) == str(second.value)
    return str(first.value)


def test_forward() -> None:
    @jg.jit
    def f(x: Any, y: Any) -> Any:
        a = jg.where(x > 0, jg.log(x), -1.0)
        b = a.reshape(2, 2)[::-1] / y
        return (b.T * 2.0).sum(axis=0)

    x, y = jg.tensor([1.0, -2.0, 3.0, 1.0]), jg.tensor([[2.0, 1.0], [0.0, 2.0]])
    message = error_of(f, x, y)

    assert "result 0 of @jit function 'f'" in message
    assert f"{line_of(f, 3)} made the first NaN, in element [1, 0] of f32[2,2]" in message
    assert "divide(0.0, 0.0) = nan" in message
    assert "gradient" not in message


def test_backward_changes_nothing() -> None:
    w = jg.tensor(np.array([1.0, 0.0, 2.0]), requires_grad=True)

    @jg.jit
    def step(x: Any) -> Any:
        h = jg.sqrt(w) * x
        loss = h.sum()
        loss.backward()
        with jg.no_grad():
            w.__isub__(0.1 * w.grad)
        return loss

    message = error_of(step, jg.ones(3, dtype=jg.float64))

    assert f"in the gradient of the op at {__file__}" in message
    assert f"{line_of(step, 2)} made the first Inf, in element [1] of f64[3]" in message
    assert "divide(0.5, 0.0) = inf" in message
    assert w.grad is None
    assert w.tolist() == [1.0, 0.0, 2.0]


def test_gradient_of_a_compiled_function() -> None:
    @jg.jit
    def f(x: Any) -> Any:
        return (jg.sqrt(x) * 2.0).sum()

    x = jg.tensor([0.0, 1.0], requires_grad=True)
    f(x)  # eager, and compiled from now on
    with jg.detect_anomaly(), pytest.raises(AnomalyError) as error:
        f(x).backward()

    assert re.search(rf"gradient of the op at .*{line_of(f, 2)} made the first Inf, in element \[0\]", str(error.value))


@pytest.mark.parametrize(
    ("function", "op", "operands"),
    [
        (lambda x: (x * 1e30 * 1e30).sum(), "multiply", ("1e+30", "1e+30")),
        (lambda x: jg.exp(x * 1000.0).max(), "exp", ("1000.0",)),
        (lambda x: jg.concat([x, 1.0 / (x - 1.0)]), "divide", ("1.0", "0.0")),
        (lambda x: jg.pad(jg.log(x - 2.0), 1)[1:3] @ x, "log", ("-1.0",)),
        (lambda x: (x * 3e38).sum(), "sum", ("3e+38",)),
    ],
)
def test_every_way_back(function: Any, op: str, operands: tuple[str, ...]) -> None:
    message = error_of(jg.jit(function), jg.ones(2))

    assert f"{op} in " in message
    assert f"{op}({', '.join(operands)}) = " in message


def test_what_came_in_is_no_anomaly() -> None:
    f = jg.jit(lambda x: x * 2.0)
    with jg.detect_anomaly():
        assert np.isnan(f(jg.tensor([np.nan, 1.0])).numpy()).tolist() == [True, False]


def test_what_does_not_reach_a_result_is_no_anomaly() -> None:
    f = jg.jit(jg.value_and_grad(lambda x: jg.where(x > 0, jg.log(x), 0.0).sum()))
    with jg.detect_anomaly():
        for _ in range(3):
            assert f(jg.tensor([0.0, 1.0]))[1].tolist() == [0.0, 1.0]


def test_random_numbers_are_drawn_once() -> None:
    f = jg.jit(lambda: jg.randn(4))
    jg.manual_seed(3)
    expected = [f().tolist() for _ in range(3)]
    jg.manual_seed(3)
    with jg.detect_anomaly():
        assert [f().tolist() for _ in range(3)] == expected
