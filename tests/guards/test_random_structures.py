"""Compiled functions follow every change of random nested structures that they read."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import jitgrad as jg
from tests.guards.random_structures import change, program


@pytest.mark.parametrize("seed", range(60))
def test_no_change_of_a_structure_is_missed(seed: int) -> None:
    source, function, root = program(seed)
    linecache.cache[f"<structure {seed}>"] = (len(source), None, source.splitlines(True), f"<structure {seed}>")
    compiled = jg.jit(function, check="off", backend="python")
    rng, x = np.random.default_rng(seed), jg.ones((2,))
    for _ in range(6):
        expected = function(x).tolist()
        assert compiled(x).tolist() == expected, source
        assert compiled(x).tolist() == expected, source
        change(root, rng)
