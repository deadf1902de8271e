"""Outer differences are computed again for reductions that need loops of their own, and never written to memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)


def points(*shape: int) -> jg.Tensor:
    return jg.tensor(R.standard_normal(shape))


def distances(x: Any, y: Any) -> Any:
    return ((x[:, None] - y[None]) ** 2).sum(2)


def spread(x: Any, y: Any) -> Any:
    return jg.sqrt(distances(x, y) + 0.1).mean()


def masked(x: Any, y: Any) -> Any:
    d = x[:, None] - y[None]
    return jg.where(d > 0.5, d * 2.0, -d).sum(1).max() + (d * d).max(2).sum() + jg.abs(d).sum(0)[0].sum()


def outer(x: Any, y: Any) -> Any:
    both = x[:, None, :] * y[None, :, :]
    return both.sum(0).max() + both.sum(1).min() + (both * 0.5).max(2).sum()


PROGRAMS = [spread, masked, outer]


def largest_written(function: Any, *args: Any) -> int:
    graph = jit(function, check="off").graph(*args, stage="fuse")
    views = {"slice", "reshape", "broadcast_to", "permute_dims", "expand_dims", "squeeze"}
    return max(out.aval.size for node in graph.nodes if node.op.name not in views for out in node.outs)


@pytest.mark.numba
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shape", [(40, 50, 32), (33, 1, 1024), (40, 40, 31), (3, 2, 4)])
def test_values_and_gradients(program: Any, shape: tuple[int, ...], same: Any) -> None:
    m, n, k = shape
    x, y = points(m, k), points(n, k)

    same(program, x, y, rtol=1e-13)
    same(jg.value_and_grad(program, (0, 1)), x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("program", [spread, outer])
def test_no_outer_array_is_written(program: Any) -> None:
    x, y = points(40, 32), points(50, 32)

    assert largest_written(program, x, y) <= 50 * 40
    if program is spread:
        assert largest_written(jg.value_and_grad(program, (0, 1)), x, y) <= 40 * 50


def test_an_outer_array_that_is_a_result_is_written_once(same: Any) -> None:
    def program(x: Any, y: Any) -> Any:
        d = x[:, None] - y[None]
        return d, d.sum(0), d.sum(1), d.sum(2)

    same(program, points(40, 32), points(50, 32), rtol=1e-13, atol=1e-13)


def test_rows_and_columns_of_two_axes_stay_one_kernel(steps_of: Any) -> None:
    def program(x: Any, y: Any) -> Any:
        d = x[:, None] - y[None]
        return (d * d).sum(0), (d * d).sum(1)

    assert steps_of(jit(program, check="off"), points(300), points(400)) == ["kernel"]


def test_what_costs_much_is_not_computed_again(same: Any) -> None:
    def program(x: Any, y: Any) -> Any:
        e = jg.exp(x[:, None] - y[None])
        return e.sum(0), e.sum(1), e.sum(2)

    assert largest_written(program, points(40, 32), points(50, 32)) == 40 * 50 * 32
    same(program, points(8, 4), points(9, 4), rtol=1e-13)


def histogram(x: Any, centres: Any) -> Any:
    return jg.exp(-10 * (x[:, None] - centres) ** 2).mean(0)


def entropy(x: Any, centres: Any) -> Any:
    h = histogram(x, centres)
    return (h * jg.log(h + 1e-6)).sum()


@pytest.mark.numba
@pytest.mark.parametrize("n", [30, 3, 64])
def test_values_and_gradients_of_what_waits_for_all_rows(n: int, same: Any) -> None:
    x, centres = points(4000), points(n)

    same(jg.value_and_grad(entropy, (0, 1)), x, centres, rtol=1e-11, atol=1e-13)


def test_a_kernel_that_waits_for_all_rows_computes_cheap_elements_again() -> None:
    """Its other operand, an exponential, is written: it costs more than reading few bytes from a cache."""
    x, centres = points(4000), points(40)
    graph = jit(jg.grad(entropy), check="off").graph(x, centres, stage="fuse")
    written = [out for node in graph.nodes for out in node.outs if out.aval.size == 4000 * 40]

    assert len(written) == 1


def test_functions_of_what_no_cache_keeps_are_computed_again() -> None:
    x, centres = points(30_000), points(40)

    assert largest_written(jg.grad(entropy), x, centres) == 30_000


@pytest.mark.numba
def test_a_kernel_behind_a_library_call_computes_cheap_elements_again(same: Any) -> None:
    def program(x: Any, y: Any, w: Any) -> Any:
        near = x[:, None] - y
        return jg.sin(near) @ w * near

    x, y, w = points(300), points(200), points(200, 200)
    graph = jit(program, check="off").graph(x, y, w, stage="fuse")
    assert [len(node.outs) for node in graph.nodes if node.op.name == "fused"] == [1, 1]
    same(program, x, y, w, rtol=1e-12, atol=1e-12)


def test_users_of_one_kernel_read_the_same_elements() -> None:
    def program(x: Any, y: Any) -> Any:
        near = x[:, None] - y
        return jg.sin(near).sum(1), jg.cos(near).sum(1), near.sum(1)

    (kernel,) = [n for n in jit(program, check="off").graph(points(300), points(200), stage="fuse").nodes if n.op.name == "fused"]
    assert [node.op.name for node in kernel.attr("body").nodes].count("subtract") == 1
