"""The methods of jitgrad.numpy's ufuncs are those of NumPy's, eager and compiled, with gradients."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import ArgumentError, OperandError

A = numpy.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
B = numpy.array([2.0, 3.0])
WRAPS = [lambda f: f, lambda f: jg.jit(f, backend="python")]
CALLS = {
    "outer": lambda np, a, b: (np.multiply.outer(a, b), np.subtract.outer(b, a), np.add.outer(b, 1.0), np.less.outer(b, b)),
    "reduce": lambda np, a, b: (np.add.reduce(a), np.maximum.reduce(a, axis=1), np.multiply.reduce(a, axis=None, keepdims=True)),
    "logical": lambda np, a, b: (np.logical_and.reduce(a > 0), np.logical_or.reduce(a > 3, 1), np.minimum.reduce(b)),
    "accumulate": lambda np, a, b: (np.add.accumulate(a), np.maximum.accumulate(a, 1), np.minimum.accumulate(b)),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", CALLS)
def test_methods_are_numpys(wrap: Any, name: str) -> None:
    call = CALLS[name]
    found, expected = wrap(lambda a, b: call(np, a, b))(np.array(A), np.array(B)), call(numpy, A, B)
    for one, other in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(
    ("name", "index", "values"),
    [("add", ([0, 1, 0], [2, 0, 2]), 2.0), ("subtract", [1, 1], [[1.0, 2.0, 3.0]] * 2), ("maximum", (0, slice(2)), [5.0, -4.0]),
     ("minimum", (slice(None), 0), -7.0), ("multiply", (0, slice(1, 3)), 3.0), ("divide", 1, 2.0)],
)  # fmt: skip
def test_changes_in_place_count_equal_indices(wrap: Any, name: str, index: Any, values: Any) -> None:
    expected = A.copy()
    getattr(numpy, name).at(expected, index, values)

    def change(a: Any) -> Any:
        changed = a.copy()
        assert getattr(np, name).at(changed, index, values) is None
        return changed

    numpy.testing.assert_array_equal(wrap(change)(np.array(A)).numpy(), expected)


def test_gradients_pass() -> None:
    def f(a: Any, b: Any) -> Any:
        y = a * 1.0
        np.add.at(y, ([0, 0], [1, 1]), b)
        return np.sum(np.multiply.outer(y, b) ** 2) + np.sum(np.maximum.accumulate(np.add.reduce(y)))

    jg.gradcheck(f, (np.array(A), np.array(B)))


def test_elements_with_their_indices() -> None:
    pairs = [*np.ndenumerate(np.array(A))]
    assert [index for index, _ in pairs] == [index for index, _ in numpy.ndenumerate(A)]
    assert [value.item() for _, value in pairs] == A.ravel().tolist()
    assert [index for index, _ in np.ndenumerate(5.0)] == [()]


def test_what_methods_cannot_do_is_an_error() -> None:
    with pytest.raises(OperandError, match=r"add\.at changes a tensor in place, got list: make it one with asarray"):
        np.add.at([1.0], 0, 1.0)
    with pytest.raises(OperandError, match="got ndarray"):
        jg.jit(lambda x: np.add.at(A, 0, x))(np.array(1.0))
    array = A.copy()
    np.add.at(array, 0, np.array([1.0, 2.0, 3.0]))
    assert array[0].tolist() == [2.0, 0.0, 6.0]
    with pytest.raises(ArgumentError, match=r"add\.reduce takes no initial="):
        np.add.reduce(A, initial=2.0)


def test_reduce_and_accumulate_write_into_out():
    out = np.zeros(3)

    assert np.add.reduce(np.ones((2, 3)), out=out) is out and out.tolist() == [2.0, 2.0, 2.0]
    assert np.add.reduce(np.ones((4, 3)), 0, None, out) is out and out.tolist() == [4.0, 4.0, 4.0]
    assert np.maximum.accumulate(np.array([1.0, 3.0, 2.0]), out=out) is out and out.tolist() == [1.0, 3.0, 3.0]
