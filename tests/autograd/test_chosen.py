"""jg.autograd.grad: the requested gradients, and no other ``.grad``."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError, GraphFreedError


def leaf(*numbers: float) -> jg.Tensor:
    return jg.tensor(np.array(numbers), requires_grad=True)


def test_only_what_was_asked_for():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * x
    (gx, gy) = jg.autograd.grad((y * w).sum(), (x, y))

    assert (gx.tolist(), gy.tolist()) == ([6.0, 16.0], [3.0, 4.0])
    assert x.grad is None and w.grad is None and y.grad is None


def test_a_gradient_penalty_leaves_parameters_alone():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (gx,) = jg.autograd.grad((x * x * w).sum(), x, create_graph=True)
    assert w.grad is None

    (gx * gx).sum().backward()
    assert w.grad.tolist() == [2 * 6.0 * 2.0, 2 * 16.0 * 4.0]


def test_the_same_step_compiled():
    w = leaf(3.0, 4.0)

    def step(x):
        x = x.detach().requires_grad_()
        (gx,) = jg.autograd.grad((x * x * w).sum(), x, create_graph=True)
        (gx * gx).sum().backward()
        return gx

    x = jg.tensor(np.array([1.0, 2.0]))
    eager = step(x).tolist(), w.grad.tolist()
    for _ in range(3):
        w.grad = None
        assert (jg.jit(step)(x).tolist(), w.grad.tolist()) == eager


def test_several_outputs_and_their_incoming_gradients():
    x = leaf(1.0, 2.0)
    outs = (x * 2.0, (x * x).sum())
    (gx,) = jg.autograd.grad(outs, x, (np.array([1.0, 10.0]), None), retain_graph=True)
    assert gx.tolist() == [4.0, 24.0]

    (again,) = jg.autograd.grad(outs[1], x)
    assert again.tolist() == [2.0, 4.0]
    with pytest.raises(GraphFreedError):
        jg.autograd.grad(outs[1], x)


def test_inputs_without_influence():
    x, w = leaf(1.0), leaf(2.0)
    assert jg.autograd.grad(x * 2.0, (x, w), allow_unused=True)[1] is None
    with pytest.raises(AutogradError, match=r"no output depends on input 1, f64\[1\].*allow_unused"):
        jg.autograd.grad(x * 2.0, (x, w))


def test_what_is_refused():
    x = leaf(1.0, 2.0)
    with pytest.raises(AutogradError, match=r"input 0, .* does not require grad"):
        jg.autograd.grad((x * x).sum(), x.detach())
    with pytest.raises(AutogradError, match="several elements"):
        jg.autograd.grad(x * x, x)
    with pytest.raises(ArgumentError, match="1 outputs, but 2 grad_outputs"):
        jg.autograd.grad([x * x], x, [x, x])
    with pytest.raises(ArgumentError, match="outputs must be tensors, got float"):
        jg.autograd.grad([1.0], x)


def test_torchs_names_of_arguments():
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward(gradient=jg.tensor([1.0, 3.0]))

    (first,) = jg.autograd.grad((x**3).sum(), x, create_graph=True, retain_graph=None)
    (second,) = jg.autograd.grad(first.sum(), x)

    assert x.grad.tolist() == [2.0, 6.0]
    assert second.tolist() == [6.0, 12.0]
    with pytest.raises(ArgumentError, match="gradient= and grad="):
        (x * 2).backward(jg.ones(2), gradient=jg.ones(2))


def test_losses_share_ops_that_keep_nothing_for_backward():
    w, x = leaf(2.0, 3.0), jg.tensor(np.array([1.0, 2.0]), requires_grad=True)
    coordinates = jg.stack([x.float(), x.float()]).reshape(4)[:2]  # made once, before all steps, as in many programs
    for _ in range(2):
        (coordinates * w).sum().backward()

    assert x.grad.tolist() == [4.0, 6.0]
    assert w.grad.tolist() == [2.0, 4.0]
