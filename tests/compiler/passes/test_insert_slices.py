"""Sums of padded parts are written in one array, once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.passes.slices import uncovered
from jitgrad.jit.decorator import jit

R = np.random.default_rng(0)


def turns(x: Any) -> Any:
    return (x[::2] ** 2).sum() + (x[1::2] ** 3).sum()


def test_parts_that_take_turns_are_written_in_place(same: Any, steps_of: Any) -> None:
    x = jg.tensor(R.standard_normal((9, 5)))

    assert steps_of(same(jg.grad(turns), x), x) == ["kernel"] * 2


@pytest.mark.parametrize("second", [slice(0, None, 3), slice(4, None, 2), slice(7, 1, -2), slice(7, 1, -3)])
def test_parts_that_may_meet_are_added(second: slice, same: Any) -> None:
    x = jg.tensor(R.standard_normal((9, 5)))

    same(jg.grad(lambda x: (x[::2] ** 2).sum() + (x[second] ** 3).sum()), x, rtol=1e-15)
    same(jg.grad(lambda x: (x[1::2] ** 2).sum() + (x[second] ** 3).sum()), x, rtol=1e-15)


def stencil(u: Any) -> Any:
    inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
    return (inner**2).sum()


def variation(u: Any) -> Any:
    return jg.abs(u[1:] - u[:-1]).sum() + jg.abs(u[:, 1:] - u[:, :-1]).sum()


@pytest.mark.numba
@pytest.mark.parametrize("shape", [(3, 3), (5, 7), (150, 190)])
def test_gradients_of_stencils(shape: tuple[int, int], same: Any) -> None:
    u = jg.tensor(np.round(R.standard_normal(shape), 1))

    same(jg.grad(stencil), u, rtol=1e-13, atol=1e-13)
    same(jg.grad(variation), u)
    same(variation, u, rtol=1e-13)
    same(lambda u: (jg.pad(u * 2.0, ((1, 2), (0, 3))), jg.pad(u, 1) + jg.pad(u, 1), jg.pad(u[:0], 2)), u)


def test_one_array_of_zeros_serves_all_places() -> None:
    graph = jit(jg.grad(stencil), check="off").graph(jg.ones((64, 80)), stage="merge_pads")

    assert [node.out.aval.shape for node in graph.nodes if node.op.name == "place"] == [(66, 82)]


def test_places_far_apart_do_not_share() -> None:
    graph = jit(jg.grad(lambda x: ((x[:8] + x[8:]) ** 2).sum()), check="off").graph(jg.ones((16,)), stage="merge_pads")

    assert [node.op.name for node in graph.nodes].count("place") == 2


def test_only_the_border_is_zeroed() -> None:
    everything = [((0, 1, 200), (0, 1, 300))]

    assert uncovered((200, 300), [((1, 1, 198), (0, 1, 297))]) == [
        ((0, 1, 1), (0, 1, 300)),
        ((199, 1, 1), (0, 1, 300)),
        ((1, 1, 198), (297, 1, 3)),
    ]
    assert uncovered((200, 300), [((0, 1, 100), (0, 1, 300)), ((100, 1, 100), (0, 1, 300))]) == []
    assert uncovered((200, 300), [((0, 2, 100), (0, 1, 300))]) == everything
    assert uncovered((200, 300), [((0, 1, 10), (0, 1, 300)), ((190, 1, 10), (0, 1, 300))]) == everything
    assert uncovered((200, 300), [((0, 1, 0), (0, 1, 300))]) == everything
    assert uncovered((4, 5), [((1, 1, 3), (0, 1, 5))]) == [((0, 1, 4), (0, 1, 5))]


def test_sums_over_shapes_turned_round_are_kernels_of_their_own(steps_of: Any) -> None:
    assert steps_of(jit(variation, check="off"), jg.ones((40, 41))) == ["kernel"] * 2


def discounted(v: Any) -> Any:
    total, last = 0.0, 0.0
    for t in range(v.shape[0] - 1, 0, -1):
        last = v[t] * 0.9 - v[t - 1] + 0.8 * last
        total = total + (last**2).sum()
    return total


@pytest.mark.parametrize("form", [lambda v: v, lambda v: jg.concat([v[:3], v[3:]]) * 1.5], ids=["rows", "joined"])
def test_rows_read_twice_are_written_to_one_whole(form: Any, same: Any) -> None:
    v = jg.tensor(R.standard_normal((9, 4)))
    gradient = jg.grad(lambda v: discounted(form(v)))

    graph = jit(gradient, check="off").graph(v, stage="insert_slices")
    same(gradient, v, rtol=1e-14)

    wholes = [node for node in graph.nodes if node.op.name == "insert_slices"]
    assert max(len(node.ins) for node in wholes) == v.shape[0]
    assert len(wholes) <= 3, "no sum of some of the rows is written"


def test_a_sum_of_parts_that_is_read_by_itself_is_written_too(same: Any) -> None:
    def program(v: Any) -> Any:
        some = jg.pad(v[:2] * 2.0, ((0, 4), (0, 0))) + jg.pad(v[:2] * 3.0, ((0, 4), (0, 0)))
        more = some + jg.pad(v[:3] * 5.0, ((3, 0), (0, 0)))
        return some, more, more + more, some.sum()

    same(program, jg.tensor(R.standard_normal((6, 4))), rtol=1e-14)


def layers(x: Any) -> Any:
    """Each row but the ends is read twice, with one value as the gradient of both readings."""
    total = x[0] * 0.0
    for k in range(len(x) - 1):
        total = total + jg.exp(x[k] + x[k + 1])
    return total.sum()


def test_rows_that_a_loop_reads_twice_are_written_once(same: Any) -> None:
    x = jg.tensor(R.standard_normal((12, 2000)) * 0.1)
    gradient = jg.grad(layers)

    same(gradient, x, rtol=1e-13)
    explanation = jit(gradient, check="off").explain(x)
    assert explanation.bytes_written <= 4 * x.nbytes  # not all zeros around each of the 22 rows
    graph = jit(gradient, check="off").graph(x, stage="insert_slices")
    assert [node.op.name for node in graph.nodes if node.op.name in ("place", "insert_slices")] == ["insert_slices"]


def test_places_that_overlap_share_zeros_beside_rows_that_do_not() -> None:
    gradient = jg.grad(lambda x: layers(x) + ((x[1:] + x[:-1]) ** 3).sum())
    graph = jit(gradient, check="off").graph(jg.ones((12, 200)), stage="merge_pads")
    places = [node for node in graph.nodes if node.op.name == "place"]

    assert [node.out.aval.shape for node in places if node.ins[0].aval.shape == (11, 200)] == [(13, 200)]
