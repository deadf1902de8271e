"""Library steps, layouts and dtypes in ejected modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from tests.compiled import assert_same, leaves
from tests.eject.ejecting import Eject, integers, tensor, text_of


@jg.elementwise
def bent(x: Any, limit: Any = 1.5) -> Any:
    if abs(x) < limit:
        return x
    return math.copysign(limit + math.log(abs(x) / limit), x)


@jg.elementwise
def averaged(x: Any, y: Any) -> Any:
    total = x
    for k in range(4):
        total = total * 0.5 + y / (k + 1)
    return total


def squares(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the squares of ``f``, with the gradient of its first argument."""

    def loss(*xs: Any) -> Any:
        return (f(*xs) ** 2).sum()

    return jg.value_and_grad(loss)


def put(x: Any, v: Any, i: Any) -> Any:
    x = x.clone()
    x[i] = v
    x[0, 1:3] = 7.0
    x[i] += v
    return x


TABLE = np.arange(200, dtype="f4")
STEPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul": (squares(lambda x, w: x @ w), (tensor(5, 4), tensor(4, 3))),
    "batched matmul": (squares(lambda x, w: x @ w), (tensor(2, 3, 4), tensor(2, 4, 5))),
    "float16 matmul": (squares(lambda x, w: x @ w * 0.1), (tensor(5, 4, dtype="f2"), tensor(4, 3, dtype="f2"))),
    "convolution": (squares(jg.conv2d), (tensor(2, 3, 6, 7), tensor(4, 3, 3, 3))),
    "take": (squares(lambda x, i: jg.take(x, i, axis=0)), (tensor(6, 5), integers(6, 9))),
    "index": (squares(lambda x, i: x[i, 1:3]), (tensor(6, 5), integers(6, 9))),
    "along an axis": (squares(lambda x, i: jg.take_along_axis(x, i, 1)), (tensor(6, 5), integers(5, 6, 2))),
    "put": (put, (tensor(6, 5), tensor(2, 5), integers(6, 2))),
    "sort": (lambda x: (jg.sort(x), jg.argsort(x, 0, descending=True), jg.topk(x, 2)), (tensor(6, 5),)),
    "positions": (lambda x: (x.argmax(1), x.argmin(0), jg.cumsum(x, 1)), (tensor(6, 5),)),
    "search": (lambda x, y: jg.searchsorted(jg.sort(x), y, side="right"), (tensor(9), tensor(5))),
    "reductions": (
        lambda x: (x.sum(0), x.max(0), x.mean(1), x.var(correction=0), jg.logsumexp(x, 1), x.T.sum(0)),
        (tensor(30, 600),),
    ),
    "constants": (lambda x: x + jg.asarray(TABLE) + jg.asarray(TABLE[:3]).sum(), (tensor(200),)),
    "counting": (lambda x: (jg.arange(6).reshape(2, 3).T + 0, jg.arange(3) * x.sum(), jg.ones((2,))), (tensor(3),)),
    "elementwise function": (squares(bent), (tensor(4, 5),)),
    "elementwise function with a loop": (squares(averaged), (tensor(4, 5), tensor(4, 5))),
    "mirrored": (lambda x: (jg.flip(x, 0) * 2, x[::-2, 1:] + 1, jg.concat([x, jg.flip(x, 1)])), (tensor(5, 4),)),
    "strided": (lambda x: jg.exp(x), (jg.tensor(np.random.default_rng(0).normal(size=(6, 8)).astype("f4").T[::2, ::-1]),)),
    "broadcast": (lambda x, y: x + y, (jg.tensor(np.broadcast_to(np.float32([1, 2, 3]), (4, 3))), tensor(4, 1))),
    "no axes": (lambda x: (jg.tanh(x), x.sum(), x * 2.0), (tensor(),)),
    "no elements": (lambda x: (jg.tanh(x), x.sum(), x.sum(0), (x * 2.0).reshape(-1)), (tensor(0, 4),)),
    "no terms": (lambda x, y: jg.softmax(x @ y, -1), (tensor(3, 0), tensor(0, 4))),
    "casts": (lambda x: [x.astype(d) for d in ("i1", "u1", "i8", "?", "f8", "f2")], (tensor(5, 5),)),
    "float16": (
        lambda x, y: (x / y, jg.exp(x), x.sum(1), x.max(0), x > y, x.astype("f8"), abs(x) ** 0.5),
        (tensor(5, 4, dtype="f2"), tensor(5, 4, dtype="f2", seed=1)),
    ),
    "float64 to float16": (lambda x: jg.exp(x).astype("f2"), (tensor(50, dtype="f8"),)),
    "bools": (
        lambda x, y: (x & y, x ^ y, ~x, x.any(0), x.all(1), x.sum(), jg.where(x, y, ~y)),
        (tensor(4, 5) > 0, tensor(4, 5) > 1),
    ),
}


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("name", STEPS)
def test_step(name: str, eject: Eject) -> None:
    function, args = STEPS[name]
    files, ejected = eject(function, *args)
    found, expected = leaves(ejected(*args, **files.state)), leaves(function(*args))
    assert_same(found, expected, rtol=2e-3 if "float16" in name else 2e-5, atol=1e-5)


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u4", "u8"])
def test_integers(dtype: str, eject: Eject) -> None:
    def f(x: Any, y: Any) -> Any:
        whole = x * y + x, x // y, x % y, x << 2, x >> 1, -x, jg.maximum(x, y), x > y, jg.fmod(x, y)
        return *whole, x & y, x | y, x ^ y, ~x, abs(x), jg.sign(x), x.sum(0), x.prod(1), x.astype("f4") / 3

    x, y = integers(200, 7, 5, dtype=dtype), integers(201, 7, 5, dtype=dtype)
    _, ejected = eject(f, x, y)
    assert_same(ejected(x, y), f(x, y))


@pytest.mark.numba
@pytest.mark.parametrize("name", ["reductions", "float16", "elementwise function with a loop", "put", "casts"])
def test_compiled_by_numba(name: str, eject: Eject) -> None:
    function, args = STEPS[name]
    eject(function, *args)


@pytest.mark.usefixtures("in_python")
def test_reductions_over_no_elements_have_functions_of_their_own(eject: Eject) -> None:
    """One function of a monoid stood for all: ``max`` took the place of ``sum``."""
    x = tensor(2, 2, 17)
    _, ejected = eject(lambda x: (jg.logsumexp(jg.exp(x), 1), x.max(1), x.sum(1)), x)
    assert_same(ejected(x)[1:], (x.max(1), x.sum(1)), ulp=4)


@pytest.mark.usefixtures("in_python")
def test_arrays_of_the_driver_hide_no_function(eject: Eject) -> None:
    """The result of the second sum had the name of the function that computes it."""
    x = tensor(0, 4)
    eject(lambda x: (x.sum(), x.sum(0)), x)


@pytest.mark.usefixtures("in_python")
def test_rows_that_are_independent_may_run_in_parallel(eject: Eject) -> None:
    files, _ = eject(lambda x: jg.softmax(x * 2.0, -1), tensor(4, 5))
    assert "@njit_rows\ndef kernel_1" in text_of(files)
    files, _ = eject(lambda x: (x * 2.0).sum(), tensor(4, 5))
    assert "@njit\ndef kernel_1" in text_of(files)


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_as_exact_as_those_of_vector_lanes(dtype: str, eject: Eject) -> None:
    """Sums of equal numbers drifted: every addition rounded to the same side."""
    x = jg.tensor(np.full((4, 1000), 0.7615941, dtype))
    _, ejected = eject(lambda x: (x.sum(), x.sum(0), x.sum(1), x.var(correction=0)), x)
    total, columns, rows, variance = (np.asarray(r) for r in ejected(x))
    one = np.asarray(x)[0, 0].astype("f8")
    np.testing.assert_allclose(total, 4000 * one, rtol=np.finfo(dtype).eps)
    np.testing.assert_allclose(columns, 4 * one, rtol=np.finfo(dtype).eps)
    np.testing.assert_allclose(rows, 1000 * one, rtol=np.finfo(dtype).eps)
    assert variance < np.finfo(dtype).eps ** 2


@pytest.mark.usefixtures("in_python")
def test_sums_of_infinities(eject: Eject) -> None:
    x = jg.tensor(np.array([[1.0, np.inf], [np.nan, 1.0], [np.inf, -np.inf], [1e308, 1e308]]))
    _, ejected = eject(lambda x: x.sum(1), x)
    assert_same(ejected(x), x.sum(1))


@pytest.mark.usefixtures("in_python")
def test_parts_of_results_without_elements(eject: Eject) -> None:
    """A result that no kernel writes had no memory."""
    x = tensor(2, 0, 3)
    _, ejected = eject(lambda x: jg.concat([x, x * 2.0], axis=1), x)
    assert ejected(x).shape == (2, 0, 3)
