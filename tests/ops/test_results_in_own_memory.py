"""Functions that copy in NumPy and torch copy in degenerate cases, too: a change of the operand does not show in the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.nn import functional

COPYING: dict[str, Callable[[Any], Any]] = {
    "roll by nothing": lambda x: jg.roll(x, 0, 0),
    "roll by the length": lambda x: jg.roll(x, (4, 0), (0, 1)),
    "roll flattened": lambda x: jg.roll(x, 12),
    "repeat once": lambda x: jg.repeat(x, 1, axis=0),
    "repeat a row": lambda x: jg.repeat(x[:1], 4, axis=0),
    "repeat elements of a column": lambda x: jg.repeat(x[:, :1], 4, axis=1),
    "repeat flattened": lambda x: jg.repeat(x, 1),
    "tile once": lambda x: jg.tile(x, (1, 1)),
    "tile a row": lambda x: jg.tile(x[0], (4, 1)),
    "tile what is broadcast": lambda x: jg.tile(jg.broadcast_to(x[0], (4, 3)), (2, 1)),
    "resize": lambda x: jnp.resize(x, (4, 3)),
    "fftshift of one": lambda x: jnp.fft.fftshift(x[:, :1], 1),
    "windows of 1 x 1": lambda x: functional.unfold(x[None, None], 1),
}


def operand() -> Any:
    return jg.tensor(np.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", COPYING)
def test_the_result_has_memory_of_its_own(name: str, compiled: bool) -> None:
    function = COPYING[name]
    called = jg.jit(lambda x: function(x), check="off", backend="python") if compiled else function
    for _ in range(5):
        x = operand()
        y = called(x)
        before = y.numpy().copy()
        x += 100.0
        np.testing.assert_array_equal(y.numpy(), before)
        y[...] = -1.0
        np.testing.assert_array_equal(x.numpy(), operand().numpy() + 100.0)


@pytest.mark.parametrize("name", COPYING)
def test_within_a_function_changes_of_the_operand_do_not_show(name: str) -> None:
    function = COPYING[name]

    def changed(x: Any) -> Any:
        x = x * 1.0
        y = function(x)
        x += 100.0
        y *= 2.0
        return x, y

    for found, expected in zip(jg.jit(changed, check="off", backend="python")(operand()), changed(operand()), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_array_equal(changed(operand())[1].numpy(), function(operand()).numpy() * 2.0)


@pytest.mark.parametrize("name", COPYING)
def test_gradients_flow_through_the_copy(name: str) -> None:
    weights = jg.asarray(np.linspace(1.0, 2.0, COPYING[name](operand()).size)).reshape(COPYING[name](operand()).shape)

    assert jg.gradgradcheck(lambda x: (COPYING[name](x) ** 2 * weights).sum(), (operand().requires_grad_(),))
