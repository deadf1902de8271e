"""autograd.Function: values, first and second derivatives, eager and compiled; and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd import Function
from tests.compiled import backend  # noqa: F401 - a fixture

X = np.array([0.3, -1.0, 2.0])
EXECUTIONS = pytest.mark.parametrize("run", [lambda f: f, lambda f: jg.jit(f, check="off")], ids=["eager", "jit"])
Run = Callable[[Callable[..., Any]], Callable[..., Any]]


def leaf() -> Any:
    return jg.tensor(X, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Exponential(Function):
    """Saves its result."""

    @staticmethod
    def forward(x: Any) -> Any:
        return jg.exp(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


class Spike(Function):
    """A step whose gradient is that of a smooth function, of a width that is an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any, width: float) -> Any:
        ctx.save_for_backward(x, None)
        ctx.width = width
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, _ = ctx.saved_tensors
        return g / (1 + ctx.width * jg.abs(x)) ** 2, None


class Reverse(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g


@EXECUTIONS
@pytest.mark.parametrize(
    ("function", "first", "second"),
    [(Cube.apply, 3 * X**2, 6 * X), (Exponential.apply, np.exp(X), np.exp(X)), (Reverse.apply, -np.ones(3), np.zeros(3))],
)
def test_first_and_second_derivatives(run: Run, function: Any, first: Any, second: Any) -> None:
    f = run(lambda x: function(x) * 1)
    x = leaf()
    (g,) = jg.autograd.grad(f(x).sum() + (0 * x * x).sum(), [x], create_graph=True)
    np.testing.assert_allclose(g.detach(), first, rtol=1e-12)
    np.testing.assert_allclose(jg.autograd.grad(g.sum(), [x])[0], second, rtol=1e-12)
    inside = run(jg.grad(lambda x: jg.grad(lambda x: function(x).sum())(x).sum()))
    np.testing.assert_allclose(inside(jg.tensor(X)), second, rtol=1e-12)


@EXECUTIONS
def test_third_derivative_of_a_saved_result(run: Run) -> None:
    f = jg.grad(lambda x: jg.grad(lambda x: jg.grad(lambda x: Exponential.apply(x).sum())(x).sum())(x).sum())
    np.testing.assert_allclose(run(f)(jg.tensor(X)), np.exp(X), rtol=1e-12)


@EXECUTIONS
def test_a_surrogate_in_a_loop(run: Run) -> None:
    def loss(w: Any, x: Any) -> Any:
        v, total = x * 0, x * 0
        for _ in range(3):
            v = 0.9 * v + w * x
            s = Spike.apply(v - 0.5, 2.0)
            v, total = v - s * 0.5, total + s * v
        return total.sum()

    w, x = jg.tensor([1.0, 0.5, 0.3], dtype=jg.float64), jg.tensor(X)
    np.testing.assert_allclose(run(jg.grad(loss))(w, x), jg.grad(loss)(w, x), rtol=1e-12)
    assert np.abs(run(jg.grad(loss))(w, x).numpy()).min() > 0


def test_forward_and_backward_fuse_with_their_neighbours() -> None:
    step = jg.jit(jg.grad(lambda x: (Cube.apply(x * 2) * jg.exp(x)).sum()))
    assert len(step.kernels(jg.tensor(X))) == 1


@EXECUTIONS
def test_several_results_and_needs_input_grad(run: Run) -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, n: Any) -> Any:
            assert ctx.needs_input_grad == (True, False, False)
            largest = jg.argmax(x)
            order = x * 0
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(x, y)
            ctx.n = n
            return x * y, x + y, largest, order, "text"

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any, *others: Any) -> Any:
            x, y = ctx.saved_tensors
            assert g.shape == h.shape == others[1].shape
            return g * y * ctx.n + h, (g * x if ctx.needs_input_grad[1] else None), None

    def loss(x: Any) -> Any:
        a, _b, largest, order, _ = Both.apply(x, jg.tensor(X + 1), 2)
        assert not order.requires_grad and not largest.requires_grad
        return a.sum() + 0 * largest

    assert np.array_equal(run(jg.grad(loss))(jg.tensor(X)), 2 * (X + 1))


@EXECUTIONS
def test_gradients_that_are_none(run: Run) -> None:
    class First(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 1, y * 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return (None if g is None else g * 5), None

    x, y = leaf(), leaf()
    run(lambda x, y: First.apply(x, y)[0])(x, y).sum().backward()
    assert np.array_equal(x.grad, np.full(3, 5.0)) and y.grad is None
    x.grad = None
    run(lambda x, y: First.apply(x, y)[1])(x, y).sum().backward()
    assert x.grad is None or np.array_equal(x.grad, np.zeros(3))


@EXECUTIONS
def test_in_modules_checkpoints_and_vmap(run: Run) -> None:
    layer = jg.nn.Linear(3, 2).to(jg.float64)
    w = layer.weight.detach().numpy().sum(0)

    def net(x: Any) -> Any:
        return layer(Reverse.apply(x)).sum()

    for f in (net, jg.checkpoint(net), lambda x: jg.vmap(net)(x.reshape(1, 3)).sum()):
        x = leaf()
        layer.zero_grad()
        run(f)(x).backward()
        np.testing.assert_allclose(x.grad, -w, rtol=1e-12)
        np.testing.assert_allclose(layer.weight.grad, [X, X], rtol=1e-12)
    xs = np.arange(6.0).reshape(2, 3)
    each = run(lambda xs: jg.vmap(jg.grad(lambda x: Exponential.apply(x).sum()))(xs))
    np.testing.assert_allclose(each(jg.tensor(xs)), np.exp(xs), rtol=1e-12)


@EXECUTIONS
def test_complex_gradients_are_those_that_users_see(run: Run) -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * jg.conj(ctx.saved_tensors[0])

    z = jg.tensor(np.array([1 + 2j, -0.5j]))
    ours = run(jg.grad(lambda z: jg.real(Square.apply(z)).sum()))(z)
    np.testing.assert_allclose(ours, jg.grad(lambda z: jg.real(z * z).sum())(z), rtol=1e-12)


@EXECUTIONS
def test_what_forward_reads_is_guarded(run: Run) -> None:
    w, scale = jg.tensor(X), [1.0]

    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * w * scale[0]

    gradient = run(jg.grad(lambda x: Scaled.apply(x).sum()))
    assert np.array_equal(gradient(jg.tensor(X)), X)
    scale[0] = 3.0
    assert np.array_equal(gradient(jg.tensor(X)), 3 * X)


def test_no_grad() -> None:
    x = leaf()
    with jg.no_grad():
        assert not Cube.apply(x).requires_grad
        y = Reverse.apply(x)
        y += 1
    assert np.array_equal(x.detach(), X)
    assert not Cube.apply(jg.tensor(X)).requires_grad


# --- errors ----------------------------------------------------------------------------------------------------------


def returning(gradient: Any) -> Any:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: Any) -> Any:
            return x * n

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return gradient(g)

    return Wrong


@EXECUTIONS
@pytest.mark.parametrize(
    ("gradient", "error", "message"),
    [
        (lambda g: g, jg.errors.AutogradError, "returned 1 gradients: expected 2, one for each argument of forward"),
        (lambda g: (g, None, g), jg.errors.AutogradError, "returned 3 gradients: expected 2"),
        (lambda g: (g, g), jg.errors.AutogradError, "a gradient for argument 1, which is no float tensor"),
        (lambda g: (g[:2], None), jg.errors.ShapeError, r"f64\[2\] for argument 0, which is f64\[3\]"),
        (lambda g: ("g", None), jg.errors.AutogradError, "expected a Tensor, or None"),
    ],
)
def test_wrong_gradients_are_errors(run: Run, gradient: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        run(jg.grad(lambda x: returning(gradient).apply(x, 3).sum()))(jg.tensor(X))
    assert "autograd.Function 'Wrong' at" in str(caught.value) and "test_function.py" in str(caught.value)


def test_extra_gradients_may_be_none() -> None:
    assert np.array_equal(jg.grad(lambda x: returning(lambda g: (g, None, None)).apply(x, 3).sum())(jg.tensor(X)), np.ones(3))


@EXECUTIONS
def test_a_tensor_that_would_get_no_gradient_is_an_error(run: Run) -> None:
    w = leaf()

    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(jg.errors.AutogradError, match="that requires grad and is not among the arguments"):
        run(lambda x: Scaled.apply(x))(jg.tensor(X))


def test_misuse_is_an_error() -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, how: str) -> Any:
            if how == "save":
                ctx.save_for_backward(3)
            if how == "early":
                return ctx.saved_tensors
            if how == "dirty":
                ctx.mark_dirty(x)
            if how == "change":
                x += 1
            return x * 2

    for how, error, message in (
        ("save", jg.errors.ArgumentError, "save_for_backward takes tensors"),
        ("early", jg.errors.AutogradError, "saved_tensors are there in backward only"),
        ("dirty", jg.errors.InPlaceError, "forward cannot change an argument"),
        ("change", jg.errors.InPlaceError, "changes its argument"),
    ):
        with pytest.raises(error, match=message):
            Half.apply(leaf() * 1, how)
    with pytest.raises(jg.errors.AutogradError, match="needs a static method backward"):
        Half.apply(leaf(), "").sum().backward()
    with pytest.raises(jg.errors.AutogradError, match="needs a static method forward"):
        Function.apply(leaf())


@EXECUTIONS
def test_changing_a_saved_tensor_is_an_error(run: Run) -> None:
    def loss(x: Any) -> Any:
        y = Exponential.apply(x)
        y += 1
        return jg.autograd.grad(y.sum(), [x])[0]

    with pytest.raises(jg.errors.InPlaceError, match="changed in place"):
        run(loss)(leaf())
