"""Rows shorter than a vector: transposed tiles of rows, with every kind of statement, stride and remainder."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.llvm.tile_sizes import LANES, SHORT_ROW
from jitgrad.compiler.lowering.kernel_ir import KernelForm
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.runtime.executor.launch import Launch
from tests.machine_code import CPUS, needs_x86, program_assembly

RNG = np.random.default_rng(0)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def short_row_kernels(function: JitFunction, *args: Any) -> list[bool]:
    """For every kernel of the program for ``args``: whether it runs rows as lanes."""
    launches = [s for s in function.lookup(*args).program.steps if isinstance(s, Launch)]
    return [s.kernel.schedule.form is KernelForm.SHORT_ROWS for s in launches]


def everything(x: Any, w: Any, row: Any) -> Any:
    """Row sums and extrema with sweeps after them, values per row in and out, column and total sums."""
    p = jg.softmax(jg.tanh(x) * w + row[:, None], -1)
    return p, p.max(axis=1) * row, (p * x).sum(axis=0), (p * p).sum(), (x > w).any(axis=1), (x * w).min()


def check_everything(same: Any, rows: int, n: int, dtype: str, **tolerance: float) -> None:
    x, w, row = (jg.tensor(RNG.normal(size=s).astype(dtype)) for s in ((rows, n), (n,), (rows,)))
    compiled = same(everything, x, w, row, **tolerance)
    assert any(short_row_kernels(compiled, x, w, row))


@pytest.mark.parametrize("rows", [LANES, LANES + 1, 2 * LANES - 1])
def test_remainders_step_by_step(rows: int, same: Any) -> None:
    check_everything(same, rows, 5, "d", **CLOSE)


@pytest.mark.numba
@pytest.mark.parametrize("n", [5, 6, 7, 8, 9, 15, 16, 17, SHORT_ROW - 1, SHORT_ROW])
def test_every_width_in_machine_code(n: int, same: Any) -> None:
    for rows in (LANES, LANES + 1, 1000, 20_011):
        if n <= SHORT_ROW // 2:
            check_everything(same, rows, n, "d", rtol=1e-10, atol=1e-10)
        check_everything(same, rows, n, "f", rtol=2e-3, atol=1e-5)


@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["?", "b", "h", "i", "l", "B", "L", "e", "f", "d"])
def test_dtypes_of_row_results(dtype: str, same: Any) -> None:
    x = jg.tensor(RNG.integers(0, 2 if dtype == "?" else 4, (150, 5)).astype(dtype))

    def f(x: Any) -> Any:
        found = [x.sum(axis=1), x.sum(axis=0), x.sum(), x.max(axis=1), x.min(axis=0), x.any(axis=1), x.all(axis=0)]
        return [*found, x.prod(axis=1), (x > 1).sum(axis=1), (x > 1).sum(axis=0), x == x.max(axis=1, keepdims=True)]

    assert any(short_row_kernels(same(f, x, ulp=4.0), x))


@pytest.mark.numba
def test_lanes_without_a_row_divide_by_no_zero(same: Any) -> None:
    """Integer division by zero ends the process: what fills the last tile must be numbers of the operands."""
    x = jg.tensor(RNG.integers(1, 9, (LANES + 5, 4)))

    same(lambda x: (x // x.min(axis=1, keepdims=True), (x % x.max(axis=1, keepdims=True)).sum(axis=1)), x)


@pytest.mark.numba
def test_strided_rows_and_broadcast_rows(same: Any) -> None:
    base = RNG.normal(size=(300, 12))
    views = [base[:, ::3], base[::2, 3:8], base[:5].T, np.broadcast_to(base[:, :1], (300, 4)), base[::-1, ::-1]]

    same(lambda *xs: [(x.sum(axis=1), jg.exp(x) / jg.exp(x).sum(axis=1, keepdims=True)) for x in xs], *views, **CLOSE)
    x = jg.tensor(base)
    same(lambda x: [x[:, ::3].max(axis=1), jg.softmax(x[1:, 2:9], 1), jg.softmax(x[:, ::-1], 1)], x, **CLOSE)


@pytest.mark.numba
def test_nan_and_infinities_stay_in_their_rows(same: Any) -> None:
    x = RNG.normal(size=(200, 6))
    x[3, 1], x[70, 2], x[199, 5] = np.nan, np.inf, -np.inf

    same(lambda x: (x.max(axis=1), x.sum(axis=1), jg.exp(x).sum(axis=1), x.min(axis=0)), jg.tensor(x), **CLOSE)


@pytest.mark.numba
@pytest.mark.parametrize("n", [2, 10, 16])
def test_gradients(n: int, same: Any) -> None:
    x, g, labels = jg.tensor(RNG.normal(size=(500, n))), jg.tensor(RNG.normal(size=n)), jg.tensor(RNG.integers(0, n, 500))

    def loss(x: Any, g: Any) -> Any:
        return jg.cross_entropy(jg.layer_norm(x, (n,), g), labels) + (jg.log_softmax(x * g, -1) ** 2).mean()

    same(jg.value_and_grad(loss, argnums=(0, 1)), x, g, rtol=1e-10, atol=1e-12)


@pytest.mark.numba
def test_the_same_bits_for_any_number_of_threads() -> None:
    x, w, row = (jg.tensor(RNG.normal(size=s).astype(np.float32)) for s in ((9_001, 10), (10,), (9_001,)))
    function, before = jit(everything, check="off"), jg.get_num_threads()
    try:
        jg.set_num_threads(1)
        alone = [r.numpy().copy() for r in function(x, w, row)]
        jg.set_num_threads(2)
        team = [r.numpy().copy() for r in function(x, w, row)]
    finally:
        jg.set_num_threads(before)

    for a, b in zip(alone, team, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [8, 20, 31])
def test_functions_of_short_rows_run_in_lanes(n: int, same: Any) -> None:
    """Elements behind the last whole vector of a row would take as long as a vector each."""
    x, w = (jg.tensor(RNG.normal(size=s).astype("f")) for s in ((LANES + 5, n), (n,)))

    for function in (lambda x, w: jg.tanh(x * w), lambda x, w: jg.exp(x[:, 0][:, None] - w).sum(0)):
        compiled = same(function, x, w, rtol=1e-5, atol=1e-6)
        assert any(short_row_kernels(compiled, x, w))


def test_few_or_long_rows_and_cheap_work_stay_as_they_are() -> None:
    def softmax(x: Any) -> Any:
        return jg.softmax(x, -1)

    for shape, function in (((LANES - 1, 4), softmax), ((LANES, SHORT_ROW + 1), softmax), ((LANES, 4), lambda x: x + x[0])):
        x = jg.tensor(np.ones(shape))
        compiled = jit(function, check="off")
        compiled(x)
        assert not any(short_row_kernels(compiled, x))


@needs_x86
@pytest.mark.numba
@pytest.mark.parametrize("n", [5, 10, 16])
def test_rows_are_turned_without_masked_stores(n: int, same: Any) -> None:
    """They are microcode on AMD's CPUs: rows of eight elements took seven times as long."""
    x = jg.tensor(RNG.normal(size=(2 * LANES + 1, n)).astype("f"))
    compiled = same(lambda x: jg.softmax(x, -1), x, rtol=1e-5)

    (kernel,) = [s.kernel for s in compiled.lookup(x).program.steps if isinstance(s, Launch)]

    assert kernel.schedule.form is KernelForm.SHORT_ROWS
    assert not any("vmaskmov" in program_assembly(cpu, compiled, x) for cpu in CPUS)


def test_kernels_store_into_results_alone() -> None:
    """What was read is not written back, even unchanged: its memory may be read-only, or of another thread."""
    x, w, row = (jg.tensor(RNG.normal(size=s).astype("f")) for s in ((1000, 5), (5,), (1000,)))
    compiled = jit(everything, check="off", backend="cpu")

    assert any(short_row_kernels(compiled, x, w, row))
    sources = [kernel.source for kernel in compiled.kernels(x, w, row)]
    assert any(re.search(r"^ +x\w*t\d*\[.*\] = ", text, re.MULTILINE) for text in sources)  # a tile is filled from its input
    assert not any(re.search(r"^ +x\d+r?\[.*\] = ", text, re.MULTILINE) for text in sources)
