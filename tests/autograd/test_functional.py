"""Functional transforms against closed forms, nested and over pytrees."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad.ops.methods  # noqa: F401 - attaches operators to Tensor
from jitgrad.autograd import gradcheck, hvp, is_grad_enabled, jvp, no_grad, value_and_grad, vjp
from jitgrad.autograd.functional import grad
from jitgrad.batching import hessian, jacobian
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, OperandError, ShapeError
from jitgrad.ops.creation import tensor
from jitgrad.ops.transcendental import exp
from jitgrad.ops.trigonometric import sin, tanh

A = np.array([[2.0, -1.0, 0.5], [0.3, 1.0, 4.0], [1.5, 0.2, -3.0]])
X = np.array([0.4, -1.2, 0.7])


def f64(data, **rest):
    return tensor(data, dtype="float64", **rest)


def quadratic(x):
    return (x * (f64(A) @ x)).sum()


def test_grad_hessian_and_hvp_of_a_quadratic_form():
    symmetric = A + A.T
    v = np.array([1.0, 2.0, -0.5])

    np.testing.assert_allclose(grad(quadratic)(f64(X)).numpy(), symmetric @ X, rtol=1e-14)
    np.testing.assert_allclose(hessian(quadratic)(f64(X)).numpy(), symmetric, rtol=1e-14)
    np.testing.assert_allclose(hvp(quadratic, f64(X), f64(v)).numpy(), symmetric @ v, rtol=1e-14)
    np.testing.assert_allclose(hvp(quadratic, (f64(X),), (f64(v),))[0].numpy(), symmetric @ v, rtol=1e-14)


def test_jacobian_and_jvp_of_a_nonlinear_map():
    v = np.array([1.0, 2.0, -0.5])
    expected = A * (1 - np.tanh(A @ X) ** 2)[:, None]

    def f(x):
        return tanh(f64(A) @ x)

    np.testing.assert_allclose(jacobian(f)(f64(X)).numpy(), expected, rtol=1e-13)
    out, tangent = jvp(f, (f64(X),), (f64(v),))
    np.testing.assert_allclose(out.numpy(), np.tanh(A @ X), rtol=1e-14)
    np.testing.assert_allclose(tangent.numpy(), expected @ v, rtol=1e-13)
    assert not tangent.requires_grad
    assert not out.requires_grad


def test_jacobian_has_the_structure_of_results_with_that_of_arguments():
    def f(p, scale):
        return {"sum": p["a"] + p["b"][0], "product": scale * p["a"]}

    p = {"a": f64([1.0, 2.0]), "b": [f64([3.0, 4.0])]}
    found = jacobian(f, argnums=(0, 1))(p, f64(2.0))

    assert found["sum"][0]["a"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert found["sum"][0]["b"][0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert found["sum"][1].tolist() == [0.0, 0.0]
    assert found["product"][0]["a"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert found["product"][1].tolist() == [1.0, 2.0]
    assert jacobian(lambda x: x * 1.0)(f64(np.zeros((0, 2)))).shape == (0, 2, 0, 2)


def test_hessian_over_two_arguments_has_all_blocks():
    blocks = hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(f64([2.0]), f64([5.0]))

    assert [[b.tolist() for b in row] for row in blocks] == [[[[10.0]], [[4.0]]], [[[4.0]], [[0.0]]]]


def test_value_and_grad_with_argnums_kwargs_and_aux():
    def loss(x, y, *, scale):
        return (x * y * scale).sum(), {"x": x, "double": x * 2.0, "note": "text"}

    (value, aux), (gy, gx) = value_and_grad(loss, argnums=(1, -2), has_aux=True)(f64([2.0]), f64([3.0]), scale=10.0)

    assert (value.item(), gy.tolist(), gx.tolist()) == (60.0, [20.0], [30.0])
    assert aux["note"] == "text"
    assert aux["double"].tolist() == [4.0]
    assert not any(t.requires_grad for t in (value, aux["x"], aux["double"], gy, gx))
    gradient, aux = grad(loss, has_aux=True)(f64([2.0]), f64([3.0]), scale=1.0)
    assert gradient.tolist() == [3.0]


def test_arguments_may_be_numbers_arrays_and_pytrees():
    def f(p):
        return (p["w"] * p["n"][0]).sum()

    found = grad(f)({"w": np.array([1.0, 2.0], np.float32), "n": (3.0,)})

    assert found["w"].tolist() == [3.0, 3.0]
    assert found["w"].dtype == np.float32  # a Python number is weakly typed here as everywhere
    assert found["n"][0].item() == 3.0
    assert grad(lambda x: x * x * x)(2.0).item() == 12.0


def test_nested_grad_of_powers():
    def f(x):
        return x * x * x * x

    derivatives = [f]
    for _ in range(4):
        derivatives.append(grad(derivatives[-1]))

    assert [d(f64(2.0)).item() for d in derivatives] == [16.0, 32.0, 48.0, 48.0, 24.0]


def test_levels_do_not_mix_their_perturbations():
    """d/dx x * (d/dy (x + y)): the inner derivative is 1, whatever x is (Siskind and Pearlmutter, 2005)."""
    assert grad(lambda x: x * grad(lambda y: x + y)(f64(1.0)))(f64(3.0)).item() == 1.0
    assert grad(lambda x: x * grad(lambda y: x * y)(f64(1.0)))(f64(3.0)).item() == 6.0
    assert grad(lambda x: grad(lambda y: x * y * y)(x))(f64(3.0)).item() == 12.0


def test_gradients_flow_to_a_leaf_outside():
    w = f64([2.0], requires_grad=True)
    value, g = value_and_grad(lambda x: (w * x * x).sum())(f64([3.0]))
    assert value.requires_grad
    (g * 1.0).sum().backward()

    assert g.tolist() == [12.0]
    assert w.grad.tolist() == [6.0]


def test_gradients_flow_to_an_argument_that_requires_grad():
    x = f64([3.0], requires_grad=True)
    g = grad(lambda x: (x * x * x).sum())(x)
    g.sum().backward()

    assert g.tolist() == [27.0]
    assert x.grad.tolist() == [18.0]


def test_no_grad_outside_cuts_but_does_not_disable():
    x = f64([3.0], requires_grad=True)
    with no_grad():
        g = grad(lambda x: (x * x).sum() if is_grad_enabled() else None)(x)

    assert g.tolist() == [6.0]
    assert not g.requires_grad


def test_leaves_outside_do_not_collect_gradients():
    w = f64([2.0], requires_grad=True)
    grad(lambda x: (w * x).sum())(f64([3.0]))

    assert w.grad is None


def test_vjp_function_may_be_called_again_and_is_linear():
    out, pull = vjp(lambda x, y: {"p": x * y, "s": x + y}, f64([2.0]), f64([5.0]))

    assert out["p"].tolist() == [10.0]
    assert [g.tolist() for g in pull({"p": f64([1.0]), "s": f64([0.0])})] == [[5.0], [2.0]]
    assert [g.tolist() for g in pull({"p": f64([0.0]), "s": f64([2.0])})] == [[2.0], [2.0]]
    with pytest.raises(ArgumentError, match="vjp: expected the structure"):
        pull([f64([1.0])])
    with pytest.raises(ShapeError, match=r"vjp: expected f64\[1\], got f64\[2\]"):
        pull({"p": f64([1.0, 1.0]), "s": f64([0.0])})


def test_functions_that_ignore_an_input_have_zero_derivatives():
    x = f64([1.0, 2.0])
    assert grad(lambda _x: f64(3.0))(x).tolist() == [0.0, 0.0]
    assert jvp(lambda _x: f64([3.0]), (x,), (x,))[1].tolist() == [0.0]
    assert hvp(lambda x: x.sum(), x, x).tolist() == [0.0, 0.0]
    assert vjp(lambda _x, y: y * 1.0, x, x)[1](x)[0].tolist() == [0.0, 0.0]


def test_identity_function():
    x, v = f64([1.0, 2.0]), f64([3.0, 4.0])
    assert jvp(lambda x: x, (x,), (v,))[1].tolist() == [3.0, 4.0]
    assert vjp(lambda x: x, x)[1](v)[0].tolist() == [3.0, 4.0]
    assert jacobian(lambda x: x)(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("transform", ["jvp", "hvp", "vjp", "jacobian"])
def test_transforms_can_be_differentiated_themselves(transform):
    v = f64([0.3, -0.7])

    def f(x):
        return sin(x) * exp(x * 0.5)

    functions = {
        "jvp": lambda x: jvp(f, (x,), (v,))[1],
        "hvp": lambda x: hvp(lambda x: f(x).sum(), x, v),
        "vjp": lambda x: vjp(f, x)[1](v)[0],
        "jacobian": jacobian(f),
    }
    assert gradcheck(functions[transform], f64([0.2, 1.1]))


def test_tangents_and_cotangents_can_be_differentiated():
    x = f64([0.2, 1.1])
    assert gradcheck(lambda v: jvp(sin, (x,), (v,))[1], f64([0.3, -0.7]))
    assert gradcheck(lambda u: vjp(sin, x)[1](u)[0], f64([0.3, -0.7]))
    assert gradcheck(lambda v: hvp(lambda x: sin(x).sum(), x, v), f64([0.3, -0.7]))


@pytest.mark.parametrize(
    ("run", "error", "pattern"),
    [
        (lambda: grad(lambda x: x)(f64([1.0, 2.0])), AutogradError, r"one float element; it returned f64\[2\]"),
        (lambda: grad(lambda x: (x, x))(f64(1.0)), AutogradError, "with has_aux=True: a pair"),
        (lambda: grad(lambda x: x, has_aux=True)(f64(1.0)), AutogradError, "must return \\(result, aux\\)"),
        (lambda: grad(lambda x: x)(3), DtypeError, r"argument\[0\] is i64\*?\[\]; only floats and complex numbers"),
        (lambda: grad(lambda p: p)({"a": "b"}), OperandError, r"with respect to argument\[0\]\['a'\]"),
        (lambda: grad(lambda x: x, argnums=1)(f64(1.0)), ArgumentError, "argnums=1, but the function was called with 1"),
        (lambda: grad(lambda x: x, argnums="x")(f64(1.0)), ArgumentError, "argnums='x': expected the position of an arg"),
        (lambda: hessian(lambda x: x, argnums=(0, 0.0))(f64(1.0)), ArgumentError, "expected the position of an argument"),
        (lambda: grad(lambda x, y: x, argnums=(0, -2))(f64(1.0), 2.0), ArgumentError, "names an argument twice"),
        (lambda: jacobian(lambda x: 3.0)(f64(1.0)), AutogradError, "must return float Tensors; it returned a float"),
    ],
)
def test_wrong_calls(run, error, pattern):
    with pytest.raises(error, match=pattern):
        run()


def test_a_derivative_within_the_function_leaves_no_history_on_the_results():
    w, x = tensor([0.5, 2.0]), tensor([1.0, 3.0])

    def loss(w):
        inner = grad(lambda x: sin(x * w).sum())
        return (inner(x) ** 2).sum()

    value, gradient = value_and_grad(loss)(w)

    assert not value.requires_grad
    assert not gradient.requires_grad
