"""Results that are views of the caller's tensors: the same memory, storage and history as eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import InPlaceError

VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x.reshape(-1),
    "sliced": lambda x: x[1:, ::-2],
    "row": lambda x: x[1],
    "chain": lambda x: jg.flip(x.T[1:], 0)[None],
    "repeated": lambda x: jg.broadcast_to(x, (2, 4, 6)),
    "copied by reshape": lambda x: x.T.reshape(-1),
    "detached": lambda x: x.detach().T,
}


def tensor(requires_grad: bool = False) -> jg.Tensor:
    x = jg.tensor(np.arange(24.0, dtype=np.float32).reshape(4, 6))
    return x.requires_grad_() if requires_grad else x


def calls(f: Any, *args: Any) -> list[Any]:
    """The results of the first call, of the general path, and of the fast path."""
    found = [f(*args), f(*args)]
    found += [f(*args), f(*args)]
    return found


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_exactly_if_eager_does(name: str, strided: bool) -> None:
    f = jg.jit(VIEWS[name])
    x = jg.tensor(np.arange(48.0).reshape(8, 6))[::2] if strided else tensor()
    eager = f.eager(x)
    for y in calls(f, x):
        assert y.numpy().strides == eager.numpy().strides
        assert np.shares_memory(y.numpy(), x.numpy()) == np.shares_memory(eager.numpy(), x.numpy())
        np.testing.assert_array_equal(y.numpy(), eager.numpy())
    assert f.lookup(x).program.steps == []


def test_a_write_to_a_result_shows_in_the_argument_and_the_other_way_round() -> None:
    f, x = jg.jit(lambda x: (x.T, x * 2.0)), tensor()
    for k, (y, double) in enumerate(calls(f, x)):
        y[0, 1] = 100.0 + k
        assert x[1, 0].item() == 100.0 + k
        x[0, 0] = 7.0 + k
        assert y[0, 0].item() == 7.0 + k and double[0, 0].item() != 7.0 + k


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_flow_through_a_view_as_in_eager(name: str) -> None:
    f, found = jg.jit(VIEWS[name]), []
    for run in (f.eager, f, f, f, f):
        x = tensor(requires_grad=True)
        y = run(x)
        assert y.requires_grad == (name != "detached")
        if y.requires_grad:
            (y * y).sum().backward()
            found.append(x.grad.numpy())
    assert all(np.array_equal(g, found[0]) for g in found)


def test_a_view_beside_a_result_with_a_history() -> None:
    f, found = jg.jit(lambda x: (x[1], jg.tanh(x))), []
    for run in (f.eager, f, f, f, f):
        x = tensor(requires_grad=True)
        row, y = run(x)
        (row.sum() + (y * y).sum()).backward()
        found.append(x.grad.numpy())
    for g in found:
        np.testing.assert_allclose(g, found[0], rtol=1e-5, atol=1e-6)


def test_no_history_under_no_grad() -> None:
    @jg.jit
    def f(x: Any) -> Any:
        with jg.no_grad():
            return x.T

    for y in calls(f, tensor(requires_grad=True)):
        assert not y.requires_grad and y.is_leaf


def test_a_history_that_the_callers_grad_mode_forbids() -> None:
    def inside(x: Any) -> Any:
        with jg.enable_grad():
            return x.T

    x = tensor(requires_grad=True)
    with jg.no_grad():
        for y in calls(jg.jit(inside), x):
            np.testing.assert_array_equal(y.detach().numpy(), x.detach().numpy().T)


def test_an_in_place_change_is_noticed_through_a_view() -> None:
    f = jg.jit(lambda x: x.T)
    for _ in range(4):
        x, w = tensor(), tensor(requires_grad=True)
        y = (w * x).sum()
        f(x)[0, 0] = 5.0
        with pytest.raises(InPlaceError):
            y.backward()


def test_views_of_a_global_and_of_one_argument_passed_twice() -> None:
    state = tensor()
    f = jg.jit(lambda x, y: (state[0], y.T, x[1]))
    x = tensor()
    for a, b, c in calls(f, x, x):
        assert np.shares_memory(a.numpy(), state.numpy())
        assert np.shares_memory(b.numpy(), x.numpy()) and np.shares_memory(c.numpy(), x.numpy())


def test_a_view_of_what_the_function_changes_shows_the_new_values() -> None:
    def f(x: Any) -> Any:
        y = x.T
        x += 1.0
        y[0] = 0.0
        return y

    compiled, x, z = jg.jit(f), tensor(), tensor()
    for y in (compiled(x) for _ in range(4)):
        f(z)
        np.testing.assert_array_equal(x.numpy(), z.numpy())
        np.testing.assert_array_equal(y.numpy(), x.numpy().T)
        assert np.shares_memory(y.numpy(), x.numpy())


def test_a_view_of_a_donated_argument_is_a_copy() -> None:
    f = jg.jit(lambda x: (x.T, x * 2.0), donate="x")
    for _ in range(4):
        x = tensor()
        before = x.numpy().copy()
        y, double = f(x)
        np.testing.assert_array_equal(y.numpy(), before.T)
        np.testing.assert_array_equal(double.numpy(), before * 2)
        with pytest.raises(jg.errors.DonatedError):
            x.numpy()


def test_a_view_of_an_array_is_a_copy() -> None:
    f, x = jg.jit(lambda x: jg.reshape(x, (-1,)), check="off"), np.arange(6.0).reshape(2, 3)
    for y in calls(f, x):
        assert not np.shares_memory(y.numpy(), x)
        np.testing.assert_array_equal(y.numpy(), x.reshape(-1))


def test_a_view_in_a_function_that_is_differentiated() -> None:
    f = jg.jit(lambda x: x.T)
    x = tensor()
    for _ in range(3):
        g = jg.grad(lambda x: (f(x) * f(x)).sum())(x)
        np.testing.assert_allclose(g.numpy(), 2 * x.numpy())
        h = jg.hvp(lambda x: (f(x) ** 3).sum(), (x,), (jg.ones_like(x),))
        np.testing.assert_allclose(np.asarray(jg.asarray(h[0] if isinstance(h, tuple) else h)), 6 * x.numpy())
