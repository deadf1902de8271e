"""torch's in-place methods that write at places along an axis: as the functions, into the memory of the tensor itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import InPlaceError, ReadOnlyError
from jitgrad.ops import indexed_writes

ROWS = np.array([2, 0, 2])  # twice the same one
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index_fill": lambda f, x, i: f(x, 0, i, 7.0),
    "index_copy": lambda f, x, i: f(x, 0, i, x[:3] * 2),
    "index_add": lambda f, x, i: f(x, 0, i, x[:3], alpha=2),
    "scatter": lambda f, x, i: f(x, 1, i[:, None], x[:3, :1] + 1),
    "scatter_add": lambda f, x, i: f(x, 0, i[None], x[1:2] + 1),
    "index_put": lambda f, x, i: f(x, (i, i), x[0, :3]),
}


def both(name: str, x: jg.Tensor, index: Any = ROWS) -> tuple[jg.Tensor, jg.Tensor]:
    """``x`` after the method, and what the function makes of it."""
    i = jg.tensor(index)
    expected = CALLS[name](getattr(jg, name), x, i)
    assert CALLS[name](lambda *a, **k: getattr(a[0], name + "_")(*a[1:], **k), x, i) is x
    return x, expected


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_they_are_the_functions_and_make_no_new_tensor(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(indexed_writes, "assign")
    base = np.arange(800).reshape(40, 20).astype(dtype)
    for x in (jg.tensor(base), jg.tensor(base)[:, ::-2], jg.tensor(base.T.copy()).T):
        np.testing.assert_array_equal(*[y.numpy() for y in both(name, x)])


@pytest.mark.parametrize("name", CALLS)
def test_the_memory_is_written_of_which_others_have_views(name: str) -> None:
    whole = jg.tensor(np.arange(800.0).reshape(40, 20))
    part = whole[:, 1:]
    _, expected = both(name, part)

    np.testing.assert_array_equal(whole.numpy()[:, 1:], expected.numpy())


@pytest.mark.parametrize("name", CALLS)
def test_backward_notices_the_change_and_history_is_recorded(name: str) -> None:
    w = jg.tensor(np.ones((40, 20)), requires_grad=True)
    x = jg.tensor(np.arange(800.0).reshape(40, 20))
    loss = (w * x).sum()
    both(name, x)
    with pytest.raises(InPlaceError):
        loss.backward()

    (changed, expected), grads = both(name, w * 1.0), []
    for out in (changed, expected):
        w.grad = None
        (out * out).sum().backward()
        grads.append(w.grad.numpy())
    np.testing.assert_array_equal(*grads)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_wrong_changes_nothing(name: str) -> None:
    x = jg.tensor(np.arange(800.0).reshape(40, 20))
    fixed = np.arange(800.0).reshape(40, 20)
    fixed.flags.writeable = False
    with pytest.raises(IndexError):
        both(name, x, np.array([0, 1, 99]))
    with pytest.raises(ReadOnlyError):
        both(name, jg.from_numpy(fixed))
    np.testing.assert_array_equal(x.numpy(), fixed)


@pytest.mark.parametrize("name", CALLS)
def test_a_compiled_function_writes_it_back(name: str) -> None:
    x = jg.tensor(np.arange(800.0).reshape(40, 20))

    @jg.jit
    def step(x: jg.Tensor) -> jg.Tensor:
        return both(name, x)[1]

    for _ in range(2):
        expected = step(x)
        np.testing.assert_array_equal(x.numpy(), expected.numpy())
