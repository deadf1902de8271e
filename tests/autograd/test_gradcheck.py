"""gradcheck accepts correct gradients and names the error of others."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad.ops.methods  # noqa: F401 - attaches operators to Tensor
from jitgrad.autograd import gradcheck, gradgradcheck
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AutogradError, GradcheckError
from jitgrad.core.op import define_elementwise
from jitgrad.ops.arithmetic import multiply, sqrt
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import tensor
from jitgrad.ops.transcendental import exp
from jitgrad.ops.trigonometric import cos, sin, tanh

X = np.array([[0.3, -1.0], [2.0, 0.7]])


def op_with(vjp):
    return define_elementwise("cube(x)", scalar="x * x * x", eager=lambda x: x**3, vjp=(vjp,), register=False)


def test_right_gradients_pass_in_both_orders():
    def f(x, y, flag):
        return {"a": sin(x * y), "b": (where(flag, x, y) * y).sum(axis=0)}

    inputs = (X.astype(np.float32), X[0], np.array([True, False]))
    assert gradcheck(f, inputs) is True
    assert gradgradcheck(f, inputs) is True


def test_wrong_gradient_is_named_with_input_element_and_both_numbers():
    wrong = op_with(lambda g, _out, x: multiply(g, where(x > 1.0, 0.0, x * x * 3.0)))

    with pytest.raises(GradcheckError, match=r"input 1, element \(1, 0\): the analytic gradient is 0, .* give 1[0-9]"):
        gradcheck(lambda s, x: apply_op(wrong, x) * s, (1.0, X))


MUTATED = {
    "exp": (exp, lambda g, out, _x: g * out),
    "sin": (sin, lambda g, _out, x: g * cos(x)),
    "sqrt": (sqrt, lambda g, out, _x: g * 0.5 / out),
    "cube": (lambda x: x * x * x, lambda g, _out, x: g * 3.0 * x * x),
    "large": (lambda x: 1e6 * x + 3e7, lambda g, _out, x: g * 1e6),
    "small": (lambda x: 1e-3 * tanh(x), lambda g, _out, x: g * 1e-3 * (1.0 - tanh(x) ** 2)),
}


@pytest.mark.parametrize("name", MUTATED)
@pytest.mark.parametrize("error", [1e-4, -1e-4])
def test_a_gradient_wrong_by_a_ten_thousandth_is_found(name, error):
    """The default tolerances allowed exactly that."""
    function, vjp = MUTATED[name]

    def of(factor):
        op = define_elementwise(
            "mutated(x)",
            scalar="x",
            eager=lambda x: function(tensor(x)).numpy(),
            vjp=(lambda g, out, x: vjp(g, out, x) * factor,),
            register=False,
        )
        return lambda x, y: (apply_op(op, x) * y).sum(axis=0)

    inputs = (np.linspace(0.3, 2.0, 24).reshape(6, 4), np.linspace(0.5, 3.0, 4))
    assert gradcheck(of(1.0), inputs)
    with pytest.raises(GradcheckError, match="input 0"):
        gradcheck(of(1.0 + error), inputs)
    assert gradgradcheck(of(1.0), inputs)


def test_rounding_of_large_results_is_no_error():
    assert gradcheck(lambda x: (x * 1e8).sum() + x, np.linspace(1.0, 2.0, 50))
    assert gradcheck(lambda x: where(x > 1.5, float("inf"), x), np.linspace(1.0, 2.0, 6))


def test_nan_gradient_fails():
    nan = op_with(lambda g, _out, x: g * float("nan"))
    with pytest.raises(GradcheckError, match="analytic gradient is nan"):
        gradcheck(lambda x: apply_op(nan, x), X)


def test_wrong_second_derivative_is_found():
    detached = op_with(lambda g, _out, x: multiply(g, (x * x * 3.0).detach()))
    assert gradcheck(lambda x: apply_op(detached, x), X)

    with pytest.raises(GradcheckError, match="input 0"):
        gradgradcheck(lambda x: apply_op(detached, x), X)


def test_inputs_are_left_alone_and_something_must_be_floating():
    x = tensor(X, requires_grad=True)
    assert gradcheck(lambda x: x * 2.0, x)
    assert x.grad is None
    np.testing.assert_array_equal(x.detach().numpy(), X)
    with pytest.raises(AutogradError, match="none of the inputs is a float"):
        gradcheck(lambda x: x, np.arange(3))
    with pytest.raises(AutogradError, match="returned no float Tensor"):
        gradcheck(lambda x: x > 0.0, X)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("wrong", [1e-4, -1e-4])
def test_default_tolerances_find_a_gradient_that_is_wrong_by_1e_4(size: float, wrong: float) -> None:
    x = np.linspace(0.3, 1.5, 12)

    def cube(factor: float):
        op = op_with(lambda g, out, x: multiply(multiply(g, factor), multiply(multiply(x, x), 3.0)))
        return lambda x: multiply(apply_op(op, x), size)

    assert gradcheck(cube(1.0), x)
    with pytest.raises(GradcheckError):
        gradcheck(cube(1.0 + wrong), x)
