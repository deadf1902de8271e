"""Diagonals are views, of which each shape is prepared once."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 1), (5, 1), (0, 3)])
@pytest.mark.parametrize("offset", [-6, -1, 0, 1, 2])
def test_diagonals_of_every_layout(shape: tuple[int, int], offset: int) -> None:
    array = np.arange(float(shape[0] * shape[1])).reshape(shape)
    for _ in range(2):  # the second one is prepared
        x = jg.tensor(array)
        for ours, theirs in ((x, array), (x.T, array.T), (x[:, ::2], array[:, ::2]), (x[1:], array[1:])):
            assert np.array_equal(jg.diagonal(ours, offset).numpy(), np.diagonal(theirs, offset))


def test_changes_through_a_diagonal() -> None:
    for _ in range(2):
        x = jg.zeros((3, 3))
        d = jg.diagonal(x)
        d += 1.0
        assert x.tolist() == np.eye(3).tolist()
        x[1, 1] = 5.0
        assert d.tolist() == [1.0, 5.0, 1.0]


def test_gradients_of_diagonals() -> None:
    for _ in range(2):
        x = jg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
        (jg.diagonal(x, 1) * jg.tensor([2.0, 3.0])).sum().backward()
        assert x.grad.tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]


def test_squeezed_axes_are_those_of_length_one() -> None:
    for _ in range(2):
        x = jg.zeros((1, 3, 1))
        assert [x.squeeze(0).shape, x.squeeze(1).shape, x.squeeze(-1).shape] == [(3, 1), (1, 3, 1), (1, 3)]
