"""The python backend: kernels that a debugger can step through, with bounds checks."""

from __future__ import annotations

import linecache
import sys
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.python import Pointer, passed
from jitgrad.jit.decorator import jit
from jitgrad.runtime.executor.launch import Launch


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def test_a_pointer_stays_in_its_buffer() -> None:
    p = Pointer(np.arange(4.0), 1)

    assert p[0] == 1.0
    p[2] = 7.0
    assert p.array.tolist() == [0.0, 1.0, 2.0, 7.0]
    for k in (-2, 3):
        with pytest.raises(IndexError, match="buffer of 4"):
            p[k]
        with pytest.raises(IndexError, match="buffer of 4"):
            p[k] = 0.0


@pytest.mark.parametrize("number", [0.0, -0.0, 1 / 3, -1e30, float("inf")])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_floats_are_passed_as_bit_patterns(number: float, kind: str) -> None:
    dtype = np.dtype(kind.replace("f32", "f4").replace("f64", "f8"))
    word = int(np.array(number, dtype).view(f"i{dtype.itemsize}"))

    found = passed(word, kind)

    assert found == dtype.type(number) and np.signbit(found) == np.signbit(number) and found.dtype == dtype
    assert passed(-5, "i64") == -5


def test_the_source_of_a_kernel_is_found_by_tracebacks_and_debuggers() -> None:
    x = jg.tensor(np.arange(3.0))
    (step,) = jit(lambda x: jg.tanh(x) * 2.0, check="off").lookup(x).program.steps
    assert isinstance(step, Launch)
    code = step.kernel.main_code.__code__

    assert "tanh" in "".join(linecache.getlines(code.co_filename))


def test_kernels_can_be_stepped_line_by_line() -> None:
    f = jit(lambda x: jg.tanh(x) * 2.0 + 1.0, check="off")
    x = jg.tensor(np.arange(3.0))
    f(x)
    seen: list[dict[str, Any]] = []

    def tracer(frame: Any, event: str, _arg: Any) -> Any:
        if "jitgrad kernel" in frame.f_code.co_filename and event == "return":
            seen.append(dict(frame.f_locals))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        f(x)
    finally:
        sys.settrace(before)

    last = [s for s in seen if "i" in s][-1]
    assert last["i"] == 2
    assert np.isclose(float(np.tanh(2.0) * 2.0 + 1.0), max(v for k, v in last.items() if k.startswith("t")))


def test_one_structure_is_compiled_once() -> None:
    def make(n: int) -> Any:
        return jit(lambda x: jg.sin(x) * 0.123 - jg.cos(x), check="off"), jg.ones(n)

    first, x = make(3)
    second, y = make(50)
    first(x), second(y)

    a, b = (g.lookup(z).program.kernels[0] for g, z in ((first, x), (second, y)))
    assert a is b
    assert second.cache_info().kernels_compiled == 0
