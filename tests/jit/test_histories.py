"""Histories that a compiled call leaves: of what it changes in place, of its results, and where eager has an error."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import GraphFreedError, InPlaceError, TracedValueError

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")

CALLS = 4


def leaf(*shape: int) -> Any:
    return jg.tensor(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), requires_grad=True)


def state() -> Any:
    return SimpleNamespace(buf=jg.zeros((2, 3), dtype=jg.float64), log=[])


def both(make: Callable[[Any], Callable[..., Any]]) -> list[tuple[Any, Callable[..., Any]]]:
    """The state and the function, eager and compiled."""
    states = [state(), state()]
    return [(states[0], make(states[0])), (states[1], jg.jit(make(states[1])))]


def adds(s: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> None:
        s.buf += x * 2.0

    return f


def adds_to_a_row(s: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s.buf[1] += x[0]
        return s.buf[:, 1:]

    return f


def replaces(s: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        s.buf *= x
        s.buf[...] = 0.25
        return x * s.buf

    return f


@pytest.mark.parametrize("make", [adds, adds_to_a_row, replaces])
def test_state_takes_over_the_history_of_what_is_written_to_it(make: Any) -> None:
    seen = []
    for s, f in both(make):
        for _ in range(CALLS):
            x = leaf(2, 3)
            result = f(x)
            total = (s.buf * 1.5).sum() + (0.0 if result is None else result.sum())
            found = jg.autograd.grad(total, x, allow_unused=True) if total.requires_grad else (None,)
            seen.append((s.buf.requires_grad, s.buf.numpy() if not s.buf.requires_grad else s.buf.detach().numpy(), *found))
            s.buf = jg.tensor(s.buf.detach().numpy())
    for ours, eager in zip(seen[CALLS:], seen[:CALLS], strict=True):
        assert ours[0] == eager[0] and (ours[2] is None) == (eager[2] is None)
        np.testing.assert_allclose(ours[1], eager[1])
        if eager[2] is not None:
            np.testing.assert_allclose(ours[2].numpy(), eager[2].numpy())


def test_a_history_grows_over_several_calls() -> None:
    gradients = []
    for s, f in both(adds):
        xs = [leaf(2, 3) for _ in range(CALLS)]
        for x in xs:
            f(x)
        (s.buf * s.buf).sum().backward()
        gradients.append([x.grad.numpy() for x in xs])

    np.testing.assert_allclose(gradients[1], gradients[0])


def test_an_argument_takes_over_the_history_of_what_is_written_to_it() -> None:
    def f(x: Any, y: Any) -> Any:
        x += y * y
        return x.sum()

    compiled = jg.jit(f)
    for _ in range(CALLS):
        x, y = jg.zeros((2, 3), dtype=jg.float64), leaf(2, 3)
        view = x.T
        compiled(x, y)
        (x * 3.0 + view.T).sum().backward()
        np.testing.assert_allclose(y.grad.numpy(), 8.0 * y.detach().numpy())


def test_a_trace_that_fails_leaves_histories_as_they_were() -> None:
    s = state()

    @jg.jit
    def f(x: Any) -> Any:
        s.buf += x
        return float(s.buf.sum())

    with pytest.raises(TracedValueError):
        f(leaf(2, 3))
    assert not s.buf.requires_grad and s.buf.grad_fn is None


def test_backward_from_outside_through_changed_data_is_an_error() -> None:
    def f(x: Any) -> Any:
        y = jg.exp(x)
        y *= 2.0
        return y, jg.sin(x)

    for g in (f, jg.jit(f)):
        for _ in range(CALLS):
            y, z = g(leaf(2, 3))
            z.sum().backward(retain_graph=True)
            with pytest.raises(InPlaceError, match=r"backward of exp at .*test_histories.py:\d+ needs .* changed in place at"):
                (y.sum() + z.sum()).backward()


def test_backward_from_outside_through_a_freed_graph_is_an_error() -> None:
    def f(x: Any) -> Any:
        y = x * x
        y.sum().backward()
        return y + x

    for g in (f, jg.jit(f)):
        for _ in range(CALLS):
            x = leaf(2, 3)
            y = g(x)
            np.testing.assert_allclose(x.grad.numpy(), 2.0 * x.detach().numpy())
            with pytest.raises(GraphFreedError, match=r"backward through multiply at .*test_histories.py:\d+ a second time"):
                y.sum().backward()


def test_an_empty_slice_is_no_view() -> None:
    """NumPy finds no memory that it shares; its history is its own."""

    def f(x: Any, y: Any) -> Any:
        t = x * 0.5
        empty = t[:, 1:1]
        t -= y
        empty.copy_(y[:, 1:1])
        u = jg.where(empty > 0.0, empty, empty)
        u.copy_(jg.broadcast_to(u, (2, 0)))
        return t, empty, u

    for g in (f, jg.jit(f)):
        results = g(leaf(2, 3), jg.ones((2, 3), dtype=jg.float64))
        assert [r.requires_grad for r in results] == [True, False, False]


def test_a_gradient_that_is_zero_is_there_whatever_else_has_none() -> None:
    def f(x: Any, w: Any) -> Any:
        t = x * w
        t[:] = 0.5
        return t, x * w

    for g in (f, jg.jit(f)):
        w = leaf(1, 3)
        t, _ = g(jg.ones((1, 3), dtype=jg.float64), w)
        t.sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), np.zeros((1, 3)))
