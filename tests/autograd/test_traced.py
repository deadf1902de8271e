"""Autograd on traced values: transforms recorded into a graph give the eager numbers."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd import checkpoint
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.ir import evaluate
from jitgrad.core.tensor import Tensor
from jitgrad.eager.run import run_on_arrays
from jitgrad.ops.creation import tensor
from jitgrad.ops.random import Generator

X = np.array([0.3, -1.0, 2.0])
V = np.array([1.0, 0.5, -2.0])
W = tensor(np.array([[1.0, 2.0, -1.0], [0.5, 0.1, 0.2]]), requires_grad=True)


def run_traced(f, *arrays, requires_grad=False):
    """``f`` recorded on values without data, then the graph run on ``arrays``."""
    trace = Trace("f")
    token = current_interpreter.set(trace)
    try:
        xs = [trace.argument(k, Aval(a.shape, a.dtype), requires_grad) for k, a in enumerate(arrays)]
        outs = f(*xs)
        atoms = tuple(trace.current(out) for out in outs)
    finally:
        current_interpreter.reset(token)
    inputs = tuple(_input(source, arrays) for source in trace.sources)
    return evaluate(trace.graph(atoms), inputs, run_on_arrays)


def _input(source, arrays):
    found = source.resolve(arrays)
    return found._data if isinstance(found, Tensor) else found


def net(x):
    return jg.tanh(W @ x)


def with_backward(x):
    w = W.detach().clone().requires_grad_()
    jg.tanh(w @ x).sum().backward()
    return (w.grad,)


userdefined = jg.elementwise("clipped(x, limit)", scalar="x if abs(x) < limit else limit * tanh(x / limit)")

PROGRAMS = {
    "backward": with_backward,
    "value_and_grad": jg.value_and_grad(lambda x: net(x).sum()),
    "number": lambda x: (jg.grad(lambda s: (x * s * s).sum())(3.0),),
    "hessian": lambda x: (jg.hessian(lambda x: net(x).sum())(x),),
    "hvp": lambda x: (jg.hvp(lambda x: net(x).sum(), x, V),),
    "jvp": lambda x: jg.jvp(net, (x,), (tensor(V),)),
    "checkpoint": lambda x: (jg.grad(lambda x: checkpoint(net)(x * x).sum())(x),),
    "elementwise": jg.value_and_grad(lambda x: (userdefined(x, 0.9) * x).sum()),
    "second order": lambda x: (jg.grad(lambda x: (jg.grad(lambda y: (y * y * x).sum())(x) * x).sum())(x),),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_equals_eager(name, requires_grad):
    f = PROGRAMS[name]
    expected = [out.detach().numpy() for out in f(tensor(X, requires_grad=requires_grad))]

    for found, wanted in zip(run_traced(f, X, requires_grad=requires_grad), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
        assert found.dtype == wanted.dtype


def test_checkpoint_draws_the_same_random_numbers_in_a_trace():
    def f(generator):
        return jg.value_and_grad(lambda x: (checkpoint(lambda x: x * generator.rand(3, dtype="float64"))(x) * x).sum())

    expected = f(Generator(3))(tensor(X))
    found = run_traced(f(Generator(3)), X)

    np.testing.assert_allclose(found[0], expected[0].numpy(), rtol=1e-14)
    np.testing.assert_allclose(found[1], expected[1].numpy(), rtol=1e-14)


def test_the_first_call_under_detect_anomaly_is_traced():
    """The check of gradients for NaN needed the values of tensors that are only traced."""
    x = jg.tensor([1.0, 4.0], requires_grad=True)

    @jg.jit
    def step(x):
        (jg.sqrt(x) * 2.0).sum().backward()

    with jg.detect_anomaly():
        step(x)

    assert x.grad.tolist() == [1.0, 0.5]
