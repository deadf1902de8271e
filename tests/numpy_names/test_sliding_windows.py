"""numpy.lib.stride_tricks."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import ArgumentError

X = numpy.random.default_rng(0).normal(0, 1, (5, 6))


@pytest.mark.parametrize(
    ("x", "window", "axis"),
    [
        (X, (2, 3), None),
        (X, 4, 1),
        (X, 5, -2),
        (X[0], 1, None),
        (X, (2, 3), (1, 1)),
        (X, (3, 2), (1, 0)),
        (X.T, (2, 3), None),
        (X[::-1, ::2], (2, 2), None),
        (X.astype("f4"), (5, 6), None),
        ((X > 0), (2, 2), None),
        ((X * 9).astype(int), (2, 2), None),
    ],
)
def test_windows_are_numpys(x: Any, window: Any, axis: Any) -> None:
    expected = numpy.lib.stride_tricks.sliding_window_view(x, window, axis)
    for f in (np.lib.stride_tricks.sliding_window_view, jg.jit(np.lib.stride_tricks.sliding_window_view)):
        found = f(jg.asarray(x), window, axis)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert (found.numpy() == expected).all()


def test_windows_have_gradients() -> None:
    def blurred(x: Any) -> Any:
        return (np.lib.stride_tricks.sliding_window_view(x, (3, 3)).mean((-1, -2)) ** 2).sum()

    assert jg.gradcheck(blurred, (jg.tensor(X),))
    assert numpy.allclose(jg.jit(jg.grad(blurred))(jg.tensor(X)), jg.grad(blurred)(jg.tensor(X)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((2, 2), 0), "2 lengths for 1 axes"),
        ((7, 0), "size=7"),
        ((0, 0), "size=0"),
        (((2, 2), None, True), "windows are copies"),
    ],
)
def test_what_does_not_fit_is_an_error(arguments: Any, words: str) -> None:
    keywords = {"writeable": True} if len(arguments) == 3 else {}
    with pytest.raises(ArgumentError, match=words):
        np.lib.stride_tricks.sliding_window_view(jg.tensor(X), *arguments[:2], **keywords)
