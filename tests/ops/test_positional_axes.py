"""A use of ``x.max(1)`` as torch's pair gets a warning or an error that names ``dim=``."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import MeaningWarning

X = jg.tensor([[3.0, 1.0], [2.0, 5.0]])


@pytest.mark.parametrize("call", [lambda x: x.max(1)[1], lambda x: jg.min(x, 0)[0], lambda x: [*x.sort(1)]])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")])
def test_a_use_as_a_pair_warns(call: Any, wrap: Any) -> None:
    with pytest.warns(MeaningWarning, match=r"test_positional_axes.*x\.max\(dim=1\)"):
        wrap(call)(X)


@pytest.mark.parametrize("call", [lambda x: x.max(axis=1)[1], lambda x: x.max(1) + 1, lambda x: jg.numpy.max(x, 1)[0]])
def test_other_uses_do_not(call: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(X)


def test_names_of_the_pair_say_how_to_get_it() -> None:
    with pytest.raises(AttributeError, match=r"x\.max\(dim=1\)"):
        _ = X.max(1).indices
    assert not hasattr(X, "values")
