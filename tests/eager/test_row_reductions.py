"""Sums, maxima and minima over the last axes by kernels of rows: which they are, and that nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends import eager_rows
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY
from jitgrad.eager import row_programs
from jitgrad.eager.row_programs import RowProgram
from jitgrad.eager.row_reductions import reduces_rows

# shapes that no other test plans
SHAPES = [(), (1,), (43,), (9, 1), (1, 9), (43, 9), (3, 1031), (2, 3, 59), (2, 2, 5, 7), (600, 701)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RowProgram]]:
    programs: list[RowProgram] = []

    def maker(program: RowProgram) -> Any:
        programs.append(program)
        return eager_rows.compile_rows(program)

    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    monkeypatch.setattr(row_programs, "_USES", 0)
    monkeypatch.setattr(row_programs._Registered, "maker", staticmethod(maker))
    row_programs.kernel_of.cache_clear()
    for name in ("sum", "max", "min"):
        REGISTRY[name].plans.clear()
    yield programs
    row_programs.kernel_of.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reductions_have_the_bits_of_numpy(name: str, dtype: str, made: list[RowProgram]) -> None:
    function, reference = getattr(jg, name), getattr(np, name)
    for shape in SHAPES:
        x = np.asarray(np.random.default_rng(0).normal(size=shape), dtype)
        x[x > 2.2] = np.nan
        arrays = [x, np.asfortranarray(x), x[..., ::-1], np.broadcast_to(x[..., :1], x.shape)] if shape else [x]
        axes = [None, -1, 0, *([(-2, -1)] if len(shape) > 1 else [])] if shape else [None]
        for array in arrays:
            for axis in axes:
                for _ in range(2):
                    result = function(jg.asarray(array), axis).numpy()
                expected = np.asarray(reference(array, axis))
                assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_array_equal(result, expected)
    assert [[step.op.name for step in program.steps] for program in made] == [[name]]  # one, of all sizes


def test_what_is_not_along_rows_is_numpys() -> None:
    total, x = REGISTRY["sum"], Aval((3, 4, 5), np.dtype("f4"))
    assert reduces_rows(total, x, {"axis": (1, 2)})
    assert reduces_rows(total, x, {"axis": (0, 1, 2)})
    for axis in [(0,), (1,), (0, 2), (0, 1), ()]:
        assert not reduces_rows(total, x, {"axis": axis})
    for shape, dtype in [((3, 0), "f4"), ((3,), "f2"), ((3,), "i4"), ((3,), "c8")]:
        assert not reduces_rows(total, Aval(shape, np.dtype(dtype)), {"axis": (len(shape) - 1,)})
    assert not reduces_rows(REGISTRY["prod"], x, {"axis": (2,)})  # NumPy multiplies one after the other
