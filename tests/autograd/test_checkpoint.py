"""checkpoint gives the gradients of the plain function, saves less, and notices changes in between."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import jitgrad.ops.methods  # noqa: F401 - attaches operators to Tensor
from jitgrad.autograd import checkpoint, gradcheck, gradgradcheck, no_grad
from jitgrad.autograd.functional import grad
from jitgrad.core.errors import AutogradError, InPlaceError
from jitgrad.jit.decorator import jit
from jitgrad.ops.creation import tensor
from jitgrad.ops.random import Generator
from jitgrad.ops.transcendental import exp
from jitgrad.ops.trigonometric import tanh

X = np.array([0.3, -1.0, 2.0])


def leaf(data):
    return tensor(data, dtype="float64", requires_grad=True)


def test_gradients_reach_arguments_and_closures():
    x, w = leaf(X), leaf([1.0, 2.0, 3.0])
    h = w * 2.0  # a result with history, reached by closure

    def f(p, *, scale):
        return {"a": tanh(p["x"] * w) * scale, "b": (h * p["x"], 5)}

    def run(function):
        out = function({"x": x}, scale=3.0)
        assert out["b"][1] == 5
        (out["a"] + out["b"][0]).sum().backward(retain_graph=True)
        found = x.grad.numpy(), w.grad.numpy()
        x.grad = w.grad = None
        return found

    for plain, recomputed in zip(run(f), run(checkpoint(f)), strict=True):
        np.testing.assert_allclose(recomputed, plain, rtol=1e-14)


def test_gradcheck_in_both_orders_and_nested():
    inner = checkpoint(lambda x: tanh(x) * x)
    f = checkpoint(lambda x, y: (inner(x * y), exp(y) * x))

    assert gradcheck(f, (X, X + 1.0))
    assert gradgradcheck(f, (X, X + 1.0))
    assert grad(lambda x: inner(x).sum())(tensor(X)).shape == (3,)


def test_intermediates_are_not_kept():
    kept = []

    def f(x):
        h = exp(x)
        kept.append(weakref.ref(h._data))
        return tanh(h) * h

    gc.disable()
    try:
        x = leaf(X)
        plain = f(x)
        y = checkpoint(f)(x)
        assert [r() is None for r in kept] == [False, True]
        y.sum().backward()
        assert [r() is None for r in kept] == [False, True, True]
        plain.sum().backward()
        assert [r() is None for r in kept] == [True, True, True]
    finally:
        gc.enable()


def test_second_run_draws_the_same_random_numbers():
    generator = Generator(5)

    def dropped(x):
        return x * generator.rand(3, dtype="float64")

    x = leaf(np.ones(3))
    first, second = checkpoint(dropped)(x), checkpoint(dropped)(x)
    state = generator.state.tolist()
    (first + second * 10.0).sum().backward()

    np.testing.assert_allclose(x.grad.numpy(), first.detach().numpy() + 10.0 * second.detach().numpy(), rtol=1e-14)
    assert generator.state.tolist() == state


def test_statistics_changed_in_place_are_changed_once():
    running = tensor([1.0], dtype="float64")

    def f(x):
        with no_grad():
            running.__iadd__(1.0)
        return x * running.clone()

    x = leaf([3.0])
    y = checkpoint(f)(x)
    with no_grad():
        running += 10.0
    y.sum().backward()

    assert x.grad.tolist() == [2.0]
    assert running.tolist() == [12.0]


@pytest.mark.parametrize("through", ["argument", "view", "closure", "returned", "leaf"])
def test_changes_in_place_of_outside_memory_happen_once(through):
    def run(wrap):
        x, state = leaf(X), tensor([1.0, 1.0, 1.0], dtype="float64")

        def f(x, given):
            target = {"argument": given, "view": given[1:].data, "closure": state[:2], "returned": given, "leaf": x}[through]
            with no_grad():
                target *= 0.5
            loss = (x * given * x).sum()
            return (loss, given) if through == "returned" else (loss,)

        for _ in range(2):
            wrap(f)(x, state)[0].backward()
        wrap(f)(x, tensor([1.0, 1.0, 1.0], dtype="float64"))[0].backward()  # nobody else holds it
        return [t.tolist() for t in (x.detach(), state, x.grad)]

    compiled = lambda f: jit(checkpoint(f), check="off", backend="python")  # noqa: E731
    assert run(checkpoint) == run(lambda f: f) == run(compiled)


def test_changes_by_compiled_functions_happen_once():
    @jit(check="off", backend="python")
    def update(state, x):
        state *= 0.5
        return state.sum() * x

    def run(wrap):
        x, state = leaf(X), tensor([1.0, 1.0, 1.0], dtype="float64")

        def f(x, given):
            with no_grad():
                update(given[1:], x)
            return (update(state, x) * x * given).sum()

        for _ in range(3):
            wrap(f)(x, state).backward()
        return state.tolist(), x.grad.tolist()

    assert run(checkpoint) == run(lambda f: f) == run(lambda f: checkpoint(checkpoint(f)))


def test_a_change_of_what_it_reads_is_an_error():
    x, mask = leaf(X), tensor([1.0, 0.0, 1.0], dtype="float64")

    def masked(x):
        return x + mask

    y = checkpoint(masked)(x)
    with no_grad():
        mask += 1.0
    with pytest.raises(
        InPlaceError, match=r"checkpoint\(masked\): a tensor that it reads was changed in place at .*py:"
    ):
        y.sum().backward()


def test_a_different_second_run_is_an_error():
    x, shapes = leaf(X), [1, 2]
    y = checkpoint(lambda x: x[: shapes.pop()] * 2.0)(x)

    with pytest.raises(AutogradError, match="the second run returned something else"):
        y.sum().backward()


def test_hooks_of_closures_run_once_with_the_whole_gradient():
    x, w = leaf([1.0]), leaf([2.0])
    h = w * 1.0
    seen = []
    w.register_hook(lambda g: seen.append(g.item()))
    h.register_hook(lambda g: seen.append(g.item()))
    (checkpoint(lambda x: x * w * h)(x) + h).sum().backward()

    assert seen == [3.0, 5.0]


def test_results_that_are_arguments_or_constants_pass_through():
    x, c = leaf(X), tensor(X)
    a, b, k = checkpoint(lambda x: (x, c, 7))(x)

    assert a is x
    assert b is c
    assert k == 7


def test_many_closures_are_all_kept():
    ws = [leaf([float(k)]) for k in range(100)]

    def total(x):
        for w in ws:
            x = x * 1.0 + w * w
        return x

    checkpoint(total)(leaf([1.0])).sum().backward()
    assert [w.grad.item() for w in ws] == [2.0 * k for k in range(100)]


def test_a_change_past_the_interpreter_is_an_error():
    state = tensor([1.0], dtype="float64")

    def like_a_compiled_function(x):
        y = x * state
        state._data[0] += 1.0
        state._storage.bump()
        return y

    with pytest.raises(InPlaceError, match="a compiled function that it calls changes a tensor in place"):
        checkpoint(like_a_compiled_function)(leaf([2.0]))


def test_a_compiled_function_may_change_what_it_makes():
    @jit(check="off", backend="python")
    def f(x):
        y = x + 1.0
        y *= 2.0
        return y * y

    x = leaf([1.0, 2.0])
    checkpoint(f)(x).sum().backward()  # its trace is within the checkpoint

    assert x.grad.tolist() == [16.0, 24.0]


def test_under_no_grad_it_is_the_plain_function():
    with no_grad():
        y = checkpoint(lambda x: x * 2.0)(leaf(X))
    assert not y.requires_grad


def test_backward_within_it_adds_to_gradients_once():
    def f(x, w):
        inner = x.detach().requires_grad_()
        (inner * inner * w).sum().backward()
        (3.0 * x).sum().backward()
        return inner.grad * x

    found = []
    for call in (f, checkpoint(f), jit(f, backend="python"), jit(checkpoint(f), backend="python", check="off")):
        x, w = tensor([1.0, 2.0], requires_grad=True), tensor([3.0, 4.0], requires_grad=True)
        y = call(x, w)
        before = x.grad.tolist(), w.grad.tolist()
        y.sum().backward()
        found.append((before, x.grad.tolist(), w.grad.tolist()))
    assert found == [(([3.0, 3.0], [1.0, 4.0]), [9.0, 19.0], [1.0, 4.0])] * 4


def test_backward_within_it_to_the_history_of_an_argument_is_refused():
    def f(x):
        (x * x).sum().backward()
        return x * 2.0

    with pytest.raises(AutogradError, match=r"checkpoint\(f\): backward\(\) in it reaches an argument f32\[2\]"):
        checkpoint(f)(tensor([1.0, 2.0], requires_grad=True) * 2.0)
