"""Reverse mode over the recorded graph: order, accumulation, lifetime, errors and hooks."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import jitgrad.ops.methods  # noqa: F401 - attaches operators to Tensor
from jitgrad.autograd import detect_anomaly, no_grad
from jitgrad.autograd.backward_pass import own
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AnomalyError, AutogradError, GraphFreedError, InPlaceError, ShapeError
from jitgrad.core.op import REGISTRY, define_elementwise
from jitgrad.core.tape_node import record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import multiply, negative, sqrt
from jitgrad.ops.creation import tensor
from jitgrad.ops.transcendental import exp, log
from jitgrad.ops.trigonometric import tanh


def leaf(*values, dtype="float64"):
    return tensor(list(values), dtype=dtype, requires_grad=True)


def counting_double(calls):
    def vjp(g, _out, _x):
        calls.append(1)
        return multiply(g, 2.0)

    return define_elementwise("double(x)", scalar="x * 2.0", eager=lambda x: x * 2, vjp=(vjp,), register=False)


def test_a_chain_of_18_diamonds_runs_each_node_once():
    calls = []
    double = counting_double(calls)
    x = leaf(1.0)
    y = x
    for _ in range(18):
        z = apply_op(double, y)
        y = z + z

    y.sum().backward()

    assert len(calls) == 18
    assert x.grad.tolist() == [4.0**18]


def test_diamond_whose_branches_have_different_depth():
    x = leaf(0.5)
    a = x * 2.0
    deep = a
    for _ in range(5):
        deep = deep * 1.5
    (deep * a + a).sum().backward()

    assert x.grad.tolist() == pytest.approx([2 * 1.5**5 * 2 * 2 * 0.5 + 2])


def long_chain(x, length=100_000):
    """``x`` negated an even number of times, recorded without running the ops forward."""
    for _ in range(length):
        y = Tensor(x._data)
        record(REGISTRY["negative"], (x,), {}, y)
        x = y
    return x


def test_100_000_ops_backward_without_recursion():
    x = leaf(1.0, 2.0)
    long_chain(x).sum().backward()

    assert x.grad.tolist() == [1.0, 1.0]


def test_100_000_ops_are_dropped_without_backward():
    x = leaf(1.0)
    y = negative(x)
    first = weakref.ref(y.grad_fn)
    y = long_chain(y)
    assert first() is not None
    del y

    assert first() is None


def test_gradients_of_a_tensor_used_twice_and_of_two_backwards_add_up():
    x = leaf(3.0)
    (x * x + x).sum().backward()
    assert x.grad.tolist() == [7.0]
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [9.0]


def test_grad_of_no_two_leaves_is_the_same_memory():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).sum().backward()

    assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
    assert x.grad.numpy().flags.writeable
    with no_grad():
        x.grad.numpy()[:] = 7.0
    assert y.grad.tolist() == [1.0, 1.0]


def test_grad_is_not_the_memory_of_the_incoming_gradient():
    x = leaf(1.0, 2.0)
    incoming = tensor([5.0, 6.0], dtype="float64")
    (x + 0.0).backward(incoming)
    x.grad.numpy()[:] = 0.0

    assert incoming.tolist() == [5.0, 6.0]


def test_a_gradient_that_nobody_else_knows_is_not_copied():
    held = [Tensor(np.ones(3))]
    address = held[0].numpy().ctypes.data
    assert own(held).numpy().ctypes.data == address
    for others in ([*held], [held[0].numpy()]):
        assert own(held).numpy().ctypes.data != address
        others.clear()

    x = leaf(1.0, 2.0)
    seen = []
    double = define_elementwise(
        "double(x)",
        scalar="x * 2.0",
        eager=lambda x: x * 2,
        vjp=(lambda g, _out, _x: remember(multiply(g, 2.0), seen),),
        register=False,
    )
    apply_op(double, x).sum().backward()
    assert x.grad.numpy().ctypes.data == seen[0]


def remember(g, seen):
    seen.append(g.numpy().ctypes.data)
    return g


def test_broadcast_operands_get_gradients_of_their_own_shape():
    x = tensor(np.ones((3, 1)), requires_grad=True)
    y = tensor(np.arange(4.0), requires_grad=True)
    (x * y).sum().backward()

    assert x.grad.shape == (3, 1)
    assert x.grad.tolist() == [[6.0]] * 3
    assert y.grad.tolist() == [3.0] * 4


def test_threads_have_graphs_and_modes_of_their_own():
    results = {}

    def work(k):
        x = leaf(float(k))
        with no_grad() if k % 2 else nothing():
            y = x * x
            for _ in range(50):
                y = y * 1.0
        results[k] = (y.requires_grad, x.grad if k % 2 else backward_of(y, x))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    assert {k: r[0] for k, r in results.items()} == {k: k % 2 == 0 for k in range(8)}
    assert all(results[k][1].tolist() == [2.0 * k] for k in range(0, 8, 2))


def test_threads_that_share_a_leaf_lose_no_gradient():
    x = leaf(0.0)

    def work():
        for _ in range(100):
            (x * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    assert x.grad.tolist() == [400.0]


class nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None


def backward_of(y, x):
    y.sum().backward()
    return x.grad


# --- lifetime ----------------------------------------------------------------------------------------------------


def test_backward_leaves_nothing_for_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        h = tanh(x * x)
        out = exp(h)
        loss = out.sum()
        saved = [weakref.ref(t._data) for t in (h, out)]
        nodes = [weakref.ref(t.grad_fn) for t in (h, out)]
        del h, out
        assert all(r() is not None for r in saved)
        loss.backward()
        assert [r() for r in saved] == [None, None]
        nodes.append(weakref.ref(loss.grad_fn))
        del loss
        assert [r() for r in nodes] == [None, None, None]
    finally:
        gc.enable()


def test_a_graph_without_backward_dies_with_its_result():
    gc.disable()
    try:
        x = leaf(1.0)
        loss = exp(tanh(x) * x).sum()
        node = weakref.ref(loss.grad_fn)
        del loss
        assert node() is None
    finally:
        gc.enable()


def test_only_what_the_vjp_reads_is_kept():
    x = leaf(1.0, 2.0)
    a = x * 3.0
    b = a + 1.0  # add reads neither operand
    data = weakref.ref(a._data)
    del a

    assert data() is None
    assert b.requires_grad


def test_retain_graph_allows_a_second_backward():
    x = leaf(2.0)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()

    assert x.grad.tolist() == [8.0]


def test_second_backward_names_the_op_and_the_remedy():
    x = leaf(2.0)
    loss = (x * x).sum()
    loss.backward()

    with pytest.raises(GraphFreedError, match=r"multiply at .*test_backward\.py:\d+ a second time.*retain_graph=True"):
        loss.backward()


def test_create_graph_gives_second_derivatives():
    x = leaf(2.0)
    (x * x * x).sum().backward(create_graph=True)
    g = x.grad
    assert g.tolist() == [12.0]
    x.grad = None
    g.sum().backward()

    assert x.grad.tolist() == [12.0]


# --- errors ------------------------------------------------------------------------------------------------------


def test_in_place_change_of_a_saved_tensor_names_both_lines():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    loss = (y * y).sum()
    with no_grad():
        y += 1.0

    pattern = r"multiply at .*test_backward\.py:(\d+) .*changed in place at .*test_backward\.py:(\d+)"
    with pytest.raises(InPlaceError, match=pattern) as caught:
        loss.backward()
    lines = [int(part.split(" ")[0].split(".")[0]) for part in str(caught.value).split("test_backward.py:")[1:3]]
    assert lines[1] - lines[0] == 2


def test_in_place_change_of_a_tensor_that_is_not_saved_is_fine():
    x = leaf(1.0, 2.0)
    y = x * 2.0
    loss = (y + y).sum()
    with no_grad():
        y += 1.0
    loss.backward()

    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    ("run", "error", "pattern"),
    [
        (lambda: tensor([1.0]).backward(), AutogradError, "does not require grad"),
        (lambda: leaf(1.0, 2.0).backward(), AutogradError, r"several elements needs backward\(grad\)"),
        (
            lambda: (leaf(1.0) * 2.0).backward(tensor([1.0, 2.0])),
            ShapeError,
            r"grad is f32\[2\], the tensor is f64\[1\]",
        ),
    ],
)
def test_wrong_calls(run, error, pattern):
    with pytest.raises(error, match=pattern):
        run()


def test_incoming_gradient_may_be_a_number_or_an_array():
    x = leaf(1.0)
    (x * 3.0).sum().backward(2)
    assert not x.grad.requires_grad
    assert x.grad.tolist() == [6.0]
    (x * 3.0).backward(np.array([1.0], np.float32))
    assert x.grad.tolist() == [9.0]
    assert x.grad.dtype == np.float64


def test_anomaly_names_the_op_and_the_line_that_made_it():
    x = leaf(0.0)
    with detect_anomaly():
        y = sqrt(x)
        expected = r"sqrt at .*test_backward\.py:\d+ returned has Inf in it, at element \[[0-9, ]*\], made at:"
        with pytest.raises(AnomalyError, match=expected):
            (y * 1.0).sum().backward()
    (log(leaf(0.0)) * 1.0).sum().backward()  # outside, infinities pass


# --- hooks -------------------------------------------------------------------------------------------------------


def test_hooks_see_and_replace_whole_gradients():
    x = leaf(3.0)
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10.0)
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    (y * y + y).sum().backward(retain_graph=False)

    assert seen == [[13.0], [260.0]]
    assert x.grad.tolist() == [260.0]
    handle.remove()
    handle.remove()
    (x * 1.0).sum().backward()
    assert len(seen) == 2


def test_a_hook_must_keep_the_shape():
    x = leaf(3.0, 4.0)
    x.register_hook(lambda g: g.sum())
    with pytest.raises(ShapeError, match=r"a hook must return None or a gradient like the one it got, f64\[2\]"):
        (x * 1.0).sum().backward()


def test_retain_grad_keeps_the_gradient_after_hooks_and_makes_no_cycle():
    gc.disable()
    try:
        x = leaf(3.0)
        y = x * 2.0
        y.retain_grad()
        y.register_hook(lambda g: g * 5.0)
        (y * y).sum().backward()
        assert y.grad.tolist() == [60.0]
        alive = weakref.ref(y)
        del y
        assert alive() is None
    finally:
        gc.enable()
    with pytest.raises(AutogradError, match="never gets a gradient"):
        tensor([1.0]).retain_grad()


def test_gradient_of_a_constant_operand_is_none():
    x, c = leaf(1.0), tensor([2.0], dtype="float64")
    (x * c).sum().backward()

    assert c.grad is None
    assert not x.detach().requires_grad
    assert x.detach().is_leaf
