"""The first-call check: rounding passes, also where an element consists of nothing else; a wrong element does not."""

from __future__ import annotations

import numpy as np

import jitgrad as jg
from jitgrad import check
from jitgrad.jit import jit


def test_elements_that_are_rounding_alone_are_known():
    """The sign of a cancellation, as the first step of Adam takes it."""
    x = np.linspace(0.5, 4.0, 64, dtype=np.float32)
    y = np.where(x > 2, x - 1, x)

    graph = jit(lambda x, y: (x - y) / (jg.abs(x - y) + 1e-17), check="off").lookup(x, y).traced.graph
    exact = check.in_float64(graph, [x, y])
    moves = check.sensitivity(graph, [x, y], exact)[0]

    assert np.max(moves[x < 2]) > 0.5
    assert np.max(moves[x > 2]) < 1e-6


def test_a_wrong_element_is_found_beside_one_that_is_rounding():
    exact = np.array([1.0, 0.0])
    moves = np.array([0.0, 1.0])
    eager = np.array([1.0, 0.5], np.float32) * np.float32(1 + 1e-6)

    right = np.array([1.0, -1.0], np.float32)
    wrong = np.array([9.5, 0.5], np.float32)
    assert check.judge("result", right, np.array([1.0, 1e-6], np.float32), exact) is not None
    assert check.judge("result", right, np.array([1.0, 1e-6], np.float32), exact, moves) is None
    assert check.judge("result", wrong, eager, exact, moves) is not None
