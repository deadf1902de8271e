"""CUDA kernels of every form that read padded and rolled values where they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.ptxas import assemble
from jitgrad.backends.cuda.schedule import GridForm
from tests.backends.cuda.conftest import RecordingTarget, assert_agree
from tests.backends.cuda.test_programs import normal
from tests.backends.cuda.test_ptx import ARCHITECTURES, compile_for, needs_ptxas
from tests.compiler.test_random_stencils import operands, shape_of, stencil

__all__ = ["compile_for"]


def laplacian(u: Any) -> Any:
    p = jg.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u


def row_before(x: Any) -> Any:
    """Each row's predecessor, and zeros for the first."""
    return jg.pad(x, ((1, 0), (0, 0)))[:-1]


def turned(x: Any) -> Any:
    return jg.roll(x, 1, 1)


FORMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], GridForm]] = {
    "flat": (lambda x: jg.roll(x, 3) - x, [(1030,)], GridForm.FLAT),
    "sum of all": (lambda x: (jg.roll(x, 3) * x).sum(), [(70000,)], GridForm.FLAT),
    "grid": (laplacian, [(30, 50)], GridForm.GRID),
    "grid, narrow": (laplacian, [(30, 3)], GridForm.GRID),
    "grid of vectors": (lambda x: row_before(x) * x, [(20, 200)], GridForm.GRID),
    "grid, three axes": (lambda x: jg.roll(x, (1, -2), (0, 1)) + x, [(5, 6, 16)], GridForm.GRID),
    "backwards": (lambda x: jg.pad(x, 2, mode="reflect")[4:, :-4] - x, [(9, 40)], GridForm.GRID),
    "repeated": (lambda x: jg.pad(x, 5, mode="edge")[10:, 10:] * x, [(9, 40)], GridForm.GRID),
    "rows of a warp": (lambda x: jg.softmax(turned(x) + x, axis=1), [(37, 200)], GridForm.ROWS),
    "rows of vectors": (lambda x: jg.softmax(row_before(x) + x, axis=1), [(37, 200)], GridForm.ROWS),
    "rows of a block": (lambda x: jg.softmax(turned(x) + x, axis=1), [(3, 2300)], GridForm.ROWS),
    "rows of lanes": (lambda x: jg.softmax(turned(x) + row_before(x), axis=1), [(77, 10)], GridForm.ROWS),
    "rows across memory": (lambda x: jg.softmax(jg.roll(x, 1, 2) + x, axis=1), [(3, 20, 100)], GridForm.ROWS),
    "rows across memory, rolled": (lambda x: jg.softmax(jg.roll(x, 1, 1) + x, axis=1), [(3, 20, 100)], GridForm.ROWS),
    "numbers of rows": (lambda x, b: jg.softmax(x * jg.roll(b, 1, 0), axis=1), [(40, 70), (40, 1)], GridForm.ROWS),
    "sums of columns": (lambda x: (row_before(x) * x).sum(axis=0), [(150, 100)], GridForm.COLUMNS),
    "sums of rolled columns": (lambda x: (turned(x) * x).sum(axis=0), [(150, 100)], GridForm.COLUMNS),
    "sums of both": (jg.grad(lambda x, w: (jg.layer_norm(turned(x) + x, w.shape, w) * x).sum(), argnums=(0, 1)),
                     [(60, 77), (77,)], GridForm.ROWS),
    "transposed": (lambda x, y: x.T + row_before(y), [(100, 70), (70, 100)], GridForm.TILED_TRANSPOSE),
    "transposed, rolled": (lambda x, y: x.T + turned(y), [(100, 70), (70, 100)], GridForm.TILED_TRANSPOSE),
}  # fmt: skip


@pytest.mark.parametrize("form, dtype", [*((form, "f4") for form in FORMS), *((form, "f8") for form in list(FORMS)[::4])])
def test_forms(form: str, dtype: str, emulated: RecordingTarget) -> None:
    function, shapes, expected = FORMS[form]
    args = [normal(*shape, dtype=dtype) for shape in shapes]

    assert_agree(function, *args, expected="python")

    assert expected in emulated.forms, "\n".join(emulated.texts)
    graph = jg.jit(function, check="off", backend="emulated").graph(*args, stage="fuse")
    assert "offset_read" in str(graph) and "insert_slices" not in str(graph)


def test_rows_of_zeros_are_not_read(emulated: RecordingTarget) -> None:
    """Outside are zeros, whatever lies at the place in memory that is read in their stead."""
    x = normal(6, 8).numpy().copy()
    x[0], x[-1, -1], x[2, 0] = np.nan, np.inf, np.nan
    assert_agree(lambda x: jg.pad(x, 1)[:-2, :-2] + jg.pad(x, 2)[4:, 4:], jg.tensor(x), exact=True, expected="python")


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8"])
def test_dtypes(dtype: str, emulated: RecordingTarget) -> None:
    x = normal(7, 33, dtype=dtype)
    assert_agree(lambda x: jg.where(row_before(x) > 0, turned(x), x), x, exact=True, expected="python")


def test_new_state_is_not_written_over_what_others_read(emulated: RecordingTarget) -> None:
    def step(u: Any, v: Any) -> Any:
        return u + 0.1 * laplacian(u), 0.5 * v

    found = []
    for backend in ("python", "emulated"):
        args = [normal(33, 70), normal(33, 70)]
        found.append([x.numpy().tobytes() for x in jg.jit(step, donate=(0, 1), check="off", backend=backend)(*args)])
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 150))])
def test_random_stencils(seed: int, emulated: RecordingTarget) -> None:
    f = jg.value_and_grad(stencil(seed, 2 + seed % 3, shape_of(seed)), argnums=(0, 1))
    wanted, found = (jg.jit(f, check="off", backend=name)(*operands(seed, "f8")) for name in ("python", "emulated"))
    for a, b in zip((found[0], *found[1]), (wanted[0], *wanted[1]), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)


def test_steps_of_a_simulation_are_a_few_kernels(emulated: RecordingTarget) -> None:
    """Burgers' equation and a reaction with diffusion: each step is one kernel, or one for each of two fields."""

    def burgers(u: Any) -> Any:
        for _ in range(5):
            left, right = jg.roll(u, 1, 0), jg.roll(u, -1, 0)
            u = u - 0.2 * u * jg.where(u > 0, u - left, right - u) + 0.1 * (left - 2 * u + right)
        return u

    def reaction(u: Any, v: Any) -> Any:
        for _ in range(3):
            uvv = u * v * v
            u, v = u + 0.1 * laplacian(u) - uvv, v + 0.2 * laplacian(v) + uvv
        return u, v

    assert jg.jit(burgers, backend="emulated").explain(normal(500, 20)).launches == 5
    assert jg.jit(reaction, backend="emulated").explain(normal(40, 50), normal(40, 50)).launches <= 6


@needs_ptxas
@pytest.mark.parametrize("part, architecture", list(enumerate(ARCHITECTURES)))
def test_no_kernel_needs_local_memory(part: int, architecture: str, compile_for: Any) -> None:
    codes = []
    for function, shapes, _ in list(FORMS.values())[part :: len(ARCHITECTURES)]:
        codes += compile_for(ARCHITECTURES[architecture], function, *[normal(*shape) for shape in shapes])
    for code, usage in zip(codes, assemble(codes, architecture), strict=True):
        assert (usage.local, usage.spilled) == (0, 0), code.source.text
