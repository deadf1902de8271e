"""User-defined scalar functions: their meaning on arrays, their kernel expression and their derived gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jitgrad.ops.methods  # noqa: F401 - attaches operators to Tensor
from jitgrad.autograd import gradcheck, gradgradcheck
from jitgrad.autograd.functional import grad
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, OpDefinitionError
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import tensor
from jitgrad.ops.user import elementwise

X = np.array([-4.0, -0.7, 0.2, 1.3, 5.0])


@elementwise
def softclip(x, limit=3.0):
    """Linear in the middle, logarithmic outside."""
    size = abs(x)
    if size < limit:
        return x
    return math.copysign(limit + math.log(size / limit), x)


def reference(x, limit=3.0):
    return np.where(np.abs(x) < limit, x, np.copysign(limit + np.log(np.abs(x) / limit), x))


def test_branches_and_locals_become_one_expression():
    assert softclip.op.scalar == "x if abs(x) < limit else copysign(limit + log(abs(x) / limit), x)"
    assert softclip.__doc__ == "Linear in the middle, logarithmic outside."
    np.testing.assert_allclose(softclip(X).numpy(), reference(X), rtol=1e-15)
    np.testing.assert_allclose(softclip(X, limit=X * X).numpy(), reference(X, X * X), rtol=1e-15)
    assert softclip(X.astype(np.float32)).dtype == np.float32
    assert softclip(np.array([2, 9])).dtype == np.float64


def test_derived_gradients_of_first_and_second_order():
    assert gradcheck(softclip, (X, np.array(1.1)))
    assert gradgradcheck(softclip, (X, np.array(1.1)))


def test_text_form_with_an_attribute_and_a_default():
    leaky = elementwise("leaky(x, *, slope=0.5)", scalar="x if x > 0 else slope * x")

    assert leaky(X).tolist() == pytest.approx([-2.0, -0.35, 0.2, 1.3, 5.0])
    assert leaky(X, slope=0.1).tolist() == pytest.approx([-0.4, -0.07, 0.2, 1.3, 5.0])
    assert apply_op(leaky.op, X, slope=1.0).tolist() == X.tolist()
    assert grad(lambda x: leaky(x, slope=0.25))(tensor(-2.0)).item() == 0.25


@pytest.mark.parametrize(
    ("scalar", "derivative"),
    [
        ("tanh(x) ** 2", lambda x: 2 * np.tanh(x) / np.cosh(x) ** 2),
        ("x ** 3", lambda x: 3 * x**2),
        ("exp(-x * x) / (1 + x * x)", lambda x: -2 * x * np.exp(-x * x) * (2 + x * x) / (1 + x * x) ** 2),
        ("abs(x) + max(x, 0.0) - min(x, 1, 2)", lambda x: np.sign(x) + (x > 0) - (x < 1)),
        ("atan2(x, 2.0) + hypot(x, 2.0)", lambda x: 2 / (4 + x * x) + x / np.sqrt(4 + x * x)),
        ("(1 if 0 < x < 2 and not x > 1 else -1) * x", lambda x: np.where((x > 0) & (x <= 1), 1.0, -1.0)),
        ("x % 3 + x // 3 + floor(x)", np.ones_like),
        ("math.pi * x + math.sin(x) + 0 * sign(x)", lambda x: np.pi + np.cos(x)),
        ("3.0", np.zeros_like),
        ("-(+x) if isnan(x) or x > 0 else 5", lambda x: np.where(x > 0, -1.0, 0.0)),
    ],
)
def test_derived_gradient_against_the_known_one(scalar, derivative):
    f = elementwise("f(x)", scalar=scalar)

    np.testing.assert_allclose(grad(lambda x: f(x).sum())(X).numpy(), derivative(X), rtol=1e-12, atol=1e-14)


def test_a_branch_not_taken_puts_no_nan_into_any_derivative():
    f = elementwise("f(x)", scalar="x * log(x) if x > 0 else 0.0")
    for _ in range(3):
        assert f(0.0).item() == 0.0
        f = grad(f)


def test_python_min_and_max_keep_their_meaning_for_nan():
    nan = float("nan")
    for name, function in (("min", min), ("max", max)):
        op = elementwise("f(x, y)", scalar=f"{name}(x, y)")
        for x, y in ((nan, 1.0), (1.0, nan), (2.0, 1.0), (0.0, -0.0)):
            assert repr(op(np.array(x), np.array(y)).item()) == repr(function(x, y))


def test_constants_are_computed_in_the_dtype_of_the_operands():
    f = elementwise("f(x)", scalar="(0.1 if x > 0 else 0.3) * 3.0 + x")
    x = np.array([1.0], np.float32)

    assert f(x).numpy()[0] == np.float32(0.1) * np.float32(3.0) + x[0]
    assert f(x).dtype == np.float32


def test_a_condition_is_a_bool_op_without_gradient():
    inside = elementwise(lambda x, y: x < y and y > 0)
    out = inside(tensor(X, requires_grad=True), 1.0)

    assert out.dtype == np.bool_
    assert not out.requires_grad
    assert out.tolist() == (X < 1.0).tolist()


def test_of_several_lambdas_on_a_line_each_is_itself():
    plus, minus, other = elementwise(lambda x: x + 1), elementwise(lambda x: x - 1), elementwise(lambda x: x + 2)

    assert [op(1.0).item() for op in (plus, minus, other)] == [2.0, 0.0, 3.0]


def test_a_source_file_that_changed_is_noticed(tmp_path):
    file = tmp_path / "changing.py"
    file.write_text("def f(x):\n    return x + 1.0\n")
    namespace = {}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    file.write_text("def f(x):\n    return x + 2.0\n")

    with pytest.raises(OpDefinitionError, match="does not show the function that runs"):
        elementwise(namespace["f"])


def steps_to_one(x):
    count = 0.0
    while x > 1.0 and count < 1000:
        x = x / 2 if x % 2 == 0 else 3 * x + 1
        count += 1.0
    return count


def test_functions_with_loops_run_per_element():
    op = elementwise(steps_to_one)

    assert op.op.scalar is None
    assert op.op.function is steps_to_one
    assert op(np.arange(1.0, 8.0)).tolist() == [0.0, 1.0, 7.0, 2.0, 5.0, 8.0, 16.0]
    assert op(np.zeros((0, 2), np.float32)).aval.dtype == np.float32
    x = tensor([3.0], requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == [0.0]  # a count of steps is constant around x


def test_a_given_vjp_is_used():
    @elementwise(vjp=lambda g, _out, x: g * where(x > 0.0, 2.0 * x, 0.0))
    def ramp(x):
        total = 0.0
        for _ in range(2):
            total += 0.5 * x * x if x > 0 else 0.0
        return total

    assert gradcheck(ramp, X)


OUTSIDE = 3.0


@pytest.mark.parametrize(
    ("define", "pattern"),
    [
        (lambda: elementwise(lambda x: x * OUTSIDE), "uses 'OUTSIDE', which is neither a parameter"),
        (lambda: elementwise("f(x)", scalar="x +"), "invalid syntax"),
        (lambda: elementwise("f(x)", scalar="airy(x)"), r"'airy\(x\)' is no scalar function"),
        (lambda: elementwise("f(x)", scalar="x.real"), "has no meaning in a scalar expression"),
        (lambda: elementwise("f(x)", scalar="[x]"), "has no meaning in a scalar expression"),
        (lambda: elementwise("f(x)", scalar="'a'"), "is no number"),
        (lambda: elementwise("f(*x)", scalar="x"), "parameters are not possible"),
        (lambda: elementwise("f(x)"), "pass scalar="),
        (lambda: elementwise("f(*, x)", scalar="x"), "at least one operand"),
        (lambda: elementwise(eval(compile("lambda x: x", "no file", "eval"))), "its source cannot be read"),
        (lambda: elementwise(no_result), "must return a value on every path"),
        (lambda: elementwise(doubling), "more than 4000 parts"),
    ],
)
def test_definitions_that_cannot_work(define, pattern):
    with pytest.raises(OpDefinitionError, match=pattern):
        define()


def no_result(x):
    if x > 0:
        return x


def doubling(x):
    x = x * x + x
    x = x * x + x
    x = x * x + x
    x = x * x + x
    x = x * x + x
    x = x * x + x
    x = x * x + x
    x = x * x + x
    return x


def test_wrong_calls_name_the_signature():
    with pytest.raises(ArgumentError, match=r"softclip\(x, limit=3.0\): missing a required argument: 'x'"):
        softclip()
