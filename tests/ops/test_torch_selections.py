"""Elements chosen and combined by place, and shapes changed in place: what torch has and NumPy has not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, ShapeError, TraceError
from tests.agreement import assert_same_as_torch

X = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [2.0, -1.0, 1.5]])
PLACES = np.array([[0, 0, 1], [2, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_products_at_places_do_not_divide_by_zero(include_self: bool):
    """One factor 0: only it has a gradient; two: none has one."""
    assert_same_as_torch(
        lambda m, x, i, y: m.scatter_reduce(x, 0, i, y, "prod", include_self=include_self), X + 1.0, PLACES, X
    )


def test_products_at_places_have_second_gradients():
    assert jg.gradgradcheck(
        lambda x, y: jg.scatter_reduce(x, 0, jg.tensor(PLACES), y, "prod"),
        (jg.tensor(X + 2.5, requires_grad=True), jg.tensor(X.T - 3.5, requires_grad=True)),
    )


def test_positions_of_a_fixed_number_are_compiled():
    f = jg.jit(lambda x: jg.nonzero_static(x, size=6))

    assert f(jg.tensor(X > 0)).tolist() == [[0, 0], [0, 1], [1, 2], [2, 0], [2, 2], [-1, -1]]
    assert f(jg.tensor(X > 2)).tolist() == [[1, 2]] + [[-1, -1]] * 5
    assert jg.nonzero_static(jg.tensor(X), size=2, fill_value=9).tolist() == [[0, 0], [0, 1]]
    assert jg.nonzero_static(jg.zeros((0, 2)), size=1).tolist() == [[-1, -1]]


def test_a_shape_changes_in_place():
    x = jg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    row = x.view(-1)

    assert x.unsqueeze_(1) is x and x.shape == (2, 1, 3)
    assert x.squeeze_().t_().shape == (3, 2)
    x[0, 1] = 40.0
    assert row.tolist() == [1.0, 2.0, 3.0, 40.0, 5.0, 6.0]
    assert row.resize_(2).tolist() == [1.0, 2.0]
    x.resize_(3, 2)[0, 0] = 10.0  # of the same shape: still a view
    assert row.tolist() == [10.0, 2.0]


def test_copies_share_no_memory():
    x = jg.tensor([[1.0, 2.0]])
    copies = [jg.t_copy(x), jg.view_copy(x, (2,)), *jg.unbind_copy(x, 1), *jg.split_copy(x, 1, dim=1), jg.slice_copy(x, 1, 0, 1)]
    x.zero_()

    assert [y.tolist() for y in copies] == [[[1.0], [2.0]], [1.0, 2.0], [1.0], [2.0], [[1.0]], [[2.0]], [[1.0]]]


def test_fills_have_their_distributions():
    jg.manual_seed(0)
    x = jg.zeros(20000, dtype=jg.float64)

    assert abs(x.geometric_(0.25).mean().item() - 4.0) < 0.1 and x.min().item() == 1.0
    assert abs(np.log(x.log_normal_(1.0, 0.5).numpy()).std() - 0.5) < 0.02
    assert abs(np.median(x.cauchy_(3.0, 2.0).numpy()) - 3.0) < 0.1
    assert jg.zeros(4, dtype=jg.int64).geometric_(0.5).dtype == np.int64


def test_shape_methods_that_change_nothing_are_compiled():
    def unchanged(x: Any) -> Any:
        y = x * 2.0
        return y.transpose_(1, 1).squeeze_().swapaxes_(0, 0).resize_(3, 3)[0].t_()

    assert jg.jit(unchanged, check="off")(jg.tensor(X)).tolist() == unchanged(jg.tensor(X)).tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: jg.put(x, jg.tensor([0.0]), jg.ones(1)), DtypeError, "must be of integers"),
        (lambda x: jg.put(x, jg.tensor([0, 1]), jg.ones(1)), ShapeError, "2 places and 1 elements"),
        (lambda x: jg.index_reduce(x, 0, jg.tensor([0]), x[:1], "sum"), ArgumentError, "prod, mean, amax, amin, got 'sum'"),
        (lambda x: jg.split_with_sizes(x, [1, 1]), ArgumentError, r"sizes \[1, 1\] do not add up to axis 0"),
        (lambda x: jg.mode(x[:0], 0), ShapeError, "empty axis"),
        (lambda x: jg.unravel_index(jg.tensor([1]), (-1, 2)), ArgumentError, "negative"),
        (lambda x: jg.histc(x, 0), ArgumentError, "at least one bin"),
        (lambda x: jg.histogram(jg.tensor([1, 2]), 3), DtypeError, "bincount take integers"),
        (lambda x: jg.histogramdd(x, [1, 2]), ArgumentError, "2 bins and 3 ranges for points of 3 axes"),
        (lambda x: x.resize_(10), ArgumentError, "1 elements would have no value; make a new tensor"),
        (lambda x: (x.requires_grad_() * 2.0).t_(), AutogradError, "assign the result of t"),
        (lambda x: jg.jit(lambda y: (y * 2.0).unsqueeze_(0))(x), TraceError, "assign the result of unsqueeze"),
        (lambda x: jg.jit(lambda y: (y * 2.0).t_())(x), TraceError, "the order of their axes; assign the result of t"),
        (lambda x: jg.jit(lambda y: y.transpose_(0, 1))(x), TraceError, "assign the result of transpose"),
        (lambda x: jg.jit(lambda y: (y[None] * 2.0).swapaxes_(1, 2))(x), TraceError, "assign the result of swapaxes"),
        (lambda x: x.geometric_(1.5), ArgumentError, "p must be between 0 and 1"),
        (lambda x: x.sum_to_size(2, 3), ArgumentError, "no broadcast of the shape"),
        (lambda x: jg.as_strided_scatter(x, jg.ones(2), [2], [9]), ArgumentError, "lead out of the 9 elements"),
        (lambda x: jg.gradient(x, spacing=[1.0]), ArgumentError, "1 spacings for 2 axes"),
    ],
)
def test_what_is_refused_says_why(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call(jg.tensor(X))
