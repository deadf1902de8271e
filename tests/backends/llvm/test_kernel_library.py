"""The integer functions of kernels, on every pair of corner values, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.backends.llvm.library_names import native_names
from tests.machine_code import run, table

NUMPY = {
    "floor_divide_int": np.floor_divide,
    "remainder_int": np.remainder,
    "fmod_int": np.fmod,
    "left_shift_int": np.left_shift,
    "right_shift_int": np.right_shift,
}
DTYPES = ["l", "L"]  # what kernels compute integers in


def corners(name: str, dtype: str) -> list[tuple[Any, Any]]:
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 62, 63, 64, 65]
    values += [-1, -2, -7, -64] if info.min < 0 else []
    kind = np.dtype(dtype).type
    return [(kind(x), kind(y)) for x in values for y in values]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NUMPY)
def test_python_form(name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        for x, y in corners(name, dtype):
            assert INTEGER_FUNCTIONS[name](x, y) == NUMPY[name](x, y), (x, y)


@pytest.mark.numba
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NUMPY)
def test_compiled_form(name: str, dtype: str) -> None:
    pairs = np.array(corners(name, dtype), np.dtype(dtype)).T.copy()
    x, y, out = *pairs, np.empty(pairs.shape[1], pairs.dtype)
    text = f"def kernel(x, y, out, start, stop):\n    for i in range(start, stop):\n        out[i] = {name}(x[i], y[i])\n"
    kind = "i64*" if dtype == "l" else "u64*"
    code = compile_entry(text, "kernel", native_names(), params=(kind, kind, kind), key=None)

    run(code, table(x, y, out), 0, x.size)

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, NUMPY[name](x, y))


def test_every_function_has_a_test_here_or_is_tested_with_the_random_numbers() -> None:
    assert set(INTEGER_FUNCTIONS) - set(NUMPY) == {"philox_bits_u64"}
