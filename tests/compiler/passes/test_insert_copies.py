"""Copies that the compiler inserts run as kernels: reshapes of permuted values, and results that alias an input."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg


def array(*shape: int) -> jg.Tensor:
    return jg.tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def heads(x):
    return x.reshape(2, 3, 4).permute_dims((1, 0, 2)).reshape(3, 8)


CASES = {
    "reshape of a permutation": heads,
    "reshape of a computed permutation": lambda x: heads(jg.exp(x * 0.1)),
    "reshape of a broadcast": lambda x: jg.broadcast_to(x[:1], (4, 12)).reshape(-1),
    "reshape of a slice": lambda x: x[:, 2:5].reshape(-1),
    "transposed input": lambda x: x.T,
    "window into an input": lambda x: x[1:, ::-2],
}


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
@pytest.mark.parametrize("name", CASES)
def test_rearranged_values_equal_eager_without_library_calls(name, backend, monkeypatch):
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    f, x = jg.jit(CASES[name]), array(2, 12)

    np.testing.assert_array_equal(f(x).numpy(), f.eager(x).numpy())
    assert f.explain(x).unfused_ops == []


def test_a_copy_joins_the_kernel_that_makes_its_operand():
    f, x = jg.jit(lambda x: jg.exp(x * 0.1).T.reshape(-1)), array(2, 12)

    assert f.explain(x).fused == 1


WRITTEN_OUT = {
    "repeated elements": lambda x: jg.broadcast_to(x.sum(axis=1, keepdims=True), (2, 12)),
    "repeated number": lambda x: jg.full((3,), 2.0) + 0.0 * x[0, 0],
    "an input, computed": lambda x: x * 1.0,
    "positions": lambda x: jg.arange(12),
    "positions, not all": lambda x: jg.arange(24)[::2] + x[0],
    "positions in another shape": lambda x: jg.arange(24).reshape((2, 12)) + x,
    "numbers in a product": lambda x: jg.ones((3, 2)) @ x,
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_what_repeats_or_shows_an_input_is_written_out_by_a_kernel(name):
    f, x = jg.jit(WRITTEN_OUT[name]), array(2, 12)
    f(x)

    np.testing.assert_array_equal(f(x).numpy(), f.eager(x).numpy())
    assert set(f.explain(x).unfused_ops) <= {"matmul"}
    assert not np.shares_memory(f(x).numpy(), x.numpy())


@pytest.mark.numba
@pytest.mark.parametrize("name", ["x.T", "permuted", "cut"])
def test_a_copy_of_what_is_transposed_lies_as_eagers(name):
    f = {
        "x.T": lambda x: x.T * 1.0,
        "permuted": lambda x: jg.permute_dims(x.reshape(2, 3, 4), (2, 0, 1)) * 1.0,
        "cut": lambda x: x[:, 1:].T.clone(),
    }[name]
    compiled, x = jg.jit(f, check="off"), array(2, 12)

    found, eager = compiled(x).numpy(), f(x).numpy()

    assert found.strides == eager.strides and not np.shares_memory(found, x.numpy())
    np.testing.assert_array_equal(found, eager)
