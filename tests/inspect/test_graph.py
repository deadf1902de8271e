"""graph: the program after each pass."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.pipeline import PASSES
from jitgrad.core.errors import ArgumentError
from jitgrad.inspect.stages import stages


def array(*shape: int, grad: bool = False) -> jg.Tensor:
    return jg.tensor(np.ones(shape, "f4"), requires_grad=grad)


def unused(x):
    jg.exp(x)
    return jg.tanh(x) + jg.tanh(x)


def test_the_trace_is_what_the_function_did():
    graph = jg.jit(unused).graph(array(3))

    assert [node.op.name for node in graph.nodes] == ["exp", "tanh", "tanh", "add"]


def test_later_stages_are_what_the_passes_made_of_it():
    f, x = jg.jit(unused), array(3)

    assert "exp" not in str(f.graph(x, stage="eliminate_dead"))
    assert str(f.graph(x, stage="eliminate_dead.2")).count("tanh(") == 1
    assert [node.op.name for node in f.graph(x, stage="fuse").nodes] == ["fused"]


def test_every_pass_has_a_stage_in_order():
    found = list(stages(jg.jit(unused).lookup(array(3))))

    assert found[0] == "trace"
    assert [name.split(".")[0] for name in found[1:]] == [step.name for step in PASSES]


def test_a_differentiable_function_shows_forward_and_backward():
    f, x = jg.jit(lambda x: jg.tanh(x).sum()), array(3, grad=True)

    joint, backward = f.graph(x, stage="joint"), f.graph(x, stage="backward")

    assert len(joint.inputs) == len(backward.inputs) == 2  # x and the incoming gradient
    assert len(joint.outputs) == 2 and len(backward.outputs) == 1
    assert [node.op.name for node in f.graph(x, stage="backward.fuse").nodes] == ["fused"]


def test_a_wrong_stage_is_answered_with_the_right_ones():
    with pytest.raises(ArgumentError, match=r"no stage 'fusion'; this function has trace, .*eliminate_dead\.2, .*fuse"):
        jg.jit(unused).graph(array(3), stage="fusion")


def test_looking_does_not_run_the_function():
    f, x = jg.jit(unused), array(3)

    f.graph(x), f.kernels(x), f.explain(x)

    assert f.cache_info().calls == 0 and f.cache_info().traces == 1
