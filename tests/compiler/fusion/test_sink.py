"""Ops that only a later kernel needs are computed there, beside what it reads in any case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.ir import TraceNode
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)


def tensor(*shape: int, dtype: str = "f8") -> jg.Tensor:
    return jg.tensor(R.standard_normal(shape).astype(dtype))


def kernels(function: Any, *args: Any) -> list[TraceNode]:
    graph = jit(function, check="off").graph(*args, stage="fuse")
    return [node for node in graph.nodes if node.op.name == "fused"]


def written(function: Any, *args: Any) -> list[int]:
    """How many arrays each kernel writes."""
    return [len(node.outs) for node in kernels(function, *args)]


def reaction(u: Any, v: Any) -> Any:
    """Steps whose next one reads ``4 * u`` beside ``u`` at offsets."""
    def laplacian(a: Any) -> Any:
        return jg.roll(a, 1, 0) + jg.roll(a, -1, 0) + jg.roll(a, 1, 1) + jg.roll(a, -1, 1) - 4 * a

    for _ in range(3):
        both = u * v * v
        u, v = u + 0.16 * laplacian(u) - both + 0.03 * (1 - u), v + 0.08 * laplacian(v) + both - 0.1 * v
    return u, v


def test_the_multiples_that_the_next_step_reads(same: Any) -> None:
    u, v = tensor(40, 48), tensor(40, 48)

    assert written(reaction, u, v) == [2, 2, 2]
    same(reaction, u, v)


def layer(x: Any, w: Any, b: Any) -> Any:
    h = x @ w + b
    return (jg.tanh(h) @ w * jg.sigmoid(h)).sum()


@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values_and_gradients_on_both_sides_of_a_product(same: Any, dtype: str) -> None:
    x, w, b = tensor(20, 33, dtype=dtype), tensor(33, 33, dtype=dtype), tensor(33, dtype=dtype)

    limit = 1e-4 if dtype == "f4" else 1e-12
    same(jg.value_and_grad(layer, (0, 1, 2)), x, w, b, rtol=limit, atol=limit)


def test_the_derivative_of_an_activation_is_computed_in_the_backward_pass() -> None:
    """``1 - tanh(h)**2`` needs nothing but ``tanh(h)``, which the product reads."""
    def loss(x: Any, w: Any) -> Any:
        return jg.sin(jg.tanh(x) @ w).sum()

    assert written(jg.grad(loss), tensor(30, 40), tensor(40, 50)) == [1, 1, 1]


def test_a_narrow_value_of_wide_ones_stays() -> None:
    """A byte is less to write and to read than the 8 of the sum, which that kernel does not read."""
    def f(x: Any, y: Any, w: Any) -> Any:
        s = x + y
        return jg.where(s > 1.0, jg.exp(s) @ w, 0.0)

    first, second = kernels(f, tensor(30, 40), tensor(30, 40), tensor(40, 40))

    assert sorted(out.aval.dtype.name for out in first.outs) == ["bool", "float64"]
    assert len(second.ins) == 2


def test_results_of_the_program_and_what_two_kernels_read_stay() -> None:
    def f(x: Any, w: Any) -> Any:
        y = jg.exp(x)
        double, triple = 2.0 * y, 3.0 * y
        return jg.sin(y @ w) + double, triple, jg.cos(jg.exp(y @ w) @ w) * double

    counts = written(f, tensor(30, 30), tensor(30, 30))

    assert counts[0] == 3, counts


def test_odd_shapes(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        y = jg.exp(x)
        return jg.sin(y @ w) * (1.0 - y * y), (1.0 / y).sum(0) * (y @ w)

    for rows in (0, 1, 7):
        same(f, tensor(rows, 5), tensor(5, 5), rtol=1e-12)
    same(f, jg.flip(tensor(9, 5), (0, 1)).mT.mT, tensor(5, 5).mT, rtol=1e-13)
