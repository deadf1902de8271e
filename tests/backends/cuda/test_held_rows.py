"""Rows in registers: each element is read once, and the results have the bits that sweeps over memory give."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda import emit
from jitgrad.backends.cuda.ptxas import assemble
from jitgrad.backends.cuda.rows import RowTeams
from jitgrad.backends.cuda.schedule import GridForm
from tests.backends.cuda.conftest import RecordingTarget, normal
from tests.backends.cuda.test_ptx import ARCHITECTURES, HOPPER, compile_for, needs_ptxas
from tests.compiled import leaves

__all__ = ["compile_for"]  # a fixture


def softmax(x: Any) -> Any:
    return jg.softmax(x, axis=-1)


def softmax_gradient(x: Any, g: Any) -> Any:
    return jg.vjp(softmax, x)[1](g)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return jg.layer_norm(x, w.shape, w, b)


def layer_norm_gradients(x: Any, w: Any, b: Any) -> Any:
    return jg.value_and_grad(lambda *xs: (layer_norm(*xs) ** 2).sum(), argnums=(0, 1, 2))(x, w, b)


def cross_entropy(x: Any, y: Any) -> Any:
    return jg.value_and_grad(lambda x: jg.cross_entropy(x, y))(x)


def labels(rows: int) -> jg.Tensor:
    return jg.tensor(np.arange(rows) % 3)


# rows and columns: whole vectors, a tail, no vectors, lanes of a warp, a whole block, rows too long to hold
SHAPES = [(20, 1000), (9, 1024), (11, 200), (7, 333), (70, 12), (50, 3), (3, 2300), (2, 9000), (300, 40)]
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int, int, str], list[Any]]]] = {
    "softmax": (softmax, lambda r, n, d: [normal(r, n, dtype=d)]),
    "softmax gradient": (softmax_gradient, lambda r, n, d: [normal(r, n, dtype=d), normal(r, n, dtype=d) + 1.0]),
    "layer norm": (layer_norm, lambda r, n, d: [normal(r, n, dtype=d), normal(n, dtype=d), normal(n, dtype=d)]),
    "layer norm gradients": (layer_norm_gradients, lambda r, n, d: [normal(r, n, dtype=d), *[normal(n, dtype=d)] * 2]),
    "cross entropy": (cross_entropy, lambda r, n, d: [normal(r, n, dtype=d), labels(r)]),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_bits_of_sweeps_over_memory(
    name: str, dtype: str, emulated: RecordingTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, operands = PROGRAMS[name]
    for shape in SHAPES[:: 1 if dtype == "f4" else 2]:
        args = operands(*shape, dtype)
        found, texts = run_emulated(function, *args), "\n".join(emulated.texts)
        with monkeypatch.context() as patch:
            patch.setitem(emit._FORMS, GridForm.ROWS, RowTeams)
            expected = run_emulated(function, *args)
        assert found == expected, f"{shape}\n{texts}"


def run_emulated(function: Callable[..., Any], *args: Any) -> list[bytes]:
    return [x.tobytes() for x in leaves(jg.jit(function, check="off", backend="emulated")(*args))]


def test_half_precision(emulated: RecordingTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    args = PROGRAMS["layer norm gradients"][1](9, 264, "f2")
    found = run_emulated(layer_norm_gradients, *args)
    monkeypatch.setitem(emit._FORMS, GridForm.ROWS, RowTeams)
    assert found == run_emulated(layer_norm_gradients, *args)


# vectors of 16 bytes that a thread reads and writes: 8 for each row of 1,000 by a warp, 1 by a block
VECTORS = {
    "softmax": (8, 8),
    "softmax gradient": (16, 8),
    "layer norm": (8 + 2 * 8, 8),  # rows, weights, biases
    "layer norm gradients": (1 + 1, 1),
    "cross entropy": (8, 8),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_row_is_read_once_and_written_once(name: str, compile_for: Any) -> None:
    function, operands = PROGRAMS[name]
    ptx = [c.ptx for c in compile_for(HOPPER, function, *operands(64, 1000, "f4")) if c.entry == "kernel"][-1]
    loads, stores = (len(re.findall(rf"\b{access}\.global(?:\.nc)?\.v4", ptx)) for access in ("ld", "st"))
    assert (loads, stores) == VECTORS[name]
    assert not re.findall(r"\bld\.global\.(?:v4|f32|b32)", ptx), "what the kernel writes is not read again"


def test_elements_that_sweeps_alone_use_do_not_go_to_memory(emulated: RecordingTarget) -> None:
    run_emulated(softmax, normal(20, 1000))
    (text,) = emulated.texts
    assert text.count("copy_vector(at(y0r, j), ") == 1


def test_long_rows_are_not_held(emulated: RecordingTarget) -> None:
    run_emulated(softmax, normal(2, 9000))
    assert "for t in range(" not in emulated.texts[0]


@needs_ptxas
@pytest.mark.parametrize("architecture, dtype", [("sm_80", "f2"), ("sm_90", "f4"), ("sm_100", "f8")])
def test_held_rows_are_in_registers(architecture: str, dtype: str, compile_for: Any) -> None:
    codes = []
    for function, operands in PROGRAMS.values():
        for shape in ((64, 1000), (64, 333)):
            codes += compile_for(ARCHITECTURES[architecture], function, *operands(*shape, dtype))
    for code, usage in zip(codes, assemble(codes, architecture), strict=True):
        assert usage.local == 0 and (usage.blocks == 2 or dtype == "f8"), f"{usage}\n{code.source.text}"
