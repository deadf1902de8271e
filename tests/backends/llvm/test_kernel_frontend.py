"""The meaning of kernel source: loops, types of values, and refused source."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.effort import SMALL_LOOPS
from jitgrad.backends.llvm.library_names import native_names
from jitgrad.backends.python import DTYPES as NUMPY
from jitgrad.core.errors import BackendError
from tests.machine_code import run, table

pytestmark = pytest.mark.numba

DTYPES = {name: dtype.type for name, dtype in NUMPY.items()}
TWICE = "def kernel(x, start, stop):\n    for i in range(start, stop):\n        x[i] = x[i] + x[i]\n"


def lowered(source: str, params: tuple[str, ...], **options: Any) -> tuple[str, list[str]]:
    from jitgrad.backends.llvm import kernel_frontend

    return kernel_frontend.source_to_llvm(source, "kernel", params, {}, 0, **options)


def test_kernels_link_nothing() -> None:
    _, linked = lowered(TWICE, ("f32*",))

    assert linked == []


def test_a_loop_counts_and_does_not_divide() -> None:
    text, _ = lowered(TWICE, ("f32*",))

    assert "div" not in text
    assert "rem" not in text


def test_small_code_is_one_vector_at_a_time() -> None:
    wide = compile_entry(TWICE, "kernel", {}, params=("f32*",), key=None)
    small = compile_entry(TWICE, "kernel", {}, params=("f32*",), key=None, effort=SMALL_LOOPS)

    assert "vector.body" in small.llvm
    assert len(small.object_code) < len(wide.object_code)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 3), (5, 2), (0, 1), (0, 100), (7, 93), (-4, 0)])
@pytest.mark.parametrize("step", [1, 7, 256])
def test_ranges_are_those_of_python(start: int, stop: int, step: int) -> None:
    text = f"def kernel(x, start, stop):\n    for i in range(start, stop, {step}):\n        x[i + 8] = x[i + 8] + to_i64(1)\n"
    counts = np.zeros(300, np.int64)

    run(compile_entry(text, "kernel", {}, params=("i64*",), key=""), table(counts), start, stop)

    expected = np.zeros(300, np.int64)
    for i in range(start, stop, step):
        expected[i + 8] += 1
    np.testing.assert_array_equal(counts, expected)


def test_a_range_inside_a_range_starts_again() -> None:
    text = "def kernel(x, start, stop):\n    for i in range(stop):\n"
    text += "        for j in range(i):\n            x[j] = x[j] + to_i64(1)\n"
    counts = np.zeros(6, np.int64)

    run(compile_entry(text, "kernel", {}, params=("i64*",), key=""), table(counts), 0, 6)

    assert counts.tolist() == [5, 4, 3, 2, 1, 0]


def test_compiling_a_kernel_needs_no_numba() -> None:
    """To import it takes longer than compiling the kernel."""
    program = (
        "import os, sys, tempfile\n"
        "os.environ['JITGRAD_CACHE_DIR'] = tempfile.mkdtemp()\n"
        "import numpy as np, jitgrad as jg\n"
        "jg.jit(lambda x: jg.where(jg.tanh(x) > 0.5, jg.abs(x), x).sum())(np.ones((32, 32), np.float32))\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def result_of(expression: str, x: Any, y: Any, kinds: tuple[str, str], out: str) -> Any:
    """``expression`` of the scalars ``x`` and ``y``, as a kernel stores it in an array of dtype ``out``."""
    text = f"def kernel(x, y, z, start, stop):\n    z[0] = {expression}\n"
    code = compile_entry(text, "kernel", native_names(), params=(f"{kinds[0]}*", f"{kinds[1]}*", f"{out}*"), key=None)
    arrays = [np.array([x]), np.array([y]), np.zeros(1, DTYPES[out])]
    run(code, table(*arrays), 0, 1)
    return arrays[2][0]


@pytest.mark.parametrize("operator", ["+", "-", "*", "//", "%", "&", "|", "^"])
@pytest.mark.parametrize("name", ["i8", "i32", "i64", "u8", "u32", "u64"])
def test_integers_are_64_bits_wide_and_wrap_around(name: str, operator: str) -> None:
    info = np.iinfo(DTYPES[name])
    wide = "u64" if name[0] == "u" else "i64"
    for x, y in [(info.max, 3), (info.min, 7), (5, info.max), (info.max, info.max - 1), (100, 9)]:
        found = result_of(f"x[0] {operator} y[0]", DTYPES[name](x), DTYPES[name](y), (name, name), wide)
        exact = eval(f"{x} {operator} {y}")
        assert int(found) % 2**64 == exact % 2**64, (x, y)


@pytest.mark.parametrize(
    ("expression", "x", "y", "kinds", "expected"),
    [
        ("x[0] < y[0]", -1, 1, ("i8", "i64"), True),
        ("x[0] < y[0]", 2**63, 1, ("u64", "u8"), False),
        ("x[0] > 0", 2**63, 1, ("u64", "u8"), True),
        ("x[0] < y[0]", -1, 255, ("i8", "u8"), True),
        ("x[0] == x[0]", np.nan, 0, ("f32", "i64"), False),
        ("x[0] != x[0]", np.nan, 0, ("f32", "i64"), True),
        ("0.0 <= x[0] < 2.0", 1.5, 0, ("f64", "i64"), True),
        ("not x[0] >= y[0]", np.nan, 1.0, ("f64", "f64"), True),
        ("y[0] != 0 and x[0] // y[0] > 1", 5, 0, ("i64", "i64"), False),
        ("y[0] == 0 or x[0] // y[0] > 1", 5, 0, ("i64", "i64"), True),
        ("(x[0] < 1.0) != (y[0] < 1.0)", 0.0, 2.0, ("f32", "f32"), True),
    ],
)
def test_comparisons_mean_what_numpy_means(expression: str, x: Any, y: Any, kinds: tuple[str, str], expected: bool) -> None:
    expression = expression.replace("0.0", "to_f32(0.0)").replace("1.0", "to_f32(1.0)") if kinds[0] == "f32" else expression

    assert bool(result_of(expression, DTYPES[kinds[0]](x), DTYPES[kinds[1]](y), kinds, "bool")) is expected


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("x[0] = x[0] * 0.5", "of one dtype, found f32, f64"),
        ("x[0] = x[0] + start", "f32 and i64 do not meet"),
        ("x[0] = start", "i64 is stored in memory of f32"),
        ("x[0] = to_f64(x[0])", "f64 is stored in memory of f32"),
        ("n = to_u64(1) + start", "u64 and i64 have no common integers"),
        ("t = x[0]; t = start", "the variable is f32, found i64"),
        ("x[0] = select(start, x[0], x[0])", "takes a bool"),
        ("x[0] = select(start < stop, x[0], 1.0)", "of one dtype"),
        ("t = scratch_f32(start)", "takes a literal number"),
        ("x[0] = start[0]", "takes a pointer, found i64"),
        ("x[x[0]] = x[0]", "an index is an integer, found f32"),
        ("x[0] = x[0] % x[0]", "f32 and f32"),
        ("x[0] = sqrt(x[0], x[0])", "takes 1 operands, found 2"),
        ("x[0] = select(x[0])", "missing 3 required positional arguments|missing 2 required positional arguments"),
        ("x[0] = y", "'y' is not defined"),
        ("x[0] = nothing(x[0])", "calls nothing, which is not defined"),
        ("for i in range(0, 10, start): x[i] = x[i]", "its step has to be a positive literal"),
        ("x[0] = kernel(x, start, stop)", "calls itself"),
        ("x[0] = half(x[0])", "ends without a result"),
        ("x[0] = [x[0]]", "is not part of kernel source"),
        ("while start < stop: pass\n    else: pass", "is not part of kernel source"),
    ],
)
def test_what_kernel_source_cannot_say_is_refused_with_its_line(body: str, reason: str) -> None:
    text = "def half(x):\n    if x > x:\n        return x\n\n\ndef kernel(x, start, stop):\n"
    text += "".join(f"    {line}\n" for line in body.split("; "))

    with pytest.raises(BackendError, match=rf"^kernel, line \d+: .*({reason})") as caught:
        lowered(text, ("f32*",))
    assert "def kernel(x, start, stop):" in str(caught.value)


def test_a_kernel_that_returns_a_value_is_refused() -> None:
    with pytest.raises(BackendError, match="kernel returns i64, which has no receiver"):
        lowered("def kernel(x, start, stop):\n    return start\n", ("f32*",))
