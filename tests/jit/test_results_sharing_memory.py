"""New results that share memory with each other, as in eager execution; others do not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.core.errors import MismatchWarning
from tests.wrong_kernels import wrong_functions

CALLS = 4  # the first call, the general path, and the fast path


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def column(x: Any) -> Any:
    return x.reshape(6, 1) * jg.ones((1, 2))


def set_twice(x: Any) -> Any:
    a, b = jg.zeros(6), jg.zeros(6)
    a[...] = x * 2.0
    b[...] = a
    return a, b


def view_twice(y: Any) -> Any:
    part = y[1:]
    return part, part, y[2:], [part]


def transposed_and_reshaped(x: Any) -> Any:
    y = column(x)
    flat = y.T.reshape(-1)
    return y, flat, flat[1:], flat[None]


def with_y(*views: Callable[[Any], Any], make: Callable[[Any], Any] = lambda x: x * 2.0) -> Callable[[Any], Any]:
    """A function that returns ``views`` of what ``make`` computes."""

    def function(x: Any) -> Any:
        y = make(x)
        return tuple([view(y) for view in views])

    return function


def itself(y: Any) -> Any:
    return y


def filled_beside_its_diagonal(x: Any) -> Any:
    y = column(x)
    diagonal = y.diagonal()
    y.fill_(0.5)
    return y, diagonal, y[1]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "an element and a slice": with_y(itself, lambda y: y[0], lambda y: y[1:]),
    "reshaped": with_y(itself, lambda y: y.reshape(2, 3), lambda y: y[None]),
    "detached": with_y(itself, lambda y: y.detach(), lambda y: y.detach()[1:]),
    "overlapping slices": with_y(lambda y: y[:4], lambda y: y[2:]),
    "slices apart": with_y(lambda y: y[:2], lambda y: y[2:]),
    "transposed and flipped": with_y(lambda y: y.T, itself, lambda y: y[::-1], make=column),
    "split": with_y(lambda y: jg.split(y, 2, axis=1), jg.unstack, itself, make=column),
    "in containers": with_y(lambda y: {"b": y[0], "a": [y, (y[1:],)]}),
    "twice": with_y(itself, itself),
    "one view twice": lambda x: view_twice(x * 2.0),
    "a view of an argument twice": view_twice,
    "views of a reshape of what was transposed": transposed_and_reshaped,
    "copies": with_y(itself, lambda y: y.clone(), lambda y: y.clone().reshape(3, 2), lambda y: y.astype("float32")),
    "equal computations": lambda x: (x * 2.0, x * 2.0, (x * 2.0).reshape(3, 2), (x * 2.0)[1:]),
    "equal numbers": lambda x: (x.sum(), x.sum().reshape(1), x.sum()[None]),
    "filled alike": set_twice,
    "filled beside its diagonal": filled_beside_its_diagonal,
    "split axes": with_y(itself, lambda y: y.reshape(2, 3), lambda y: y.reshape(3, 1, 2)),
    "parts of complex numbers": with_y(itself, lambda z: z.real, lambda z: z.imag, make=lambda x: x * (1 + 2j)),
    "nothing": with_y(itself, lambda y: y[:0]),
}


def arguments() -> dict[str, jg.Tensor]:
    rows = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    return {"contiguous": jg.tensor(np.arange(6.0, dtype=np.float32)), "with gaps": jg.asarray(rows)[:, 0]}


def assert_same_after_changes(found: Any, expected: Any) -> None:
    """Change each tensor in place; each change shows in the same tensors."""
    a, b = optree.tree_leaves(found), optree.tree_leaves(expected)
    assert [x is y for x in a for y in a] == [x is y for x in b for y in b]
    for k in range(len(a)):
        for x in (a[k], b[k]):
            with jg.no_grad():
                x += float(k + 1)
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_change_of_one_result_shows_in_those_in_which_it_shows_in_eager(name: str) -> None:
    function = PROGRAMS[name]
    compiled = jg.jit(function)
    for x in arguments().values():
        for _ in range(CALLS):
            assert_same_after_changes(compiled(x), function(x))


def test_what_a_reshape_shares_depends_on_the_layout_of_the_call() -> None:
    def function(x: Any) -> Any:
        y = x * 2.0
        flat = y.reshape(-1)
        return y, flat, flat[1:], flat[None]

    compiled, rows = jg.jit(function), np.arange(6.0).reshape(2, 3)
    for array in (rows, rows.T.copy().T, np.repeat(rows, 2, axis=1)[:, ::2]):
        for _ in range(CALLS):
            assert_same_after_changes(compiled(jg.asarray(array)), function(jg.asarray(array)))


def test_gradients_flow_through_views_of_one_result() -> None:
    def function(x: Any, w: Any) -> Any:
        y = jg.tanh(x * w)
        with jg.no_grad():
            apart = y[:1]
        return y[:4], y[2:], y.detach(), apart

    compiled, x = jg.jit(function), jg.tensor(np.arange(6.0))
    for f in (function, *[compiled] * CALLS):
        w = jg.full(6, 0.3, dtype="float64", requires_grad=True)
        first, last, detached, apart = f(x, w)
        assert [t.requires_grad for t in (first, last, detached, apart)] == [True, True, False, False]
        ((first * first).sum() + last.sum()).backward()
        expected = (1 - np.tanh(0.3 * x.numpy()) ** 2) * x.numpy()
        factors = np.where(np.arange(6) < 4, 2 * np.tanh(0.3 * x.numpy()), 0) + (np.arange(6) >= 2)
        np.testing.assert_allclose(w.grad.numpy(), expected * factors, rtol=1e-12)


def test_a_change_in_place_moves_the_history_of_the_other_view() -> None:
    def function(x: Any, w: Any) -> Any:
        y = x * w
        return y, y[1:]

    compiled, x = jg.jit(function), jg.tensor([1.0, 2.0, 3.0])
    for f in (function, *[compiled] * CALLS):
        w = jg.tensor([1.0, 1.0, 1.0], requires_grad=True)
        y, part = f(x, w)
        y *= 2.0
        part.sum().backward()
        assert w.grad.tolist() == [0.0, 4.0, 6.0]


def test_a_result_and_what_is_stored_share_memory() -> None:
    place = SimpleNamespace(state=jg.zeros(3), first=None)

    def function(place: Any, x: Any) -> Any:
        h = place.state * 0.5 + x
        place.state, place.first = h.detach(), h[0]
        return h

    expected = SimpleNamespace(state=jg.zeros(3), first=None)
    compiled, x = jg.jit(lambda x: function(place, x)), jg.ones(3)
    for _ in range(CALLS + 1):
        found, eager = compiled(x), function(expected, x)
        assert_same_after_changes((found, place.state, place.first), (eager, expected.state, expected.first))


def test_a_returned_gradient_is_the_gradient() -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)

    @jg.jit
    def step(x: Any) -> Any:
        w.grad = None
        (x * w).sum().backward()
        return w.grad, w.grad[1:]

    for _ in range(CALLS):
        gradient, part = step(jg.ones(2))
        assert gradient is w.grad
        w.grad *= 3.0
        assert gradient.tolist() == [3.0, 3.0] and part.tolist() == [3.0]


def test_a_new_leaf_requires_grad() -> None:
    compiled = jg.jit(lambda x: (jg.zeros(2, requires_grad=True), (x * 2.0).requires_grad_(), x + 1.0))
    for _ in range(CALLS):
        leaves = compiled(jg.ones(2))
        assert [(t.requires_grad, t.is_leaf) for t in leaves] == [(True, True), (True, True), (False, True)]
        (leaves[0] * leaves[1]).sum().backward()
        assert leaves[0].grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("backend", ["python", "cpu"])
def test_backward_reads_what_it_saved_after_results_were_changed(backend: str) -> None:
    def function(x: Any, w: Any) -> Any:
        y = jg.exp(x * w)
        return y.reshape(2, 3).T @ jg.ones((2, 1)), y.reshape(3, 2).clone(), y.sum()

    compiled, x = jg.jit(function, backend=backend), jg.tensor(np.arange(6.0) / 6)
    for _ in range(CALLS):
        w = jg.ones(6, dtype="float64", requires_grad=True)
        product, copy, total = compiled(x, w)
        with jg.no_grad():
            copy *= 5.0
            product *= 5.0
        total.backward()
        np.testing.assert_allclose(w.grad.numpy(), x.numpy() * np.exp(x.numpy()), rtol=1e-12)


def overlapping(x: Any, w: Any) -> Any:
    y = jg.tanh(x * w)
    return y[:4], y[2:]


def test_a_wrong_kernel_behind_views_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = jg.tensor(np.arange(6.0)), jg.tensor(np.full(6, 0.3), requires_grad=True)
    for _ in wrong_functions(monkeypatch, {"tanh": "sin"}):
        with pytest.warns(MismatchWarning, match="overlapping"):
            first, last = jg.jit(overlapping)(x, w)
    for found, expected in zip((first, last), overlapping(x, w), strict=True):
        np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


def test_compare_knows_results_that_are_views_alone() -> None:
    x, w = jg.tensor(np.arange(6.0)), jg.tensor(np.full(6, 0.3), requires_grad=True)
    comparison = jg.compare(jg.jit(overlapping), x, w, seconds=0.001)
    assert comparison.backward and not any(d.problem for d in comparison.differences)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda rows: rows,
    "Fortran": lambda rows: rows.T.copy().T,
    "with gaps": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "reversed": lambda rows: rows[::-1],
    "mirrored": lambda rows: rows[:, ::-1],
}


def laid_out(name: str) -> jg.Tensor:
    return jg.asarray(LAYOUTS[name](np.arange(6.0).reshape(2, 3)))


@pytest.mark.parametrize("first", LAYOUTS)
def test_views_of_a_reshaped_argument_share_its_copy_in_layouts_in_which_it_is_one(first: str) -> None:
    def function(x: Any) -> Any:
        flat = x.reshape(-1)
        pairs = flat[::2].reshape(3, 1)
        return flat[0], flat, flat[1:], flat.detach()[2:], x.T.reshape(-1)[1:], pairs, pairs[1:], flat

    compiled = jg.jit(function)
    for name in (first, first, *LAYOUTS, *LAYOUTS):
        assert_same_after_changes(compiled(laid_out(name)), function(laid_out(name)))


def test_gradients_flow_through_the_copy_that_a_reshape_makes() -> None:
    def function(x: Any) -> Any:
        flat = x.reshape(-1)
        return flat, flat[2:]

    compiled = jg.jit(function)
    for turn in (lambda x: x, lambda x: x.T, lambda x: x[:, ::-1]):
        for f in [compiled] * CALLS:
            leaves = [jg.ones((3, 3), requires_grad=True) for _ in range(2)]
            for run, leaf in zip((function, f), leaves, strict=True):
                flat, rest = run(turn(leaf * jg.arange(9.0).reshape(3, 3)))
                flat *= 2.0  # moves the history of the other
                (rest * rest).sum().backward()
            assert leaves[0].grad.tolist() == leaves[1].grad.tolist()


def filled_and_flattened(x: Any) -> Any:
    x *= 2.0
    flat = x.T.reshape(-1)
    return flat, flat[1:], x.T.reshape(3, 2)


def changed_through_a_view_and_flattened(x: Any) -> Any:
    y = x.swapaxes(0, 1)
    y += 1.0
    x[0] = 3.0
    return x.T.reshape(-1), x.reshape(-1)[2:], y


@pytest.mark.parametrize("function", [filled_and_flattened, changed_through_a_view_and_flattened])
def test_a_reshape_after_a_change_of_the_argument_shares_its_memory_where_eager_does(function: Callable[[Any], Any]) -> None:
    compiled = jg.jit(function)
    for name in (*LAYOUTS, *LAYOUTS):
        for _ in range(2):
            x, y = laid_out(name), laid_out(name)
            assert_same_after_changes((compiled(x), x), (function(y), y))
