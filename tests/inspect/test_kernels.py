"""kernels: source, lines, bytes, LLVM IR and assembly of every launch."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import BackendError


def array(*shape: int, grad: bool = False) -> jg.Tensor:
    return jg.tensor(np.ones(shape, "f4"), requires_grad=grad)


def test_source_is_python_annotated_with_ops_and_lines():
    (kernel,) = jg.jit(lambda x: jg.tanh(x) * 2).kernels(array(8))

    assert [f.name for f in ast.walk(ast.parse(kernel.source)) if isinstance(f, ast.FunctionDef)] == ["kernel"]
    assert "# tanh  test_kernels.py:" in kernel.source
    assert kernel.ops == ("tanh", "multiply")
    assert str(kernel) == kernel.source


def test_kernels_come_in_the_order_in_which_they_run_forward_first():
    f = jg.jit(lambda x, w: jg.exp(jg.tanh(x) @ w).sum())

    kernels = f.kernels(array(3, 3), array(3, 3, grad=True))

    forward = [k.ops for k in kernels if k.part == "forward"]
    assert forward == [("tanh",), ("exp", "sum")]
    assert [k.part for k in kernels] == sorted((k.part for k in kernels), reverse=True)
    assert any(k.part == "backward" for k in kernels)


def test_a_function_without_gradients_has_one_program():
    assert {k.part for k in jg.jit(lambda x: x + 1).kernels(array(3))} == {"program"}


def test_bytes_are_those_of_the_arrays():
    (kernel,) = jg.jit(lambda x, b: x * b).kernels(array(8, 4), array(4))

    assert (kernel.bytes_read, kernel.bytes_written) == ((32 + 4) * 4, 32 * 4)


def test_kernels_of_equal_structure_keep_their_own_lines():
    def first(x):
        return jg.tanh(x) * 3

    def second(x):
        return jg.tanh(x) * 3

    (a,), (b,) = (jg.jit(f).kernels(array(5)) for f in (first, second))

    assert a.origins != b.origins
    for kernel, function in ((a, first), (b, second)):
        assert [o.line for o in kernel.origins] == [function.__code__.co_firstlineno + 1]
        assert f"test_kernels.py:{function.__code__.co_firstlineno + 1}" in kernel.source


def test_kernels_that_run_as_python_have_no_machine_code():
    (kernel,) = jg.jit(lambda x: x + 1).kernels(array(3))

    with pytest.raises(BackendError, match="JITGRAD_BACKEND=cpu"):
        _ = kernel.llvm
    with pytest.raises(BackendError, match="JITGRAD_BACKEND=cpu"):
        _ = kernel.asm


@pytest.mark.numba
def test_compiled_kernels_show_their_machine_code():
    (kernel,) = jg.jit(lambda x: (x * x).sum()).kernels(array(64))

    assert kernel.llvm.count("define") >= 2  # the loop and the merging of its chunks
    assert "ret" in kernel.asm
    assert kernel.ptx is None
