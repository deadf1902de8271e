"""Control code behaves like the same Python text, and everything outside the dialect is refused."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_control_code
from jitgrad.core.errors import BackendError

pytestmark = pytest.mark.numba

# every function writes what it finds to ``out``
SOURCES = {
    "operators": """
def f(out, a, b, start, stop):
    out[0] = a + b * 3 - (a << 2)
    out[1] = (a >> 1) & 255 | b
    out[2] = -a + ~b
    out[3] = min(a, b) + max(a, 5) + select(a < b, 100, 200)
""",
    "division": """
def f(out, a, b, start, stop):
    out[0] = a // (b * b + 1)
    out[1] = a % (b * b + 1)
    out[2] = a // -(b * b + 1)
    out[3] = a % -(b * b + 1)
""",
    "comparisons": """
def f(out, a, b, start, stop):
    out[0] = (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b) + 32 * (a != b)
    out[1] = -3 <= a < b <= 40
    out[2] = not a < b
    out[3] = not (a < b and b < 9)
""",
    "conditions look no further than they must": """
def note(out, x):
    out[1] = out[1] + 1
    return x


def f(out, a, b, start, stop):
    if a < 0 and note(out, b) or b > 3 and note(out, 0):
        out[0] = 1
    out[2] = (a < 0 or b > 3) and not a == b
""",
    "branches": """
def sign(x):
    if x < 0:
        return -1
    elif x == 0:
        return 0
    else:
        return 1


def f(out, a, b, start, stop):
    out[0] = sign(a) + 10 * sign(b)
    if a > b:
        out[1] = 1
    if a and not b:
        out[2] = 5
""",
    "loops": """
def count(out, n):
    k = 0
    while k < n:
        k += 1
        if k > 1000:
            return
        for i in range(k):
            out[1] = out[1] + i
        for i in range(2, k, 3):
            out[2] = out[2] + i
        for i in range(k, 9):
            out[3] = out[3] - i


def f(out, a, b, start, stop):
    for i in range(start, stop):
        out[0] = out[0] + i
    count(out, a)
""",
    "addresses": """
def f(out, a, b, start, stop):
    second = out + 8
    second[0] = a
    second[1 + start] = out[1] + b
    a, b = b, a
    second[3] = a - b
    pass
""",
}
VALUES = [(0, 0), (7, 2), (-7, 2), (2, 9), (-1, -40), (13, 13), (40, -3), (5, 0)]


class Words:
    """What an address is in Python."""

    def __init__(self, array: np.ndarray, first: int = 0) -> None:
        self.array, self.first = array, first

    def __add__(self, size: int) -> Words:
        return Words(self.array, self.first + size // 8)

    def __getitem__(self, k: int) -> int:
        return int(self.array[self.first + k])

    def __setitem__(self, k: int, value: int) -> None:
        self.array[self.first + k] = value


def as_python(source: str, a: int, b: int) -> list[int]:
    names = {"select": lambda c, x, y: x if c else y}
    exec(source, names)
    out = np.zeros(8, np.int64)
    names["f"](Words(out), a, b, 0, 3)
    return out.tolist()


def as_machine_code(source: str, a: int, b: int) -> list[int]:
    code = compile_control_code(source, "f", "thread_pool")
    out = np.zeros(8, np.int64)
    table = np.array([out.ctypes.data, a, b], np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)(table.ctypes.data, 0, 3)
    return out.tolist()


@pytest.mark.parametrize("name", SOURCES)
def test_it_means_what_python_means(name: str) -> None:
    for a, b in VALUES:
        assert as_machine_code(SOURCES[name], a, b) == as_python(SOURCES[name], a, b), (a, b)


@pytest.mark.parametrize(
    "statement",
    [
        "out[0] = 1.5",
        "out[0] = a / b",
        "out[0] = a ** b",
        "out[0] = unknown",
        "out[0] = unknown(a)",
        "out[0] = a if b else 3",
        "out[0] = a is b",
        "out[0] = min(a, b=b)",
        "out.x = a",
        "for i in [1, 2]:\n        pass",
        "with a:\n        pass",
        "raise a",
    ],
)
def test_other_python_is_refused_with_its_line(statement: str) -> None:
    source = f"def f(out, a, b, start, stop):\n    a = b\n    {statement}\n"

    with pytest.raises(BackendError, match=r"^f, line 3: '.+' (is not part|cannot be compiled|is not defined|calls unknown)"):
        compile_control_code(source, "f", "thread_pool")


def test_it_needs_no_numba(tmp_path) -> None:
    text = (
        "import sys; from jitgrad.runtime.executor import instruction_loop; "
        "print(len(instruction_loop.loop().asm) > 0, 'numba' in sys.modules)"
    )
    environment = {**os.environ, "JITGRAD_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["True", "False"], done.stderr
