"""Short rows: how many vectors at a time their loops take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cpu.row_vectors import row_vectors
from jitgrad.backends.llvm.kernel_frontend import source_to_llvm
from jitgrad.compiler.lowering.kernel_ir import KernelForm
from jitgrad.jit.decorator import jit
from jitgrad.runtime.executor.launch import Launch

RNG = np.random.default_rng(0)
LINE = 64


@pytest.mark.parametrize(
    ("n", "itemsize", "expected"),
    [
        (16, 4, None),  # one vector
        (64, 4, None),  # four, nothing remains
        (65, 4, None),
        (100, 4, 2),  # four vectors, half vectors and four elements would be 64, 32 and 4
        (48, 4, 1),
        (50, 8, 2),
        (40, 8, 1),
        (20, 8, None),  # half vectors after two whole ones: layer norm took 1.16 times as long
        (1000, 4, None),  # the rest of a long row does not matter
        (1000, 8, None),
    ],
)
def test_fewer_vectors_where_much_of_a_row_would_remain(n: int, itemsize: int, expected: int | None) -> None:
    assert row_vectors(n, itemsize, LINE) == expected


def softmax_and_more(x: Any, w: Any) -> Any:
    p = jg.softmax(x * w, 1)
    return p, p.max(axis=1), jg.relu(x - w)


def vectors_of(function: Any, *shapes: tuple[int, ...], dtype: str = "f") -> list[int | None]:
    """For every kernel of ``function`` over rows."""
    program = jit(function).lookup(*[jg.tensor(np.ones(s, dtype)) for s in shapes]).program
    schedules = [s.kernel.schedule for s in program.steps if isinstance(s, Launch)]
    return [s.row_vectors for s in schedules if s.form is KernelForm.ROWS]


def test_loops_over_rows_follow_their_length() -> None:
    assert set(vectors_of(softmax_and_more, (40, 100), (100,))) == {2}
    assert set(vectors_of(softmax_and_more, (40, 128), (128,))) == {None}
    assert set(vectors_of(softmax_and_more, (40, 50), (50,), dtype="d")) == {2}


def test_loops_over_no_rows_or_over_integers_stay_as_they_are() -> None:
    assert vectors_of(lambda x: jg.tanh(x) * 2, (40, 100)) == [None]
    assert set(vectors_of(lambda x, w: (x + w, (x * w).sum(axis=1)), (40, 100), (100,), dtype="i")) == {None}
    assert set(vectors_of(lambda x: jg.tanh(jg.pad(x, ((1, 1), (1, 1)))).sum(axis=1), (40, 98))) == {None}  # read at offsets


def interleaved(row_vectors: int | None, bits: int) -> list[str]:
    """The interleave counts in the IR of a kernel, those of outer loops first."""
    source = """
def kernel(x0, y0, n, start, stop):
    for r in range(start, stop):
        for j in range(n):
            y0[r * n + j] = x0[j]
"""
    text, _ = source_to_llvm(source, "kernel", ["f32*", "f32*", "i64"], {}, bits, row_vectors=row_vectors)
    return sorted(re.findall(r'interleave.count", i32 (\d)', text))


def test_innermost_loops_take_them_where_vectors_are_so_long() -> None:
    assert interleaved(2, 512) == ["2", "4"]
    assert interleaved(2, 256) == interleaved(None, 512) == ["4"]


@pytest.mark.numba
@pytest.mark.parametrize("n", [17, 20, 33, 36, 48, 50, 100])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_values_in_machine_code(n: int, dtype: str, same: Any) -> None:
    x, w = (jg.tensor(RNG.normal(size=s).astype(dtype)) for s in ((70, n), (n,)))
    same(softmax_and_more, x, w, rtol=1e-5 if dtype == "f" else 1e-13)
