"""The numba target computes the bits of the cpu target, but for sums that LLVM may reassociate."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.targets import TARGETS
from jitgrad.core.errors import ArgumentError
from jitgrad.eager import buffer_pool
from jitgrad.ops.user import elementwise
from jitgrad.testing.programs import RandomProgram, random_program
from tests.compiled import leaves
from tests.compiler.test_golden import CASES
from tests.machine_code import needs_f16c

pytestmark = [pytest.mark.numba, pytest.mark.filterwarnings("ignore::jitgrad.core.errors.RetraceWarning")]
BOUND = {"f2": 2e-3, "f4": 4e-6, "f8": 1e-14}  # of the largest element, where sums are reassociated


def assert_agree(function: Callable[..., Any], *args: Any) -> str:
    """The source of the kernels, after both targets have run them.

    Kernels without ``reassoc_`` have to agree in every bit. LLVM may choose other vector widths for the others, so the
    order of their sums differs.
    """
    compiled = {name: jg.jit(function, check="off", backend=name) for name in ("cpu", "numba")}
    expected, found = (leaves(compiled[name](*args)) for name in ("cpu", "numba"))
    source = "\n".join(kernel.source for kernel in compiled["numba"].kernels(*args))
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if "reassoc_" in source and a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=0, atol=BOUND[a.dtype.str[1:]] * np.abs(b).max(initial=0))
        else:
            assert a.tobytes() == b.tobytes(), source
    return source


def normal(*shape: int, dtype: str = "f4") -> jg.Tensor:
    return jg.tensor((np.random.default_rng(0).normal(size=shape) * 3).astype(dtype))


@pytest.mark.parametrize("name", CASES)
def test_golden_kernels(name: str) -> None:
    function, shapes = CASES[name]
    assert_agree(function, *(normal(*shape) for shape in shapes))


def integers(x: Any, y: Any) -> Any:
    return x * y + x, x // y, x % y, x << 2, -x, jg.maximum(x, y), x > y, x.sum(axis=0)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u4", "u8"])
def test_integers(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (jg.tensor(rng.integers(0, 200, (7, 33)).astype(dtype)) for _ in range(2))
    assert_agree(integers, x, y)


def normalise(x: Any, w: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return jg.softmax(centred * w, axis=1), (x > w).any(axis=1), centred.max(axis=0), (x * 0.3).sum()


@elementwise
def bent(x: Any, y: Any) -> Any:
    return x * y if x > 0 else y - 1.0


def filled(x: Any) -> Any:
    return jg.tanh(x) * 0.1 + x * x


FORMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], str]] = {
    "long rows": (normalise, [(5, 300), (300,)], "reassoc_"),
    "short rows": (normalise, [(200, 5), (5,)], "transpose_rows_in"),
    "vectorized rows": (normalise, [(3, 20, 100), (20, 1)], "while "),
    "transposed tile": (lambda x, y: x.T + y, [(130, 120), (120, 130)], "transpose_tile"),
    "nontemporal": (filled, [(300, 400)], "stream"),
    "user function": (bent, [(7, 9), (9,)], "bent"),
}


# every form in f4 and in another format
OTHER_FORMATS = [pytest.param(form, ("f2", "f8")[k % 2], marks=[needs_f16c][k % 2 :]) for k, form in enumerate(FORMS)]


@pytest.mark.parametrize(("form", "dtype"), [*((form, "f4") for form in FORMS), *OTHER_FORMATS])
def test_forms_of_kernels(form: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for target in (TARGETS["cpu"], TARGETS["numba"]):
        small = replace(target.tuning, min_nontemporal_bytes=0, min_nontemporal_result=buffer_pool.SMALL)
        monkeypatch.setattr(target, "tuning", small)
    function, shapes, token = FORMS[form]
    source = assert_agree(function, *(normal(*shape, dtype=dtype) for shape in shapes))
    assert token in source, source


def test_random_numbers() -> None:
    def draw(x: Any) -> Any:
        return jg.dropout(x, 0.5)

    found = []
    for backend in ("cpu", "numba"):
        jg.manual_seed(3)
        found.append(jg.jit(draw, check="off", backend=backend)(normal(40, 50)).numpy())
    assert found[0].tobytes() == found[1].tobytes()


def values_and_gradients(program: RandomProgram) -> Callable[..., Any]:
    def loss(*xs: Any) -> Any:
        return sum((y * y).sum() for y in program(*xs))

    return lambda *xs: (program(*xs), jg.grad(loss, argnums=tuple(range(len(xs))))(*xs))


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 300))])
def test_random_programs(seed: int) -> None:
    program = random_program(seed)
    for dtype in ("f4", "f8") if seed >= 6 else ("f4", "f8")[seed % 2 :][:1]:
        args = [jg.tensor(x) for x in program.operands(np.dtype(dtype))]
        assert_agree(values_and_gradients(program), *args)


def test_numba_is_imported_at_the_first_compile() -> None:
    code = (
        "import sys, jitgrad as jg\n"
        "f = jg.jit(lambda x: x * x, check='off', backend='numba')\n"
        "assert 'numba' not in sys.modules\n"
        "f(jg.ones((3,)))\n"
        "assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_show_their_machine_code() -> None:
    (kernel,) = jg.jit(filled, check="off", backend="numba").kernels(normal(40))
    assert "define" in kernel.llvm and "ret" in kernel.asm


@pytest.mark.parametrize("name", ["cpu", "numba", "python"])
def test_the_keyword_goes_before_the_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "nonsense")

    class Model:
        @jg.jit(backend=name)
        def __call__(self, x: Any) -> Any:
            return x * 2.0

    assert Model()(jg.ones((3,))).numpy().tolist() == [2.0, 2.0, 2.0]


def test_wrong_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="backend='gpu': expected one of cpu, numba, python"):
        jg.jit(lambda x: x, backend="gpu")
    monkeypatch.setenv("JITGRAD_BACKEND", "gpu")
    with pytest.raises(ArgumentError, match="JITGRAD_BACKEND='gpu': expected one of cpu, numba, python"):
        jg.jit(lambda x: x * 1.0)(jg.ones((3,)))
