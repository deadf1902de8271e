"""Tapes list the recorded ops; print_graph lists the history of a tensor."""

from __future__ import annotations

import threading
import weakref

import pytest

import jitgrad.ops.methods  # noqa: F401 - attaches operators to Tensor
from jitgrad.autograd import Tape, no_grad, print_graph
from jitgrad.core.errors import AutogradError, GraphFreedError
from jitgrad.jit.decorator import jit
from jitgrad.ops.creation import tensor
from jitgrad.ops.trigonometric import tanh


def leaf(*values):
    return tensor(list(values), requires_grad=True)


def test_tape_lists_ops_with_avals_and_user_lines():
    x = leaf(1.0, 2.0)
    with Tape() as tape:
        y = tanh(x * 2.0)
        loss = y.sum()
    tape.backward(loss)

    lines = str(tape).splitlines()
    assert lines[0] == "Tape of 3 ops"
    assert lines[1] == "leaf0: f32[2]"
    assert lines[2].startswith("%0: f32[2] = multiply(leaf0, number)  # test_tape.py:")
    assert lines[3].startswith("%1: f32[2] = tanh(%0)  # test_tape.py:")
    assert lines[4].startswith("%2: f32[] = sum(%1, axis=(0,))  # test_tape.py:")
    assert [e.op for e in tape.entries] == ["multiply", "tanh", "sum"]
    assert x.grad.shape == (2,)
    assert repr(tape) == "<Tape of 3 ops>"


def test_tapes_nest_and_see_only_their_block():
    x = leaf(1.0)
    with Tape() as outer:
        y = x * 2.0
        with Tape() as inner:
            z = y * 3.0
        z = z + 1.0
    z * 5.0

    assert [e.op for e in inner.entries] == ["multiply"]
    assert [e.op for e in outer.entries] == ["multiply", "multiply", "add"]
    assert str(inner.entries[0].operands[0]) == "f32[1]"  # computed before the inner tape


def test_tape_refuses_a_loss_from_elsewhere():
    x = leaf(1.0)
    elsewhere = (x * 2.0).sum()
    with Tape() as tape:
        (x * 3.0).sum()

    with pytest.raises(AutogradError, match="was not computed on this tape, which holds 2 ops"):
        tape.backward(elsewhere)
    elsewhere.backward()
    assert x.grad.tolist() == [2.0]


def test_tape_turns_recording_on_and_restores_the_mode():
    x = leaf(1.0)
    with no_grad():
        with Tape() as tape:
            loss = (x * 2.0).sum()
        assert not (x * 2.0).requires_grad
    tape.backward(loss)

    assert x.grad.tolist() == [2.0]


def test_tape_belongs_to_its_thread():
    x = leaf(1.0)
    with Tape() as tape:
        other = threading.Thread(target=lambda: x * 2.0)
        other.start()
        other.join()

    assert len(tape) == 0
    assert str(tape) == "Tape of 0 ops"


def test_tape_lists_a_compiled_call_and_not_its_trace():
    step = jit(lambda x: tanh(x * 2.0), check="off", backend="python")
    for _ in range(2):
        with Tape() as tape:
            step(leaf(1.0, 2.0))
        assert len(tape.entries) == 1


def test_tape_keeps_no_graph_alive():
    x = leaf(1.0)
    with Tape() as tape:
        y = tanh(x)
        node = weakref.ref(y.grad_fn)
        del y

    assert node() is None
    assert len(tape) == 1


def test_dot_has_every_op_leaf_and_edge():
    x, w = leaf(1.0), leaf(2.0)
    with Tape() as tape:
        ((x * w) + x).sum()
    dot = tape.to_dot()

    assert dot.startswith("digraph tape {")
    assert dot.endswith("}")
    edges = [line.split(" [")[0].strip() for line in dot.splitlines() if "->" in line]
    assert edges == ["leaf0 -> n0", "leaf1 -> n0", "n0 -> n1", "leaf0 -> n1", "n1 -> n2"]


def test_print_graph_prints_the_history_only(capsys):
    x = leaf(1.0)
    y = x * 2.0
    tanh(y)
    loss = (y + x).sum()
    print_graph(loss)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  #")[0] for line in lines] == [
        "leaf0: f32[1]",
        "%0: f32[1] = multiply(leaf0, number)",
        "%1: f32[1] = add(%0, leaf0)",
        "%2: f32[] = sum(%1, axis=(0,))",
        "return %2",
    ]
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(GraphFreedError):
        print_graph(loss)
    with pytest.raises(AutogradError, match="has no history"):
        print_graph(x)
