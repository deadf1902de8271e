"""``x += y`` makes a new tensor in programs of JAX: no other name, argument or carry changes; eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jitgrad.jax.numpy as jnp
import numpy as np
import pytest

import jitgrad as jg
from jitgrad import jax
from jitgrad.core.config import set_immutable, set_methods_of
from jitgrad.core.errors import InPlaceError


def carried(x: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        carry += 1.0
        return carry, carry

    return jax.lax.scan(body, x, None, length=3)[1]


def residual(x: Any) -> Any:
    h = x
    h += jnp.sin(h)
    h *= x
    return h


def other_name(x: Any) -> Any:
    before, total = x, x.sum()
    kept = total
    total -= 1.0
    x /= total
    return jnp.stack([before, x, kept * x])


EXPECTED: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (carried, lambda x: np.stack([x + 1, x + 2, x + 3])),
    (residual, lambda x: (x + np.sin(x)) * x),
    (other_name, lambda x: np.stack([x, x / (x.sum() - 1), x.sum() * x / (x.sum() - 1)])),
]


@pytest.mark.parametrize(("f", "by_numpy"), EXPECTED, ids=["carried", "residual", "other name"])
def test_no_other_name_changes(f: Callable[[Any], Any], by_numpy: Callable[[Any], Any]) -> None:
    array = np.array([0.5, 1.5, 2.5])

    for run in (f, jax.jit(f)):
        for _ in range(3):
            x = jnp.array(array)
            np.testing.assert_allclose(run(x).numpy(), by_numpy(array), rtol=1e-14)
            np.testing.assert_array_equal(x.numpy(), array)
    rows = jax.vmap(f)(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(rows.numpy()[1], by_numpy(2 * array), rtol=1e-14)
    assert jax.grad(lambda x: f(x).sum())(x).shape == (3,)


def test_dtype_and_shape_may_grow() -> None:
    x = jnp.arange(3)
    x += 0.5
    y = jnp.zeros(3)
    y += jnp.ones((2, 1))

    assert x.tolist() == [0.5, 1.5, 2.5]
    assert y.shape == (2, 3)


def test_parameter_outside_of_grad_mode_is_refused() -> None:
    weight = jg.zeros(2, requires_grad=True)

    with jg.no_grad(), pytest.raises(InPlaceError, match=r"x \+= y.*JAX's meaning"):
        weight -= 0.1


def test_process_of_both_is_refused() -> None:
    set_methods_of("torch")
    x = jnp.zeros(2)

    with pytest.raises(InPlaceError, match=r"jitgrad\.jax and jitgrad\.torch are imported"):
        x += 1.0


def test_trace_of_one_meaning_does_not_serve_the_other() -> None:
    def change(x: Any) -> Any:
        x += 1.0
        return x

    f, x = jg.jit(change), jnp.zeros(2)
    f(x)
    assert x.tolist() == [0.0, 0.0]
    set_immutable(False)
    f(x)
    assert x.tolist() == [1.0, 1.0]
    assert f.cache_info().traces == 2
