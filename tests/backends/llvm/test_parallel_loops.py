"""Which loops of kernels LLVM is told to be parallel, and what that changes: the time to compile."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from jitgrad.backends.llvm import kernel_frontend, target
from jitgrad.backends.llvm.parallel_loops import parallel_loops

pytestmark = pytest.mark.numba

PARALLEL = {
    "elements": "for i in range(n):\n    y[i] = x[i] + x[i + 1]",
    "the same element": "for i in range(n):\n    y[i] = y[i] + x[i]",
    "a row": "r = at(y, k * n)\nfor i in range(n):\n    r[i] = x[i]",
    "part of a sum": "for i in range(n):\n    y[k + i] = x[i]",
    "scratch memory": "t = scratch_f32(64)\nfor i in range(64):\n    t[i] = x[i]",
    "masked loads": "for i in range(n):\n    y[i] = load_between(x, k + i - 1, i, 1, n)",
    "a sum in a variable": "s = to_f32(0.0)\nfor i in range(n):\n    s = s + x[i]",
    "a choice": "for i in range(n):\n    if i > k:\n        y[i] = x[i]",
}
OTHERS = {
    "a neighbour": "for i in range(n):\n    y[i + 1] = y[i] + x[i]",
    "one element": "for i in range(n):\n    y[k] = y[k] + x[i]",
    "another row": "r = at(y, k * n)\nfor i in range(n):\n    r[i] = y[i] + x[i]",
    "a pointer that moves": "for i in range(n):\n    r = at(y, k)\n    r[i] = x[i]",
    "an index that moves": "for i in range(n):\n    k = k - i\n    y[k + i] = x[i]",
    "a difference": "for i in range(n):\n    y[n - i] = x[i]",
    "an element twice": "for i in range(n):\n    y[i // 2] = x[i]",
    "every eighth": "for i in range(n):\n    y[i * 8] = x[i]",
    "every eighth that is read": "for i in range(n):\n    y[i] = x[i * 8]",
    "steps": "for i in range(0, n, 4):\n    y[i] = x[i]",
    "no step": "for i in range(n):\n    y[i * 0] = x[i]",
    "twice the variable": "for i in range(n):\n    y[i + i] = x[i]",
    "an index from memory": "for i in range(n):\n    y[i + x[i]] = x[i]",
    "a read of what is written": "for i in range(n):\n    y[i] = load_between(y, i - 1, i, 1, n)",
    "a call that may write": "for i in range(n):\n    y[i] = x[i]\n    add_row(y, x, 4)",
    "another name": "p = select(k > 0, x, y)\nfor i in range(n):\n    y[i] = p[i + 1]",
    "non-temporal stores": "for i in range(n):\n    stream(y, i, x[i])",
    "two values of a name": "r = at(x, k)\nr = at(y, k)\nfor i in range(n):\n    y[i] = r[i]",
    "not the innermost": "for i in range(n):\n    y[i] = x[i]\n    while k > 0:\n        k = k - 1",
}


def count_parallel(body: str) -> int:
    (entry,) = ast.parse(f"def kernel(x, y, n, k, start, stop):\n{textwrap.indent(body, '    ')}\n").body
    assert isinstance(entry, ast.FunctionDef)
    return len(parallel_loops(entry, ["x", "y"]))


@pytest.mark.parametrize("name", PARALLEL)
def test_loops_whose_iterations_share_nothing_are_parallel(name: str) -> None:
    assert count_parallel(PARALLEL[name]) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_to_llvm(name: str) -> None:
    assert count_parallel(OTHERS[name]) == 0


STENCIL = """
def kernel(x, z, y, n, start, stop):
    for r in range(start, stop):
        row = at(y, r * n)
        total = to_f32(0.0)
        for j in range(n):
            t = x[j] * z[j + 1] + load_between(x, j - 1, j, 1, n)
            total = reassoc_add(total, t)
            row[j] = t
        for j in range(n):
            row[j] = row[j] / total
"""


def test_parallel_loops_are_marked_and_compile_to_the_same_code() -> None:
    """Only the time differs: LLVM finds the same by itself."""
    text, linked = kernel_frontend.source_to_llvm(STENCIL, "kernel", ["f32*", "f32*", "f32*", "i64"], {}, 256)
    marked = re.findall(r"!llvm\.access\.group (!\d+)", text)
    node = re.search(r'^(!\d+) = !\{ !"llvm.loop.parallel_accesses"', text, re.MULTILINE)
    assert node is not None
    bare = re.sub(rf", !llvm\.access\.group !\d+|, {node[1]}(?=[ ,])", "", text)

    assert len(marked) == 6
    assert f"{marked[0]} = distinct !{{}}" in text
    assert target.emit(target.optimize(bare, linked, "kernel")) == target.emit(target.optimize(text, linked, "kernel"))
