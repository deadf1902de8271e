"""The numba target for kernels: nothing of numba's runtime in their code, and at peace with numba's own target."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from jitgrad.backends.machine import compile_entry
from jitgrad.compiler.codegen import vecmath

pytestmark = pytest.mark.numba

TWICE = "def kernel(x, start, stop):\n    for i in range(start, stop):\n        x[i] = x[i] + x[i]\n"


def lowered(source: str, params: tuple[str, ...], **options: Any) -> tuple[str, list[str]]:
    from jitgrad.backends import front

    return front.lower(source, "kernel", params, {}, 0, **options)


def run(code: Any, array: np.ndarray[Any, Any], start: int, stop: int) -> None:
    words = np.array([array.ctypes.data], np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)(words.ctypes.data, start, stop)


def test_kernels_link_nothing_of_numba() -> None:
    text, linked = lowered(TWICE, ("f32*",))

    assert linked == []
    assert "picklebuf" not in text


def test_a_loop_counts_and_does_not_divide() -> None:
    text, _ = lowered(TWICE, ("f32*",))

    assert "div" not in text
    assert "rem" not in text


def test_small_code_is_one_vector_at_a_time() -> None:
    wide = compile_entry(TWICE, "kernel", {}, params=("f32*",), key=None)
    small = compile_entry(TWICE, "kernel", {}, params=("f32*",), key=None, small=True)

    assert "vector.body" in small.llvm
    assert len(small.object_code) < len(wide.object_code)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 3), (5, 2), (0, 1), (0, 100), (7, 93), (-4, 0)])
@pytest.mark.parametrize("step", [1, 7, 256])
def test_ranges_are_those_of_python(start: int, stop: int, step: int) -> None:
    text = f"def kernel(x, start, stop):\n    for i in range(start, stop, {step}):\n        x[i + 8] = x[i + 8] + to_i64(1)\n"
    counts = np.zeros(300, np.int64)

    run(compile_entry(text, "kernel", {}, params=("i64*",), key=""), counts, start, stop)

    expected = np.zeros(300, np.int64)
    for i in range(start, stop, step):
        expected[i + 8] += 1
    np.testing.assert_array_equal(counts, expected)


def test_a_range_inside_a_range_starts_again() -> None:
    text = "def kernel(x, start, stop):\n    for i in range(stop):\n"
    text += "        for j in range(i):\n            x[j] = x[j] + to_i64(1)\n"
    counts = np.zeros(6, np.int64)

    run(compile_entry(text, "kernel", {}, params=("i64*",), key=""), counts, 0, 6)

    assert counts.tolist() == [5, 4, 3, 2, 1, 0]


def test_numbas_own_functions_may_use_the_same_intrinsics_in_between() -> None:
    """The type of a function is shared by all targets of numba, and remembers what the last one found."""
    import numba

    exp = vecmath.numba_namespace()["exp"]
    text = "def kernel(x, start, stop):\n    for i in range(start, stop):\n        x[i] = exp(x[i])\n"
    x = np.linspace(-1.0, 1.0, 9)

    first = compile_entry(text, "kernel", {"exp": exp}, params=("f64*",), key=None)
    theirs = numba.njit(lambda x: exp(x))(0.5)
    second = compile_entry(text + "\n", "kernel", {"exp": exp}, params=("f64*",), key=None)

    assert theirs == pytest.approx(np.exp(0.5))
    for code in (first, second):
        y = x.copy()
        run(code, y, 0, 9)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-15)


def test_compiling_a_kernel_does_not_set_up_numbas_own_target() -> None:
    """That takes longer than compiling the kernel."""
    program = (
        "import os, tempfile\n"
        "os.environ['JITGRAD_CACHE_DIR'] = tempfile.mkdtemp()\n"
        "import numpy as np, jitgrad as jg\n"
        "jg.jit(lambda x: jg.where(jg.tanh(x) > 0.5, jg.abs(x), x).sum())(np.ones((32, 32), np.float32))\n"
        "from numba.core.registry import cpu_target\n"
        "assert not cpu_target.target_context._registries\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
