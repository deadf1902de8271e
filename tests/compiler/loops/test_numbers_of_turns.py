"""The number of a turn is a Python int: what asks for its class, changes ``x[i]`` or needs all its digits is as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax
from jitgrad.compiler.loops.loop_op import LOOP, LoopBody
from jitgrad.core.aval import Aval
from jitgrad.core.errors import VerifyError
from jitgrad.core.ir import Graph, Value
from tests.compiled import assert_same
from tests.compiler.loops.comparison import TURNS, XS, check, loops_of, normal

# --- dtypes ------------------------------------------------------------------------------------------------------


def squares(x: Any) -> Any:
    return lax.fori_loop(0, TURNS, lambda i, c: c * 0.9 + jg.sin(x * i) * (i * 0.5), x)


def gradient(x: Any) -> Any:
    return jg.grad(lambda y: squares(y).sum())(x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("backend", ["python", "cpu"])
def test_the_gradient_has_the_dtype_of_the_carry(dtype: str, backend: str) -> None:
    x = jg.tensor(np.linspace(1, 2, 5).astype(dtype))
    compiled = jg.jit(gradient, check="off", backend=backend)
    tolerance = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-10}[dtype]
    assert_same(compiled(x), gradient(x), rtol=tolerance, atol=tolerance)
    assert loops_of(compiled, x) == 1  # the backward turn computes again what it reads


def test_the_gradient_is_right_where_turns_are_written_out() -> None:
    x = jg.tensor(np.linspace(1, 2, 5, dtype=np.float32))
    compiled = jg.jit(gradient, check="off", memory_budget=4000)
    assert_same(compiled(x), gradient(x), rtol=1e-4, atol=1e-4)


def test_ejected_turns_have_weak_numbers(tmp_path: Any) -> None:
    x = jg.tensor(np.linspace(1, 2, 5, dtype=np.float32))
    jg.jit(squares).eject(tmp_path / "squares.py", x)
    assert_same(jg.load_ejected(tmp_path / "squares.py")(x), squares(x), rtol=1e-5, atol=1e-5)


def test_a_turn_must_give_carries_like_those_it_takes() -> None:
    given, made = Value(Aval((5,), np.dtype(np.float32))), Value(Aval((5,), np.dtype(np.float64)))
    body = LoopBody(Graph("turn", (given,), (), (made,)), 1, 0)
    with pytest.raises(VerifyError, match=r"takes f32.5. as carry 0 and gives f64.5."):
        LOOP.abstract([given.aval], {"body": body, "length": 20, "reverse": False})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "turn",
    [
        lambda i, c: c + i,
        lambda i, c: jg.where(c > i, 1, 0).astype(c.dtype),
        lambda i, c: c + jg.full_like(c, i),
        lambda i, c: c + jg.tensor(i, dtype=c.dtype),
        lambda i, c: c.at[1].set(i),
    ],
)
def test_a_number_that_does_not_fit_raises_what_it_does_in_eager(turn: Callable[..., Any], dtype: str) -> None:
    f = lambda x, n: lax.fori_loop(0, n, turn, x)  # noqa: E731
    x, compiled = jg.tensor([1, 2, 3], dtype=dtype), jg.jit(f, check="off")
    for n in (30, 300):
        try:
            expected = f(x, n)
        except OverflowError:
            with pytest.raises(OverflowError):
                compiled(x, n)
        else:
            assert_same(compiled(x, n), expected)


# --- classes -----------------------------------------------------------------------------------------------------


def by_match(i: Any) -> Any:
    match i:
        case int():
            return 1
        case _:
            return 2


def by_error(i: Any) -> Any:
    try:
        return i.shape[0]
    except AttributeError:
        return 1
    except IndexError:
        return 2


CLASSES: dict[str, Callable[[Any], Any]] = {
    "isinstance": lambda i: 1 if isinstance(i, int) else 2,
    "isinstance of a tensor": lambda i: 2 if isinstance(i, jg.Tensor) else 1,
    "isinstance of a result": lambda i: 1 if isinstance(i * 2, int) else 2,
    "type": lambda i: 1 if type(i) is int else 2,
    "type of a result": lambda i: 1 if type(i * 0.5) is float else 2,
    "class": lambda i: 1 if i.__class__ is int else 2,
    "hasattr": lambda i: 2 if hasattr(i, "shape") else 1,
    "isscalar": lambda i: 1 if np.isscalar(i) else 2,
    "match": by_match,
    "error": by_error,
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_of_the_number_is_int(name: str) -> None:
    check(lambda x: lax.fori_loop(0, TURNS, lambda i, c: c * 0.5 + CLASSES[name](i) * i, x), normal(3), loops=0)


def test_another_name_of_a_number_keeps_its_value() -> None:
    def turn(i: Any, c: Any) -> Any:
        twice = i * 2
        other = twice
        other += 1
        return c * 0.5 + twice * other

    check(lambda x: lax.fori_loop(0, TURNS, turn, x), normal(3), loops=1)


# --- views -------------------------------------------------------------------------------------------------------


def change_of_an_outside_row(x: Any) -> Any:
    y = x * 2

    def turn(i: Any, c: Any) -> Any:
        row = y[i]
        row += 1
        return c + y.sum()

    return lax.fori_loop(0, TURNS, turn, jg.zeros(())), y


def change_behind_a_row(x: Any) -> Any:
    def turn(i: Any, c: Any) -> Any:
        y = x + c
        row = y[i]
        y *= 2
        return row.sum() * 0.01

    return lax.fori_loop(0, TURNS, turn, jg.zeros(()))


def change_of_part_of_a_row(x: Any) -> Any:
    def turn(i: Any, c: Any) -> Any:
        y = x * 0.5 + c
        y[:, i % 3].fill_(0)
        y[i][1:] += 2
        return y.sum() * 0.01

    return lax.fori_loop(0, TURNS, turn, jg.zeros(()))


def row_as_carry(x: Any) -> Any:
    y = x * 2
    row = lax.fori_loop(0, TURNS, lambda i, c: y[i], x[0])
    row += 1
    return row, y


@pytest.mark.parametrize("f", [change_of_an_outside_row, change_behind_a_row, change_of_part_of_a_row, row_as_carry])
def test_a_row_is_a_view(f: Callable[..., Any]) -> None:
    check(f, XS, loops=0)


def test_rows_that_are_only_read_stay_in_a_loop() -> None:
    check(lambda x: lax.fori_loop(0, TURNS, lambda i, c: c * 0.5 + x[i] * x[i, 1], x[0]), XS, loops=1)


@pytest.mark.parametrize("k", [1, jg.tensor(1)])
def test_dynamic_slices_are_copies(k: Any) -> None:
    x = jg.tensor([1.0, 2.0, 3.0])
    part = lax.dynamic_slice(x, (k,), (2,))
    part += 5
    assert x.tolist() == [1.0, 2.0, 3.0]
