"""Calls that torch understands differently, ``x.max(1)`` as a pair and ``x.std()``, get a warning that names the keyword."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import MeaningWarning

X = jg.tensor([[3.0, 1.0], [2.0, 5.0]])


@pytest.mark.parametrize("call", [lambda x: x.max(1)[1], lambda x: jg.min(x, 0)[0], lambda x: [*jg.sort(x, 1)]])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")])
def test_a_use_as_a_pair_warns(call: Any, wrap: Any) -> None:
    with pytest.warns(MeaningWarning, match=r"test_positional_axes.*x\.max\(dim=1\)"):
        wrap(call)(X)


@pytest.mark.parametrize("call", [lambda x: x.max(axis=1)[1], lambda x: x.max(1) + 1, lambda x: jg.numpy.max(x, 1)[0]])
def test_other_uses_do_not(call: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(X)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")])
def test_names_of_the_pair_are_torchs(wrap: Any) -> None:
    x = jg.tensor([[3.0, 1.0], [2.0, 5.0]], requires_grad=True)

    def parts(x: Any) -> Any:
        largest = x.max(1)
        return largest.indices, largest.values, jg.sort(x, -1, descending=True).indices, x.min(0, True).values

    indices, values, order, smallest = wrap(parts)(x)
    assert indices.tolist() == [0, 1] and order.tolist() == [[0, 1], [1, 0]] and smallest.tolist() == [[2.0, 1.0]]
    values.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_names_of_the_pair_belong_to_the_last_call_alone() -> None:
    first, last = X.max(1), X.max(0)
    assert last.indices.tolist() == [0, 1]
    for x in (first, X, X.max(axis=1)):
        with pytest.raises(AttributeError, match=r"x\.max\(dim=1\)"):
            _ = x.indices
        assert not hasattr(x, "values")


def test_the_argument_lives_no_longer_than_the_result() -> None:
    x = X + 1.0
    argument = weakref.ref(x)
    result = x.max(1)
    del x
    assert argument() is not None
    del result
    assert argument() is None


def test_two_sorted_rows_that_are_unpacked_warn() -> None:
    with pytest.warns(MeaningWarning, match="unpacking"):
        _first, _second = jg.sort(X)


@pytest.mark.parametrize("call", [lambda x: x.std(), lambda x: jg.var(x, 1), lambda x: x.var(0)])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")])
def test_spread_without_a_keyword_warns_of_torchs_meaning(call: Any, wrap: Any) -> None:
    with pytest.warns(MeaningWarning, match=r"test_positional_axes.*divides by n - 1. Write (std|var)\(correction=1\)"):
        wrap(call)(X)


SPREADS = [lambda x: x.std(dim=0), lambda x: jg.var(x, correction=0), lambda x: x.std(axis=1), lambda x: jg.numpy.std(x)]


@pytest.mark.parametrize("call", SPREADS)
def test_spread_with_a_keyword_does_not_warn(call: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(X)
