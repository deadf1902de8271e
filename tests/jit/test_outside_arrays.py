"""Arrays of NumPy that a compiled function reads from outside, whatever their strides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp

LINE = np.arange(1.0, 5.0)
TABLE = np.arange(16.0).reshape(4, 4) ** 2


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + LINE[::-1],
        lambda x: x[:2] * LINE[::2],
        lambda x: jnp.dot(x[:2], LINE[:2][::-1]),
        lambda x: jnp.dot(x, TABLE.T),
        lambda x: jnp.dot(TABLE[:, ::-1], x),
        lambda x: x + TABLE[:, 1],
    ],
    ids=["reversed", "every second", "part reversed", "transposed", "columns reversed", "column"],
)
def test_array_with_strides_is_read_in_every_call(f: Callable[[jg.Tensor], jg.Tensor]) -> None:
    compiled = jg.jit(f)

    for k in range(5):  # the third call is the first fast one
        x = jg.tensor([1.0, 2.0, -1.0, 0.5], dtype=jg.float64) * (k + 1)
        np.testing.assert_allclose(compiled(x).numpy(), f(x).numpy(), rtol=1e-12)
    assert compiled.cache_info().traces == 1


def test_change_of_an_array_with_strides_is_seen() -> None:
    base = np.arange(6.0)
    view = base[::-2]
    compiled = jg.jit(lambda x: x * view)

    for k in range(5):
        base[:] = np.arange(6.0) + k
        np.testing.assert_array_equal(compiled(jg.ones(3, dtype=jg.float64)).numpy(), view)
