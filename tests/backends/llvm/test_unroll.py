"""The number of vectors that loops process together."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.llvm.kernel_frontend import source_to_llvm
from jitgrad.backends.llvm.unroll import DEEP, TWO_VECTORS, USUAL, unroll_factor
from jitgrad.jit.decorator import jit


def loop(*statements: str, many_registers: bool = True) -> list[int]:
    body = "".join(f"        {s}\n" for s in ("a1 = x0[i]", *statements, "y0[i] = a1"))
    source = f"def kernel(x0, y0, start, stop):\n    for i in range(start, stop):\n{body}"
    return list(unroll_factor(ast.parse(source), many_registers).values())


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], USUAL),
        (["a1 = a1 * to_f32(2.0)"] * 8, USUAL),
        (["a1 = a1 * to_f32(2.0)"] * 60, DEEP),
        (["a1 = tanh(a1)"] * 2, USUAL),
        (["a1 = tanh(a1)"] * 4, DEEP),
        (["a1 = atan(a1)"] * 4, DEEP),  # although at() is free
        (["a1 = to_f32(a1)"] * 100, USUAL),
        (["a1 = tanh(a1)"] * 20, USUAL),  # too long to compile twice as much of it
        ([*[f"t{k} = tanh(x0[i])" for k in range(8)], *[f"a1 = a1 + t{k}" for k in range(8)]], USUAL),
        (["a1 = a1 * to_f32(2.0)"] * 60 + ["t2 = exp(x0[i])"] * 8, USUAL),
    ],
)
def test_deep_chains_take_more_vectors(statements: list[str], expected: int) -> None:
    assert loop(*statements) == [expected]


WIDE = [f"t{k} = x0[i] * to_f32({k}.0)" for k in range(64)]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (WIDE, TWO_VECTORS),
        (WIDE[:40], USUAL),
        ([*WIDE, "a1 = exp(a1)", "a1 = exp(a1)"], TWO_VECTORS),
        ([*WIDE, *["a1 = exp(a1)"] * 4], USUAL),  # whose operations wait for each other
        (["a1 = a1 * to_f32(2.0)"] * 80, DEEP),
    ],
)
def test_long_loops_without_functions_take_fewer_vectors_where_registers_are_few(statements: list[str], expected: int) -> None:
    assert loop(*statements, many_registers=False) == [expected]
    assert loop(*statements) == [DEEP if expected == DEEP else USUAL]


def test_every_loop_says_how_wide_it_is() -> None:
    deep = "\n".join(["            t = t * to_f32(0.5)"] * 60)
    source = f"""
def kernel(x0, n, start, stop):
    for r in range(start, stop):
        for j in range(n):
            t = x0[j]
{deep}
        for j in range(n):
            t = x0[j]
    for k in range(n):
        t = x0[k]
"""
    widths = unroll_factor(ast.parse(source))
    assert {loop.lineno: width for loop, width in widths.items()} == {3: USUAL, 4: DEEP, 66: USUAL, 68: USUAL}
    text, _ = source_to_llvm(source, "kernel", ["f32*", "i64"], {}, 256)
    loops = re.findall(r", !llvm.loop (!\d+)", text)
    hints = [re.search(rf"^{loop} = distinct !{{ {loop}, (!\d+)(?:, !\d+)? }}$", text, re.MULTILINE)[1] for loop in loops]
    assert len(set(loops)) == 4
    assert [re.search(rf"^{h} = .*interleave.count\", i32 (\d)", text, re.MULTILINE)[1] for h in hints] == [
        str(DEEP), str(USUAL), str(USUAL), str(USUAL),
    ]  # fmt: skip


def test_small_code_stays_small() -> None:
    source = "def kernel(x0, start, stop):\n    for i in range(start, stop):\n        x0[i] = x0[i]\n"

    text, _ = source_to_llvm(source, "kernel", ["f32*"], {}, 256, interleaves=False)

    assert 'interleave.count", i32 1 }' in text
    assert "llvm.loop.unroll.disable" in text


@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 1000])
def test_values_of_a_deep_chain(size: int) -> None:
    def chain(x: Any) -> Any:
        for _ in range(4):
            x = jg.tanh(jg.sin(x) * 1.5)
        return x, (x * x).sum()

    x = jg.tensor(np.linspace(-3, 3, size).astype("f"))

    for found, expected in zip(jit(chain, check="off")(x), chain(x), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
