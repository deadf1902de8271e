"""jax.numpy's ``size=``: positions and distinct elements in results of a fixed length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.errors import ArgumentError

X = np.array([[0, 2, 0, 5], [1, 0, 2, 2]])
CALLS = {
    "nonzero": lambda m, x, **how: m.nonzero(x, **how),
    "nonzero of pairs": lambda m, x, **how: m.nonzero(x, **{**how, "fill_value": (7, 8)}),
    "where": lambda m, x, **how: m.where(x > 1, **how),
    "flatnonzero": lambda m, x, **how: (m.flatnonzero(x, **how),),
    "argwhere": lambda m, x, **how: (m.argwhere(x, **how),),
    "unique": lambda m, x, **how: m.unique(x, return_index=True, return_inverse=True, return_counts=True, **how),
    "unique alone": lambda m, x, **how: (m.unique(x, **how),),
}


@pytest.mark.peers
@pytest.mark.parametrize("fill", [None, -1])
@pytest.mark.parametrize("name", CALLS)
def test_sizes_are_jaxs(name: str, fill: int | None) -> None:
    theirs: Any = pytest.importorskip("jax.numpy")
    for size in (2, 11):
        ours = CALLS[name](jnp, X, size=size, fill_value=fill)
        for found, expected in zip(ours, CALLS[name](theirs, X, size=size, fill_value=fill), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("name", CALLS)
def test_one_program_and_every_example(name: str) -> None:
    call = jg.jit(lambda x: CALLS[name](jnp, x, size=3), backend="python")
    for x in (X, X[::-1].copy()):
        for found, expected in zip(call(x), CALLS[name](jnp, x, size=3), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert call.cache_info().programs == 1
    rows = jg.vmap(lambda x: CALLS[name](jnp, x[None], size=3))(X)
    for k, row in enumerate(X):
        for found, expected in zip(rows, CALLS[name](jnp, row[None], size=3), strict=True):
            np.testing.assert_array_equal(found[k].numpy(), expected.numpy())


def test_equal_nan_are_one_element() -> None:
    assert jnp.unique(jnp.array([np.nan, 1.0, np.nan]), size=2).tolist()[0] == 1.0
    assert jnp.unique(jnp.array([np.nan, 1.0, np.nan]), size=3, fill_value=5.0).tolist()[2] == 5.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.nonzero(X, size=-1),
        lambda: jnp.nonzero(X, size=2, fill_value=(1, 2, 3)),
        lambda: jnp.unique(X, size=2, axis=0),
        lambda: jnp.unique(X, equal_nan=False),
    ],
)
def test_refused(call: Any) -> None:
    with pytest.raises(ArgumentError, match=r"size|fill_value|equal_nan"):
        call()
