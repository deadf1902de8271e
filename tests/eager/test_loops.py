"""Ops that NumPy computes in several passes run as one compiled loop once they come back often, with the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import jitgrad as jg
from jitgrad.backends import eager_loops
from jitgrad.backends.array_memory import install_handler
from jitgrad.backends.llvm.ufunc import numpy_loop
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.eager import loops
from jitgrad.eager.large_arrays import LARGE_ELEMENTS, allowing_kernels
from jitgrad.eager.loops import Loop
from jitgrad.eager.run import loop_for
from jitgrad.ops import random_numbers
from jitgrad.ops.random_numbers import NumberKind

OPS = [op for op in REGISTRY.values() if op.one_loop]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 6.0, 1e-40, 1e-30, 1e30, 200.0, -200.0, np.inf, -np.inf, np.nan]


def _operands(op: OpDef, dtype: str) -> list[np.ndarray[Any, Any]]:
    """Special numbers in all combinations, and many of each size."""
    random = np.random.default_rng(0)
    columns = np.array(list(product(SPECIAL, repeat=len(op.operands))), dtype).T
    many = [random.normal(0, 1, 3000) * 10.0 ** random.integers(-3, 4, 3000) for _ in op.operands]
    return [np.concatenate([column, x.astype(dtype)]) for column, x in zip(columns, many, strict=True)]


def _bits(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Equal for equal bits, and for any two NaNs."""
    whole = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    return whole.view(f"u{x.itemsize}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", OPS, ids=str)
def test_a_loop_has_the_bits_of_numpy(op: OpDef, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    arrays = _operands(op, dtype)
    if op.name == "where":
        arrays[0] = arrays[0] > 0
    loop = loops.loop_of_op(op, tuple(x.dtype for x in arrays), tuple(k > 0 for k in range(len(arrays))))
    ufunc = eager_loops.compile_loop(loop)
    assert ufunc is not None

    with np.errstate(all="ignore"):
        expected = op.eager(*arrays)
        np.testing.assert_array_equal(_bits(ufunc(*arrays)), _bits(expected))
        np.testing.assert_array_equal(_bits(ufunc(*[x[::-3] for x in arrays])), _bits(expected[::-3]))
        number = [x[7] if k else x for k, x in enumerate(arrays)]
        np.testing.assert_array_equal(_bits(ufunc(*number)), _bits(np.asarray(op.eager(*map(np.asarray, number)))))


@pytest.mark.parametrize(
    "kind", [random_numbers.BITS, *random_numbers.UNITS.values(), *random_numbers.NORMALS.values()]
)
def test_random_numbers_have_the_bits_of_numpy(kind: NumberKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_numbers, "DRAWN_AT_ONCE", 64)
    random_numbers._positions.cache_clear()
    calls: list[tuple[Any, ...]] = [(2**64 - 5, 2**63 - 9, 1001), (7, 0, 64), (7, 2**32 - 3, 63)]
    expected = [(kind.draw(*call), *([kind.draw_pairs(*call[:2], 7, 5)] if kind.words == 2 else [])) for call in calls]
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    loop = random_numbers._loop(kind)
    monkeypatch.setattr(loop, "ufunc", eager_loops.compile_loop(loop))

    for call, arrays in zip(calls, expected, strict=True):
        np.testing.assert_array_equal(kind.draw(*call), arrays[0])
        if kind.words == 2:
            np.testing.assert_array_equal(kind.draw_pairs(*call[:2], 7, 5), arrays[1])
    random_numbers._positions.cache_clear()


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Loop]]:
    """The loops that were to be compiled; a loop doubles what NumPy computes."""
    made: list[Loop] = []

    def maker(loop: Loop) -> Any:
        made.append(loop)
        return lambda *arrays, out: 2 * REGISTRY[loop.name].eager(*arrays)

    monkeypatch.setattr(loops, "_USES", 30)
    monkeypatch.setattr(loops._Registered, "maker", staticmethod(maker))
    loops.loop_of_op.cache_clear()
    yield made
    loops.loop_of_op.cache_clear()


def test_a_loop_runs_once_the_op_has_come_back(makers: list[Loop]) -> None:
    x = jg.tensor(np.linspace(-1, 1, 3557))  # of a shape that no other test plans
    first = jg.erfc(x).numpy()
    assert not makers
    while not makers:
        jg.erfc(x)

    np.testing.assert_array_equal(jg.erfc(x).numpy(), 2 * first)
    with jg.disable_jit():  # as does the check of a first call
        np.testing.assert_array_equal(jg.erfc(x).numpy(), first)
    assert [loop.name for loop in makers] == ["erfc"]


def test_python_numbers_beside_a_large_array_run_loops(makers: list[Loop]) -> None:
    x = jg.tensor(np.linspace(-3, 3, LARGE_ELEMENTS), dtype="float32")
    with jg.disable_jit():
        expected = jg.hardtanh(x, -0.5, 2.0).numpy()

    np.testing.assert_array_equal(jg.hardtanh(x, -0.5, 2.0).numpy(), 2 * expected)
    assert [(loop.name, loop.numbers) for loop in makers] == [("hardtanh", (False, True, True))]


def test_gradients_run_loops(makers: list[Loop]) -> None:
    x = jg.tensor(np.linspace(-1, 1, 3559), requires_grad=True)
    for _ in range(12):
        jg.gelu(x).sum().backward()

    assert {"gelu", "erf"} <= {loop.name for loop in makers}


def test_what_kernels_of_large_arrays_compute_and_other_dtypes_have_no_loop(makers: list[Loop]) -> None:
    for _ in range(40):
        jg.gelu(jg.ones(3, dtype="float16"))
        jg.relu(jg.tensor([1, 2, 3]))
    with allowing_kernels(False):
        jg.gelu(jg.ones(LARGE_ELEMENTS))
    assert loop_for(REGISTRY["gelu"], [Aval((LARGE_ELEMENTS,), np.dtype("f4"))], {}) is None

    assert not makers


@pytest.mark.parametrize("name", ["relu", "hardswish"])
def test_large_results_of_loops_lie_in_kept_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    Context().run(install_handler, True)  # else it may still be compiled
    op, x = REGISTRY[name], np.random.default_rng(0).normal(size=(2, LARGE_ELEMENTS)).astype("f4")
    loop = loops.loop_of_op(op, (x.dtype,), (False,))
    monkeypatch.setattr(loop, "ufunc", eager_loops.compile_loop(loop))

    for array in (x, x.T, x[:, ::2], x[:1]):
        result = getattr(jg, name)(jg.asarray(array)).numpy()
        np.testing.assert_array_equal(_bits(result), _bits(op.eager(array)))
        assert result.strides == op.eager(array).strides
        assert get_handler_name(result if result.base is None else result.base) == "jitgrad"


@pytest.mark.parametrize("count", [0, 1, 7, 1023, 1024, 1025, 5000])
def test_loops_in_blocks_read_and_write_elements_that_are_apart(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    op = REGISTRY["softplus"]  # NumPy computes its exponential
    limit = np.array(20, "f4")
    ufunc = eager_loops.compile_loop(loops.loop_of_op(op, (np.dtype("f4"),) * 3, (False, True, True)))
    assert ufunc is not None
    x = np.random.default_rng(0).normal(size=(count, 3)).astype("f4")
    alphas, alpha = x[:, 1] + 2, np.array(0.5, "f4")
    out = np.full((count, 3), 9, "f4")

    np.testing.assert_array_equal(_bits(ufunc(x[:, 0], alpha, limit, out=...)), _bits(op.eager(x[:, 0], alpha, limit)))
    ufunc(x[:, 0], alphas[::-1], limit, out=out[:, 1])
    np.testing.assert_array_equal(_bits(out[:, 1]), _bits(op.eager(x[:, 0], alphas[::-1], limit)))
    assert (out[:, ::2] == 9).all()


def test_the_loops_of_numpy_are_found_by_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    found = numpy_loop(np.exp, np.dtype("f8"))
    assert found is not None
    assert found != numpy_loop(np.exp, np.dtype("f4"))
    assert numpy_loop(np.exp, np.dtype("i8")) is None
    assert numpy_loop(np.add, np.dtype("f8")) is None

    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    monkeypatch.setattr("jitgrad.backends.eager_stages.numpy_loop", lambda _ufunc, _dtype: None)
    assert eager_loops.compile_loop(loops.loop_of_op(REGISTRY["sigmoid"], (np.dtype("f4"),), (False,))) is None


def test_other_backends_compile_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = loops.loop_of_op(REGISTRY["erf"], (np.dtype("f4"),), (False,))
    for name, value in (("JITGRAD_BACKEND", "python"), ("JITGRAD_DISABLE", "1")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert eager_loops.compile_loop(loop) is None


def test_the_text_of_a_loop() -> None:
    loop = Loop("leaky_relu", jg.leaky_relu, [np.dtype("f4"), np.dtype("f4")], [False, True])

    text = eager_loops.kernel_text(eager_loops._traced(loop), loop.numbers, strided=False)
    assert text.splitlines()[:4] == [
        "def kernel(x0, x1, y0, start, stop):",
        "    a1 = x1[0]",
        "    for i in range(start, stop):",
        "        a0 = x0[i]",
    ]
    assert "i * s2" in eager_loops.kernel_text(eager_loops._traced(loop), loop.numbers, strided=True)
