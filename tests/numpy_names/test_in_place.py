"""NumPy's functions that change their first argument change a tensor alike, eager, compiled and with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import ArgumentError, DtypeError, IndexingError, OperandError, ShapeError

A = numpy.random.default_rng(0).normal(size=(4, 5))
CUBE = numpy.arange(27.0).reshape(3, 3, 3)
LINE = numpy.arange(6.0)
MASK = A > 0
Change = Callable[[Any, Any], None]

CHANGES: dict[str, tuple[numpy.ndarray[Any, Any], Change]] = {
    "copyto": (A, lambda np, x: np.copyto(x, A[0])),
    "copyto number": (A, lambda np, x: np.copyto(x, 2)),
    "copyto where": (A, lambda np, x: np.copyto(x, -1.0, where=MASK)),
    "copyto unsafe": (LINE.astype(numpy.int64), lambda np, x: np.copyto(x, LINE * 1.5, casting="unsafe")),
    "fill_diagonal": (A, lambda np, x: np.fill_diagonal(x, 7.0)),
    "fill_diagonal tall": (A.T.copy(), lambda np, x: np.fill_diagonal(x, 7.0)),
    "fill_diagonal vector": (A, lambda np, x: np.fill_diagonal(x, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
    "fill_diagonal short": (A, lambda np, x: np.fill_diagonal(x, [1.0, 2.0])),
    "fill_diagonal cube": (CUBE, lambda np, x: np.fill_diagonal(x, -1)),
    "putmask": (A, lambda np, x: np.putmask(x, MASK, 3.0)),
    "putmask same": (A, lambda np, x: np.putmask(x, MASK, A**2)),
    "putmask short": (A, lambda np, x: np.putmask(x, MASK, [10.0, 20.0, 30.0])),
    "place": (A, lambda np, x: np.place(x, MASK, [10.0, 20.0, 30.0])),
    "place one": (A, lambda np, x: np.place(x, MASK, [10.0])),
    "put": (A, lambda np, x: np.put(x, [0, 7, -1, 7], [1.0, 2.0, 3.0, 4.0])),
    "put short": (CUBE, lambda np, x: np.put(x, [[1, 5], [26, 9]], [1.0, 2.0])),
    "put nothing": (A, lambda np, x: np.put(x, [], [1.0])),
    "put wrap": (LINE, lambda np, x: np.put(x, [7, -8], 9.0, mode="wrap")),
    "put clip": (LINE, lambda np, x: np.put(x, [7, -8], 9.0, mode="clip")),
    "put_along_axis": (A, lambda np, x: np.put_along_axis(x, numpy.argsort(A, 1)[:, :2], 9.0, 1)),
    "put_along_axis rows": (A, lambda np, x: np.put_along_axis(x, numpy.argmax(A, 0)[None], A[:1] * 2, 0)),
    "put_along_axis flat": (A, lambda np, x: np.put_along_axis(x, numpy.array([3, 4]), numpy.array([1.0, 2.0]), None)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_numpys(name: str) -> None:
    start, change = CHANGES[name]
    expected = start.copy()
    change(numpy, expected)

    def f(x: Any) -> Any:
        y = x * 1
        change(np, y)
        return y

    for compiled in (f, jg.jit(f, backend="python")):
        numpy.testing.assert_array_equal(compiled(jg.asarray(start)).numpy(), expected)
    by_numpys_name = jg.asarray(start.copy())
    change(numpy, by_numpys_name)
    numpy.testing.assert_array_equal(by_numpys_name.numpy(), expected)


@pytest.mark.parametrize("name", [name for name, (start, _) in CHANGES.items() if start.dtype.kind == "f"])
def test_gradients_end_where_elements_were_replaced(name: str) -> None:
    start, change = CHANGES[name]
    changed = start.copy()
    change(numpy, changed)

    def f(x: Any) -> Any:
        y = x * 1.0
        change(np, y)
        return (y**2).sum()

    for g in (jg.grad(f), jg.jit(jg.grad(f), backend="python")):
        found = g(jg.asarray(start)).numpy()
        replaced = numpy.full(start.shape, numpy.nan)
        change(numpy, replaced)
        numpy.testing.assert_array_equal(found, numpy.where(numpy.isnan(replaced), 2 * start, 0.0))


def test_a_value_gets_its_gradient() -> None:
    def f(v: Any) -> Any:
        x = np.zeros((3, 3))
        np.fill_diagonal(x, v)
        np.put(x, [1, 2], v[:2])
        return (x**2 * np.arange(1.0, 10.0).reshape(3, 3)).sum()

    v = numpy.array([1.0, 2.0, 3.0])
    expected = 2 * v * numpy.array([1.0 + 2.0, 5.0 + 3.0, 9.0])
    numpy.testing.assert_allclose(jg.grad(f)(v).numpy(), expected)


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        (OperandError, lambda: np.fill_diagonal(numpy.eye(2), np.ones(2)), "changes a tensor in place, got ndarray: make it one"),
        (DtypeError, lambda: np.copyto(np.zeros(2, int), np.ones(2)), "float64 to int64 is no 'same_kind' cast"),
        (ShapeError, lambda: np.fill_diagonal(np.zeros(3), 0.0), "takes a matrix"),
        (ShapeError, lambda: np.fill_diagonal(np.zeros((2, 3, 3)), 0.0), "axes of one length"),
        (ArgumentError, lambda: np.fill_diagonal(np.zeros((5, 2)), 0.0, wrap=True), "wrap= of a tall matrix"),
        (ShapeError, lambda: np.putmask(np.zeros(3), [True], 1.0), r"mask has shape \(1,\)"),
        (ArgumentError, lambda: np.place(np.zeros(3), np.ones(3) > 0, []), "no values"),
        (IndexingError, lambda: np.put(np.zeros(3), [5], 1.0), "5"),
        (ArgumentError, lambda: np.put(np.zeros(3), [0], 1.0, mode="round"), "mode must be"),
        (ShapeError, lambda: np.put_along_axis(np.zeros((2, 2)), [0], 1.0, 1), "as many axes"),
    ],
)
def test_errors(error: type[Exception], call: Callable[[], None], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_numpy_array_outside_of_a_trace_is_changed_as_by_numpy() -> None:
    x, y = numpy.eye(3), numpy.zeros(3)

    np.fill_diagonal(x, 7.0)
    np.put_along_axis(x, numpy.array([[1], [0], [0]]), 2.0, axis=1)
    np.copyto(y, [1.0, 2.0, 3.0])

    numpy.testing.assert_array_equal(x, [[7.0, 2.0, 0.0], [2.0, 7.0, 0.0], [2.0, 0.0, 7.0]])
    numpy.testing.assert_array_equal(y, [1.0, 2.0, 3.0])
    with pytest.raises(OperandError, match="changes a tensor"):
        jg.jit(lambda v: (np.fill_diagonal(x, 1.0), v)[1])(jg.ones(2))
