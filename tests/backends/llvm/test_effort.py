"""How much LLVM does for code: all passes for loops over arrays, few for a handful of numbers, and no text twice."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.base import KernelCache
from jitgrad.backends.cpu import backend
from jitgrad.backends.llvm import target
from jitgrad.backends.llvm.effort import FEW_STEPS, LOOPS, SMALL_LOOPS, TILES, Effort
from jitgrad.backends.llvm.kernel_frontend import source_to_llvm
from jitgrad.backends.targets import find_target

pytestmark = pytest.mark.numba

TILED = """def kernel(x, y, n, start, stop):
    t = scratch_f32(4096)
    u = scratch_f64(4096)
    transpose_rows_in(t, x, n, n, stop)
    transpose_rows_in(t, at(x, n), n, n, stop)
    transpose_rows_in(u, y, n, n, stop)
    transpose_rows_out(at(x, n), t, n, n, stop)
"""


def efforts(monkeypatch: pytest.MonkeyPatch, function: Any, *args: Any) -> list[tuple[str, Effort]]:
    """The functions that a program for ``args`` consists of, and the effort for each."""
    found, compile_entry = [], backend.compile_entry

    def watched(source: str, entry: str, *args: Any, **options: Any) -> Any:
        found.append((entry, options["effort"]))
        return compile_entry(source, entry, *args, **options)

    cpu = find_target("cpu")
    monkeypatch.setattr(backend, "compile_entry", watched)
    monkeypatch.setattr(cpu, "_kernels", KernelCache(cpu.load))  # other programs end with the same epilogue
    jg.jit(function, check="off")(*args)
    return sorted(found, key=lambda pair: pair[0])


def test_transposes_of_one_dtype_are_one_function() -> None:
    text, _ = source_to_llvm(TILED, "kernel", ["f32*", "f64*", "i64"], {}, 256)

    defined = re.findall(r'^define internal void @"(transpose\w+\.\w+)"', text, re.MULTILINE)
    assert sorted(defined) == ["transpose_rows_in.f32", "transpose_rows_in.f64", "transpose_rows_out.f32"]
    assert text.count('call void @"transpose_rows_in.f32"') == 2


def test_transposes_keep_the_vector_width_of_their_kernel() -> None:
    text, _ = source_to_llvm(TILED, "kernel", ["f32*", "f64*", "i64"], {}, 256)

    transposes = re.findall(r'^define internal void @"transpose[^{]*', text, re.MULTILINE)
    assert len(transposes) == 3
    assert all('"prefer-vector-width"="256"' in head for head in transposes)


def test_numbers_of_blocks_are_merged_with_little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jg.tensor(np.ones((71, 300), np.float32))

    assert efforts(monkeypatch, lambda x: jg.tanh(x + 0.125).sum(), x) == [("epilogue", FEW_STEPS), ("kernel", LOOPS)]


def test_columns_of_blocks_are_merged_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jg.tensor(np.ones((710, 300), np.float32))

    assert ("epilogue", SMALL_LOOPS) in efforts(monkeypatch, lambda x: jg.tanh(x + 0.375).sum(axis=0), x)


@pytest.mark.parametrize(("effort", "level"), [(LOOPS, 3), (SMALL_LOOPS, 3), (TILES, 3), (FEW_STEPS, 0)])
def test_the_level_is_that_of_the_machine(effort: Effort, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    levels, machine = [], target._new_machine
    monkeypatch.setattr(target, "_new_machine", lambda level=3: levels.append(level) or machine(level))
    monkeypatch.setattr(target, "_idle_machines", defaultdict(list))

    text = "define void @f() {\n  ret void\n}\n"
    for _ in range(2):  # the second one has the machine of the first
        target.compile_aside(text, [], "f", effort).result()

    assert levels.count(level) == 1
