"""Which variables of kernel source need no memory."""

from __future__ import annotations

import ast
import ctypes
import textwrap

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.kernel_frontend import source_to_llvm
from jitgrad.backends.llvm.single_assignment import single_assignments


def singles(body: str) -> set[str]:
    source = "def f(x, n, start, stop):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    return set(single_assignments(definition)) - {"x", "n", "start", "stop"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = n\nx[0] = a", {"a"}),
        ("a = n\na = a + 1", set()),
        ("a = n\na += 1", set()),
        ("a, b = n, 1\nx[a] = b", {"a", "b"}),
        ("for i in range(n):\n    a = x[i]\n    x[i] = a", {"i", "a"}),
        ("for i in range(n):\n    x[i] = a\n    a = i", {"i"}),  # of the iteration before
        ("for i in range(n):\n    a = i\nx[0] = a", {"i"}),  # of the last iteration
        ("for i in range(n):\n    pass\nx[0] = i", set()),
        ("if n:\n    a = 1\nx[0] = a", set()),
        ("if n:\n    a = 1\n    x[0] = a\nelse:\n    b = 2\n    x[0] = b", {"a", "b"}),
        ("if n:\n    a = 1\nelse:\n    x[0] = a", set()),
        ("while a < n:\n    a = n", set()),
        ("for n in range(3):\n    x[0] = n", set()),  # bound as a parameter, too
    ],
)
def test_bound_once_and_read_where_it_is_bound(body: str, expected: set[str]) -> None:
    assert singles(body) == expected


SOURCE = """
def kernel(x0, y0, n, start, stop):
    k = 5
    for r in range(start, stop):
        row = at(x0, r * n)
        for j in range(n):
            a = row[j]
            b = a + a
            if j > 2:
                b = b + a
            y0[r * n + j] = b
"""


def test_only_variables_that_change_live_in_memory() -> None:
    text, _ = source_to_llvm(SOURCE, "kernel", ["f64*", "f64*", "i64"], {}, 256)

    in_memory = {line.split('"')[1] for line in text.splitlines() if "= alloca" in line and not line.strip().startswith('%".')}
    assert in_memory == {"k", "b"}  # a literal in a variable is no literal: it could make integers unsigned


@pytest.mark.numba
def test_values_of_a_kernel_without_memory_for_variables() -> None:
    code = compile_entry(SOURCE, "kernel", {}, params=("f64*", "f64*", "i64"), key=None)
    x, y = np.arange(8.0), np.zeros(8)
    words = np.array([x.ctypes.data, y.ctypes.data, 4], np.int64)

    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)(words.ctypes.data, 0, 2)

    assert y.tolist() == [0.0, 2.0, 4.0, 9.0, 8.0, 10.0, 12.0, 21.0]
