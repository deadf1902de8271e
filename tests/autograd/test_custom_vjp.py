"""custom_vjp: values, first and second derivatives, eager and compiled, in every transform; and its errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from tests.compiled import backend  # noqa: F401 - a fixture

X = np.array([0.3, -1.0, 2.0])
EXECUTIONS = pytest.mark.parametrize("run", [lambda f: f, jg.jit], ids=["eager", "jit"])
Run = Callable[[Callable[..., Any]], Callable[..., Any]]


def make(f: Any, fwd: Any, bwd: Any, nondiff_argnums: Any = ()) -> Any:
    function = jg.custom_vjp(f, nondiff_argnums)
    function.defvjp(fwd, bwd)
    return function


def straight_through() -> Any:
    return make(jg.round, lambda x: (jg.round(x), None), lambda _, g: (g,))


def log1pexp() -> Any:
    """Its backward function uses an intermediate result of its forward function."""

    def fwd(x: Any) -> Any:
        e = jg.exp(x)
        return jg.log(1 + e), e

    return make(lambda x: jg.log(1 + jg.exp(x)), fwd, lambda e, g: (g * (1 - 1 / (1 + e)),))


def root() -> Any:
    """Square roots by Newton's method; the gradient is that of the fixed point."""

    def iterate(a: Any) -> Any:
        y = a * 0 + 1
        for _ in range(30):
            y = 0.5 * (y + a / y)
        return y

    function = jg.custom_vjp(iterate)

    def fwd(a: Any) -> Any:
        y = function(a)
        return y, y

    function.defvjp(fwd, lambda y, g: (g / (2 * y),))
    return function


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@EXECUTIONS
def test_the_gradient_is_that_of_the_backward_function(run: Run) -> None:
    gradient = run(jg.grad(lambda x: (straight_through()(x * 2) * 3).sum()))
    assert np.array_equal(gradient(jg.tensor(X)), [6.0, 6.0, 6.0])


@EXECUTIONS
def test_second_derivatives_go_through_residuals(run: Run) -> None:
    f = log1pexp()
    second = run(jg.grad(lambda x: jg.grad(lambda x: f(x).sum())(x).sum()))
    s = sigmoid(X)
    np.testing.assert_allclose(second(jg.tensor(X)), s * (1 - s), rtol=1e-12)


@EXECUTIONS
def test_derivatives_of_a_fixed_point(run: Run) -> None:
    a, f = np.array([2.0, 3.0]), root()
    np.testing.assert_allclose(run(jg.grad(lambda a: f(a).sum()))(jg.tensor(a)), 0.5 * a**-0.5, rtol=1e-12)
    hessian = run(jg.hessian(lambda a: f(a).sum()))(jg.tensor(a))
    np.testing.assert_allclose(hessian, np.diag(-0.25 * a**-1.5), rtol=1e-12, atol=1e-15)
    third = run(jg.grad(lambda a: jg.grad(lambda a: jg.grad(lambda a: f(a).sum())(a).sum())(a).sum()))
    np.testing.assert_allclose(third(jg.tensor(a)), 0.375 * a**-2.5, rtol=1e-12)


def test_the_gradient_survives_in_a_compiled_function_that_is_differentiated_twice_later() -> None:
    for f, second in ((log1pexp(), sigmoid(X) * (1 - sigmoid(X))), (straight_through(), np.zeros(3))):
        compiled = jg.jit(lambda x, f=f: f(x) * 1, check="off")
        x = jg.tensor(X, requires_grad=True)
        (first,) = jg.autograd.grad(compiled(x).sum() + (0 * x * x).sum(), [x], create_graph=True)
        expected = sigmoid(X) if second.any() else np.ones(3)
        np.testing.assert_allclose(first.detach(), expected, rtol=1e-12)
        np.testing.assert_allclose(jg.autograd.grad(first.sum(), [x])[0], second, rtol=1e-12)


def test_residuals_from_a_result_of_the_function_itself() -> None:
    """Its forward function calls the function, and computes with the result."""
    f = jg.custom_vjp(jg.sqrt)

    def fwd(a: Any) -> Any:
        y = f(a)
        return y, jg.exp(y)

    f.defvjp(fwd, lambda e, g: (g / (2 * jg.log(e)),))
    a = np.array([2.0, 3.0])
    second = jg.grad(lambda a: jg.grad(lambda a: f(a).sum())(a).sum())
    for run in (second, jg.jit(second)):
        np.testing.assert_allclose(run(jg.tensor(a)), -0.25 * a**-1.5, rtol=1e-12)
    x, compiled = jg.tensor(a, requires_grad=True), jg.jit(lambda x: f(x) * 1, check="off")
    np.testing.assert_allclose(jg.autograd.grad(compiled(x).sum(), [x])[0], 0.5 * a**-0.5, rtol=1e-12)
    with pytest.raises(jg.errors.AutogradError, match="second derivative, outside of the trace"):
        (first,) = jg.autograd.grad(compiled(x).sum(), [x], create_graph=True)
        jg.autograd.grad(first.sum(), [x])


def test_forward_and_backward_fuse_with_their_neighbours() -> None:
    f = straight_through()
    step = jg.jit(jg.grad(lambda x: (f(x * 2) * jg.exp(x)).sum()))
    (kernel,) = step.kernels(jg.tensor(X))
    assert {"round", "exp"} <= set(kernel.ops)


@pytest.mark.numba
def test_compiled_training_steps_and_ejected_modules(tmp_path: Path) -> None:
    """Machine code, with the check of the first call; without jitgrad's tape."""
    f = straight_through()
    layer = jg.nn.Linear(3, 2)
    optimiser = jg.optim.SGD(layer.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimiser.zero_grad()
        loss = (layer(f(x * 4) / 4) ** 2).mean()
        loss.backward()
        optimiser.step()
        return loss

    compiled, x = jg.jit(step), jg.tensor(X.astype(np.float32))
    losses = [float(compiled(x)) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]
    gradient = jg.jit(jg.grad(lambda x: (f(x) * x).sum()))
    gradient.eject(tmp_path / "kernels.py", x)
    loaded = jg.load_ejected(tmp_path / "kernels.py")
    np.testing.assert_allclose(loaded(x), np.rint(X) + X, rtol=1e-6)


@EXECUTIONS
@pytest.mark.parametrize("n", [3, 2.5, jg.tensor(3), jg.tensor(2.5)], ids=["int", "float", "int tensor", "float tensor"])
def test_pytrees_integers_and_arguments_without_gradient(run: Run, n: Any) -> None:
    def f(g: Any, p: Any, n: Any) -> Any:
        return {"a": g(p["w"]) * n, "i": jg.argmax(p["w"]), "n": n, "b": p["b"]}

    def bwd(g: Any, residuals: Any, d: Any) -> Any:
        p, n = residuals
        return {"w": d["a"] * p["w"] * n, "b": None}, None

    function = make(f, lambda g, p, n: (f(g, p, n), (p, n)), bwd, nondiff_argnums=(0,))

    def loss(p: Any, n: Any) -> Any:
        out = function(jg.sin, p, n=n)
        return out["a"].sum() + out["b"].sum() * out["i"]

    gradient = run(jg.grad(loss))({"w": jg.tensor(X), "b": jg.tensor(X)}, n)
    np.testing.assert_allclose(gradient["w"], X * float(n), rtol=1e-12)
    assert np.array_equal(gradient["b"], np.zeros(3))


@EXECUTIONS
def test_several_results_of_which_one_is_used(run: Run) -> None:
    f = make(lambda x: (x, 2 * x), lambda x: ((x, 2 * x), None), lambda _, g: (g[0] * 10 + g[1],))
    assert np.array_equal(run(jg.grad(lambda x: f(x)[1].sum()))(jg.tensor(X)), np.ones(3))
    assert np.array_equal(run(jg.grad(lambda x: (f(x)[0] + f(x)[1]).sum()))(jg.tensor(X)), np.full(3, 11.0))


@EXECUTIONS
def test_transforms(run: Run) -> None:
    f, x = log1pexp(), jg.tensor(X)
    s, total = sigmoid(X), lambda x: f(x).sum()
    np.testing.assert_allclose(run(lambda x: jg.jacobian(f)(x))(x), np.diag(s), rtol=1e-12)
    np.testing.assert_allclose(run(lambda x: jg.jvp(f, (x,), (x,))[1])(x), s * X, rtol=1e-12)
    np.testing.assert_allclose(run(lambda x: jg.vjp(f, x)[1](x)[0])(x), s * X, rtol=1e-12)
    np.testing.assert_allclose(run(lambda x: jg.hvp(total, (x,), (x,))[0])(x), s * (1 - s) * X, rtol=1e-12)
    np.testing.assert_allclose(run(jg.grad(jg.checkpoint(total)))(x), s, rtol=1e-12)


@EXECUTIONS
def test_vmap(run: Run) -> None:
    scaled = make(lambda x, w: x * w, lambda x, w: (x * w, (x, w)), lambda r, g: (3 * g * r[1], jg.clip(g * r[0], -1, 1)))
    xs, w = np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0, 0.5])

    def of_each(xs: Any, w: Any) -> Any:
        return jg.vmap(jg.grad(lambda x, w: scaled(x, w).sum(), argnums=(0, 1)), (0, None))(xs, w)

    def of_all(xs: Any, w: Any) -> Any:
        return jg.grad(lambda xs, w: jg.vmap(scaled, (0, None))(xs, w).sum(), argnums=(0, 1))(xs, w)

    gx, gw = run(of_each)(jg.tensor(xs), jg.tensor(w))
    assert np.array_equal(gx, [3 * w, 3 * w]) and np.array_equal(gw, np.clip(xs, -1, 1))
    gx, gw = run(of_all)(jg.tensor(xs), jg.tensor(w))
    assert np.array_equal(gx, [3 * w, 3 * w]) and np.array_equal(gw, np.clip(xs, -1, 1).sum(0))
    s = sigmoid(xs)
    f = log1pexp()
    second = run(lambda xs: jg.vmap(jg.grad(lambda x: jg.grad(lambda x: f(x).sum())(x).sum()))(xs))
    np.testing.assert_allclose(second(jg.tensor(xs)), s * (1 - s), rtol=1e-12)


@EXECUTIONS
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 3)])
def test_shapes(run: Run, shape: tuple[int, ...]) -> None:
    gradient = run(jg.grad(lambda x: straight_through()(x).sum()))(jg.ones(shape, dtype=jg.float32))
    assert gradient.shape == shape and gradient.dtype == np.float32


def test_strided_operands_and_mixed_dtypes() -> None:
    f = make(lambda x, y: x * y, lambda x, y: (x * y, (x, y)), lambda r, g: (g * r[1], g * r[0]))
    x, y = jg.tensor(np.arange(6.0)[::-2], requires_grad=True), jg.tensor(np.ones(3, np.float32), requires_grad=True)
    f(x, y).sum().backward()
    assert x.grad.dtype == np.float64 and y.grad.dtype == np.float32
    assert np.array_equal(y.grad, [5, 3, 1])


def test_complex_gradients_are_those_of_vjp() -> None:
    z = jg.tensor(np.array([1 + 2j, -0.5j]))
    f = make(lambda z: z * z, lambda z: (z * z, z), lambda z, g: (2 * g * jg.conj(z),))
    for run in (lambda f: f, jg.jit):
        ours = run(jg.grad(lambda z: jg.real(f(z)).sum()))(z)
        np.testing.assert_allclose(ours, jg.grad(lambda z: jg.real(z * z).sum())(z), rtol=1e-12)


def test_results_do_not_share_memory_with_arguments() -> None:
    f = make(lambda x: x, lambda x: (x, None), lambda _, g: (-g,))

    def changed(x: Any) -> Any:
        h = x * 1
        y = f(h)
        y += 1
        return h

    for run in (changed, jg.jit(changed), jg.no_grad()(changed)):
        assert np.array_equal(run(jg.tensor(X, requires_grad=True)).detach(), X)


def test_no_grad_runs_the_function_itself() -> None:
    f = make(lambda x: x * 2, lambda x: (x * 3, None), lambda _, g: (g,))
    x = jg.tensor(X, requires_grad=True)
    with jg.no_grad():
        y = f(x)
    assert np.array_equal(y, X * 2) and not y.requires_grad and f(x).requires_grad
    assert np.array_equal(f(jg.tensor(X)), X * 2)


def test_hooks_and_anomalies() -> None:
    f = make(lambda x: x, lambda x: (x, None), lambda _, g: (g * np.inf,))
    x, seen = jg.tensor(X, requires_grad=True), list[Any]()
    y = f(x * 1)
    y.register_hook(seen.append)
    y.sum().backward()
    assert len(seen) == 1
    with jg.detect_anomaly(), pytest.raises(jg.errors.AnomalyError, match="test_custom_vjp"):
        f(x).sum().backward()


def test_parameters_of_a_module_are_arguments() -> None:
    layer = jg.nn.Linear(3, 2)
    f = make(lambda w, x: x @ w.T, lambda w, x: (x @ w.T, (w, x)), lambda r, g: (jg.outer(g, r[1]) * 2, g @ r[0]))

    def loss(x: Any) -> Any:
        return f(layer.weight, x).sum()

    for run in (loss, jg.jit(loss)):
        layer.zero_grad()
        run(jg.tensor(X)).backward()
        np.testing.assert_allclose(layer.weight.grad, np.array([2 * X, 2 * X]), rtol=1e-6)


# --- errors ----------------------------------------------------------------------------------------------------------


@EXECUTIONS
def test_a_tensor_that_would_get_no_gradient_is_an_error(run: Run) -> None:
    w = jg.tensor(X, requires_grad=True)
    f = make(lambda x: x * w, lambda x: (x * w, None), lambda _, g: (g,))
    for call in (f, jg.grad(lambda x: f(x).sum())):
        with pytest.raises(jg.errors.AutogradError, match=r"test_custom_vjp.py:\d+ uses at .*f64\[3\] that requires grad"):
            run(call)(jg.tensor(X))
    detached = make(lambda x: x * w.detach(), lambda x: (x * w.detach(), None), lambda _, g: (g,))
    assert np.array_equal(run(jg.grad(lambda x: detached(x).sum()))(jg.tensor(X)), np.ones(3))


def test_what_the_backward_function_reads_is_differentiated_or_refused() -> None:
    """From outside, by tensors that it gets as residuals; others are an error in eager execution, and found in a trace."""

    def gradient(x: Any, w: Any, saved: bool) -> Any:
        f = make(lambda y: y, lambda y: (y, w if saved else None), lambda r, g: (g * (r if saved else w),))
        return jg.grad(lambda y: f(y).sum())(x).sum()

    x, by_w = jg.tensor(X), jg.grad(gradient, argnums=1)
    for run in (partial(by_w, saved=True), jg.jit(partial(by_w, saved=True)), jg.jit(partial(by_w, saved=False), check="off")):
        assert np.array_equal(run(x, x), np.ones(3))
    with pytest.raises(jg.errors.AutogradError, match="reads a tensor that requires grad and is neither an argument nor saved"):
        by_w(x, x, saved=False)


@EXECUTIONS
@pytest.mark.parametrize(
    ("bwd", "error", "message"),
    [
        (lambda _, g: (g, g), jg.errors.AutogradError, "returned 2 gradients: expected a tuple of 1"),
        (lambda _, g: g, jg.errors.AutogradError, "expected a tuple of 1"),
        (lambda _, g: (g.sum(),), jg.errors.ShapeError, r"a gradient f64\[\] for argument 0, which is f64\[3\]"),
        (lambda _, g: ("g",), jg.errors.AutogradError, "expected a Tensor, or None"),
        (lambda _, g: ([g, g],), jg.errors.AutogradError, "expected a Tensor, or None"),
    ],
)
def test_wrong_gradients_are_errors(run: Run, bwd: Any, error: Any, message: str) -> None:
    f = make(jg.exp, lambda x: (jg.exp(x), None), bwd)
    with pytest.raises(error, match=message) as caught:
        run(jg.grad(lambda x: f(x).sum()))(jg.tensor(X))
    assert "custom_vjp function 'exp' at" in str(caught.value)


def test_wrong_trees_are_errors() -> None:
    f = make(lambda p: p["a"], lambda p: (p["a"], None), lambda _, g: ({"b": g},))
    with pytest.raises(jg.errors.AutogradError, match="another structure than argument 0"):
        jg.grad(lambda p: f(p).sum())({"a": jg.tensor(X)})


def test_wrong_definitions_are_errors() -> None:
    f = jg.custom_vjp(lambda x: x)
    with pytest.raises(jg.errors.AutogradError, match=r"has no gradient yet: call <lambda>\.defvjp"):
        f(jg.tensor(X))
    f.defvjp(lambda x: x, lambda r, g: (g,))
    with pytest.raises(jg.errors.ArgumentError, match="has a gradient already"):
        f.defvjp(lambda x: x, lambda r, g: (g,))
    with pytest.raises(jg.errors.AutogradError, match=r"must return \(result, residuals\)"):
        f(jg.tensor(X, requires_grad=True))
    with pytest.raises(jg.errors.ArgumentError, match="missing a required argument"):
        f(y=1)
    with pytest.raises(jg.errors.ArgumentError, match="expected a function"):
        jg.custom_vjp(3)
    with pytest.raises(jg.errors.ArgumentError, match="positions from 0"):
        partial(jg.custom_vjp, nondiff_argnums=(-1,))(jg.exp)


@EXECUTIONS
def test_in_place_changes_of_residuals_and_arguments_are_errors(run: Run) -> None:
    f = make(lambda x: x * x, lambda x: (x * x, x), lambda x, g: (2 * g * x,))

    def loss(x: Any) -> Any:
        h = x * 1
        y = f(h)
        h += 1
        return jg.autograd.grad(y.sum(), [x])[0]

    with pytest.raises(jg.errors.InPlaceError, match=r"changed in place at .*test_custom_vjp"):
        run(loss)(jg.tensor(X, requires_grad=True))

    def fwd(x: Any) -> Any:
        x += 1
        return x, None

    changing = make(lambda x: x, fwd, lambda _, g: (g,))
    with pytest.raises(jg.errors.InPlaceError, match="changes its argument"):
        run(lambda x: changing(x * 1))(jg.tensor(X, requires_grad=True))


def test_a_backward_function_in_a_trace_changes_nothing_outside() -> None:
    count = jg.zeros(3)

    def bwd(_: Any, g: Any) -> Any:
        count.add_(1.0)
        return (g,)

    f = make(lambda x: x, lambda x: (x, None), bwd)
    with pytest.raises(jg.errors.InPlaceError, match="changes in place"):
        jg.jit(jg.grad(lambda x: f(x).sum()))(jg.tensor(X))
