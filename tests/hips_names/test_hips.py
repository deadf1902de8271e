"""Programs for HIPS autograd give its results with their imports changed, eager and compiled."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError
from tests.compiled import backend  # noqa: F401 - a fixture

MODULES = "numpy numpy.random numpy.linalg scipy.special scipy.stats.norm extend misc.flatten misc.optimizers builtins".split()
X = numpy.linspace(-1.0, 2.0, 6)
M = numpy.cos(numpy.arange(12.0)).reshape(4, 3)


def library(name: str) -> Any:
    """The modules of ``autograd`` or `jitgrad.autograd` that programs import."""
    top = importlib.import_module(name)
    parts = {m.replace(".", "_"): importlib.import_module(f"{name}.{m}") for m in MODULES}
    return SimpleNamespace(ag=top, **parts)


def tanh_curve(lib: Any) -> Any:
    """The first example of autograd: derivatives of any order."""
    np, egrad = lib.numpy, lib.ag.elementwise_grad

    def tanh(x: Any) -> Any:
        return (1.0 - np.exp(-2.0 * x)) / (1.0 + np.exp(-2.0 * x))

    orders = [tanh]
    for _ in range(3):
        orders.append(egrad(orders[-1]))
    return lambda x: [f(x) for f in orders]


def transforms(lib: Any) -> Any:
    np, ag = lib.numpy, lib.ag

    def f(x: Any, y: Any) -> Any:
        return np.sum(np.sin(x) * y**2) + np.sum(x[1:] * x[:-1])

    def g(x: Any) -> Any:
        return np.array([np.sum(x**3), np.prod(x), x[0] * x[1]])

    def run(x: Any) -> Any:
        y = x + 2.0
        vjp, out = ag.make_vjp(g)(x)
        value, tangent = ag.make_jvp(g)(x)(y)
        hvp, slope = ag.make_hvp(f, 1)(x, y)
        return [
            *ag.grad(f, [0, 1])(x, y), ag.grad(f, 1)(x, y), ag.grad(f)(x, y=y), ag.jacobian(g)(x), ag.hessian(f)(x, y), vjp(out),
            out,
            value, tangent, hvp(x), slope, ag.hessian_vector_product(f)(x, y, y), ag.hessian_tensor_product(f, 1)(x, y, x),
            ag.vector_jacobian_product(g)(x, out), ag.make_ggnvp(g)(x)(y), ag.deriv(lambda s: np.sin(s * x))(0.3),
            ag.value_and_grad(f)(x, y)[1], ag.grad_named(f, "y")(x, y), *ag.grad_and_aux(lambda x: (np.sum(x**2), x * 2))(x),
        ]  # fmt: skip

    return run


def primitives(lib: Any) -> Any:
    np = lib.numpy

    @lib.extend.primitive
    def logsumexp(x: Any) -> Any:
        largest = numpy.max(x)
        return largest + numpy.log(numpy.sum(numpy.exp(x - largest)))

    lib.extend.defvjp(logsumexp, lambda ans, x: lambda g: np.full(x.shape, g) * np.exp(x - np.full(x.shape, ans)))

    @lib.extend.primitive
    def scaled(x: Any, y: Any, power: int = 1, *, by: float = 1.0) -> Any:
        return x * y**power * by

    lib.extend.defvjp(
        scaled, lambda ans, x, y, power=1, by=1.0: lambda g: g * y**power * by, None,
    )  # fmt: skip

    def loss(x: Any) -> Any:
        return logsumexp(x**2) + np.sum(scaled(x, x + 1.0, 2, by=3.0) * scaled(x, x))

    return lambda x: [loss(x), lib.ag.grad(loss)(x), lib.ag.jacobian(lib.ag.grad(lambda x: logsumexp(x * 2.0)))(x)]


def neural_net(lib: Any) -> Any:
    """The small network of autograd's examples, trained by its optimisers."""
    np = lib.numpy

    def predict(params: Any, inputs: Any) -> Any:
        for w, b in params:
            outputs = np.dot(inputs, w) + b
            inputs = np.tanh(outputs)
        return outputs - lib.scipy_special.logsumexp(outputs, axis=1, keepdims=True)

    rng = numpy.random.RandomState(0)
    start = [(0.1 * rng.randn(3, 5), 0.1 * rng.randn(5)), (0.1 * rng.randn(5, 2), 0.1 * rng.randn(2))]

    def run(x: Any) -> Any:
        params = start
        targets = numpy.eye(2)[[0, 1, 1, 0]]

        def objective(params: Any, iteration: int) -> Any:
            flat, _ = lib.misc_flatten.flatten(params)
            return -np.sum(predict(params, M) * targets) + 0.1 * np.dot(flat, flat) + 0.0 * iteration + 0.0 * np.sum(x)

        seen = []
        slope = lib.ag.grad(objective)
        optimizers = lib.misc_optimizers
        trained = [
            optimizers.adam(slope, params, step_size=0.05, num_iters=4, callback=lambda p, i, g: seen.append(i)),
            optimizers.sgd(slope, params, step_size=0.05, num_iters=4),
            optimizers.rmsprop(slope, params, step_size=0.05, num_iters=4),
        ]
        assert seen == [0, 1, 2, 3]
        vector, unflatten = lib.misc_flatten.flatten(trained)
        return [vector, unflatten(vector * 2.0)[1][0][0], lib.scipy_stats_norm.logpdf(vector, 0.5, 2.0)]

    return run


PROGRAMS = [tanh_curve, transforms, primitives, neural_net]


def leaves(results: Any) -> list[numpy.ndarray[Any, Any]]:
    return [r.detach().numpy() if isinstance(r, jg.Tensor) else numpy.asarray(r) for r in results]


@pytest.mark.peers
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_give_what_autograd_gives(program: Any) -> None:
    pytest.importorskip("autograd")
    expected = leaves(program(library("autograd"))(X))
    ours = program(library("jitgrad.autograd"))
    for run in (ours, jg.jit(ours)):
        for found, right in zip(leaves(run(jg.tensor(X))), expected, strict=True):
            numpy.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled_programs_are_the_eager_ones(program: Any) -> None:
    ours = program(library("jitgrad.autograd"))
    for found, right in zip(leaves(jg.jit(ours)(jg.tensor(X))), leaves(ours(jg.tensor(X))), strict=True):
        numpy.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


def test_derivatives_are_those_of_mathematics() -> None:
    lib = library("jitgrad.autograd")
    tanh, first, second, _ = leaves(tanh_curve(lib)(jg.tensor(X)))
    numpy.testing.assert_allclose(tanh, numpy.tanh(X))
    numpy.testing.assert_allclose(first, 1 - tanh**2)
    numpy.testing.assert_allclose(second, -2 * tanh * (1 - tanh**2))
    hvp, slope = lib.ag.make_hvp(lambda x: (x**3).sum())(jg.tensor(X))
    numpy.testing.assert_allclose(slope.numpy(), 3 * X**2)
    numpy.testing.assert_allclose(hvp(jg.tensor(X)).numpy(), 6 * X**2)


def test_grad_is_torchs_for_tensors_and_that_of_hips_for_functions() -> None:
    x = jg.tensor(X, requires_grad=True)
    (theirs,) = jg.autograd.grad((x**2).sum(), x)

    numpy.testing.assert_array_equal(theirs.numpy(), 2 * X)
    numpy.testing.assert_array_equal(jg.autograd.grad(lambda x: (x**2).sum())(jg.tensor(X)).numpy(), 2 * X)
    numpy.testing.assert_array_equal(jg.autograd.grad(lambda y, x: (y * x**2).sum(), argnum=1)(2.0, jg.tensor(X)).numpy(), 4 * X)
    with pytest.raises(ArgumentError, match="no other options"):
        jg.autograd.grad(lambda x: x, create_graph=True)
    with pytest.raises(ArgumentError, match="grad\\(outputs, inputs\\)"):
        jg.autograd.grad((x**2).sum())


def test_modules_are_those_of_jitgrad() -> None:
    import jitgrad.autograd.numpy as np
    from jitgrad.autograd.builtins import isinstance as is_instance
    from jitgrad.autograd.numpy.linalg import solve
    from jitgrad.autograd.test_util import check_grads
    from jitgrad.autograd.tracer import getval

    from jitgrad.autograd import jacobian

    assert np is jg.numpy and solve is jg.numpy.linalg.solve and is_instance is isinstance
    assert not getval(jg.tensor(1.0, requires_grad=True)).requires_grad
    check_grads(lambda x: np.sin(x) * x)(jg.tensor(X))
    numpy.testing.assert_array_equal(jacobian(lambda x: x * 2.0)(jg.tensor(X)).numpy(), 2 * numpy.eye(6))
    for name in ("jitgrad.scipy.stats.norm", "jitgrad.autograd.scipy.stats.norm", "jitgrad.jax.scipy.stats.norm"):
        assert importlib.import_module(name) is jg.scipy.stats.norm
    with pytest.raises(AttributeError, match="did you mean 'elementwise_grad'"):
        _ = jg.autograd.elementwise_grads


def test_what_primitives_refuse() -> None:
    from jitgrad.autograd.extend import defjvp, defvjp, primitive

    f = primitive(lambda x, y: x * y)
    x = jg.tensor(X, requires_grad=True)
    with pytest.raises(AutogradError):
        f(x, X).sum().backward()
    defvjp(f, lambda ans, x, y: lambda g: g * y, argnums=(0,))
    defjvp(f, "same")
    f(x, X).sum().backward()
    numpy.testing.assert_array_equal(x.grad.numpy(), X)
    with pytest.raises(AutogradError, match="no gradient for argument 1"):
        f(X, x)
    with pytest.raises(ArgumentError, match="has a gradient already"):
        defvjp(f, None)
    for define in (defvjp, defjvp):
        with pytest.raises(ArgumentError, match="made by @primitive"):
            define(numpy.sin, None)
    with pytest.raises(ArgumentError, match="no argument 'z'"):
        jg.autograd.grad_named(lambda x: x, "z")
