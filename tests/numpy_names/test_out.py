"""``out=`` as in NumPy: the result is written there and ``out`` is returned, eager, compiled and with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import DtypeError, ShapeError, TraceError

X = numpy.arange(1.0, 7.0).reshape(2, 3)
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, x, out: m.add(x, 1.5, out=out),
    "ufunc by position": lambda m, x, out: m.multiply(x, x, out),
    "a tuple": lambda m, x, out: m.exp(x, out=(out,)),
    "where": lambda m, x, out: m.sqrt(x, out=out, where=x > 2),
    "clip": lambda m, x, out: m.clip(x, 2, 4, out=out),
    "round": lambda m, x, out: m.round(x / 3, 1, out=out),
    "sum": lambda m, x, out: m.sum(x, axis=0, out=out[0]),
    "sum by position": lambda m, x, out: m.sum(x, 1, None, out[:, 0]),
    "max": lambda m, x, out: m.max(x, 0, out[0]),
    "std": lambda m, x, out: m.std(x, axis=1, out=out[:, 1]),
    "cumsum": lambda m, x, out: m.cumsum(x, axis=1, out=out),
    "dot": lambda m, x, out: m.dot(x, m.ones((3, 3)), out),
    "matmul": lambda m, x, out: m.matmul(x, m.ones((3, 3)), out=out),
    "concatenate": lambda m, x, out: m.concatenate([x[:1], x[:1]], out=out),
    "take": lambda m, x, out: m.take(x, m.array([2, 0, 1]), axis=1, out=out),
    "argmax": lambda m, x, out: m.argmax(x, axis=1, out=m.zeros(2, dtype=int)),
    "overlapping": lambda m, x, out: m.subtract(out[:, ::-1], x, out=out),
    "a wider out": lambda m, x, out: m.negative(x[0], out=out),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_and_targets_are_numpys(name: str) -> None:
    expected_out, out = numpy.full((2, 3), -1.0), np.full((2, 3), -1.0)
    expected = CALLS[name](numpy, X, expected_out)

    numpy.testing.assert_allclose(CALLS[name](np, np.array(X), out).numpy(), expected, rtol=1e-15)
    numpy.testing.assert_allclose(out.numpy(), expected_out, rtol=1e-15)


def test_a_compiled_function_changes_its_argument() -> None:
    def step(x: Any, speed: Any) -> Any:
        np.multiply(speed, 0.5, out=speed)
        return np.add(x, speed, out=x).sum()

    found, expected = (np.ones(3), np.ones(3)), (np.ones(3), np.ones(3))
    compiled = jg.jit(step, backend="python")

    assert [compiled(*found).item() for _ in range(2)] == [step(*expected).item() for _ in range(2)] == [4.5, 5.25]
    assert [x.tolist() for x in found] == [x.tolist() for x in expected]
    assert compiled.cache_info().traces == 1


def test_gradients_flow_through_out_and_stop_at_what_where_left() -> None:
    def squares(x: Any) -> Any:
        return np.multiply(x, x, out=np.zeros(3), where=np.array([True, False, True])).sum()

    assert jg.grad(squares)(np.array([1.0, 2.0, 3.0])).tolist() == [2.0, 0.0, 6.0]


def test_an_array_of_numpy_is_changed_outside_of_traces() -> None:
    out = numpy.zeros(3)

    assert np.mean(np.array(X), axis=0, out=out) is out
    assert out.tolist() == [2.5, 3.5, 4.5]
    with pytest.raises(TraceError, match=r"add: out= is an array of NumPy, which a trace cannot change: give a tensor"):
        jg.jit(lambda x: np.add(x, 1.0, out=out))(np.ones(3))


def test_what_does_not_fit_says_so() -> None:
    with pytest.raises(ShapeError, match=r"add: a result f64\[2,3\] does not fit into out= of shape \(2,\)"):
        np.add(np.array(X), 1, out=np.zeros(2))
    with pytest.raises(DtypeError, match=r"cannot write f64\[2,3\] into out= of int64.*astype\(int64\)"):
        np.add(np.array(X), 1, out=np.zeros((2, 3), dtype=int))
