"""Slices of joined arrays that lie within one part read this part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import jit


def joins_read(function: Any, *arguments: Any) -> int:
    """How many slices still read a joined array."""
    graph = jit(function, check="off").graph(*arguments, stage="read_parts")
    joined = {node.out for node in graph.nodes if node.op.name == "concat"}
    return sum(node.op.name == "slice" and node.ins[0] in joined for node in graph.nodes)


@pytest.mark.parametrize(
    ("index", "left"),
    [
        (np.s_[0:3], 0),  # a whole part
        (np.s_[3:7], 0),
        (np.s_[4:6], 0),
        (np.s_[6:3:-2], 0),
        (np.s_[2:4], 1),  # of two parts
        (np.s_[::3], 1),
        (np.s_[5:5], 1),  # of nothing
    ],
)
def test_slices_of_a_join(index: Any, left: int, same: Any) -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)

    def function(x: Any, y: Any) -> Any:
        return jg.concat([jg.sin(x), y * 2.0])[index] + 1.0

    assert joins_read(function, jg.tensor(x), jg.tensor(y)) == left
    same(function, jg.tensor(x), jg.tensor(y), ulp=4)


def test_parts_of_another_dtype_stay_joined(same: Any) -> None:
    x, y = np.arange(3, dtype=np.float32), np.arange(3.0)

    def function(x: Any, y: Any) -> Any:
        return jg.concat([x, y])[:3] * 2.0

    assert joins_read(function, jg.tensor(x), jg.tensor(y)) == 1
    same(function, jg.tensor(x), jg.tensor(y), ulp=4)


def weighted(x: Any, c: Any) -> Any:
    functions = [x, x * x, jg.sin(x), jg.exp(-x), x + 2.0, 1.0 / (x + 3.0), x * x * x, jg.cos(x)]
    return jg.stack([functions[k % 8] * (1.0 + k) for k in range(c.shape[0])], axis=-1) @ c


@pytest.mark.parametrize("count", [5, 16, Tuning().max_pieces + 1])
def test_stacked_functions_by_weights(count: int, same: Any) -> None:
    x, c = np.linspace(0.0, 1.0, 1000), np.linspace(-1.0, 1.0, count)
    step = jg.value_and_grad(lambda x, c: jg.sum(weighted(x, c) ** 2), argnums=(0, 1))

    same(step, jg.tensor(x), jg.tensor(c), rtol=1e-12)
    if count <= Tuning().max_pieces:
        graph = jit(step, check="off").graph(jg.tensor(x), jg.tensor(c), stage="read_tables")
        assert all(value.aval.shape != (1000, count) for node in graph.nodes for value in node.outs)
