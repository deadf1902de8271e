"""Loops of float16: they have NumPy's bits for every number, and run once a call comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.eager_loops import compile_loop
from jitgrad.core.aval import strong_aval
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.eager import half_loops, loops
from jitgrad.eager.float16 import HALF, SINGLE, in_kernels
from jitgrad.eager.loops import Loop

pytestmark = pytest.mark.skipif(not in_kernels(), reason="the CPU converts no float16")

EVERY = np.arange(1 << 16, dtype=np.uint16).view(HALF)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 65504, -65504, 6e-8, -6e-8, 6.1e-5, 2048, 2049], HALF)


def loop_of(op: OpDef) -> Loop | None:
    if op.kind is not Kind.ELEMENTWISE or op.attrs or op.variadic:
        return None
    try:
        dtypes, out = op.dtypes([strong_aval((3,), HALF)] * len(op.operands))
    except DtypeError:  # of integers
        return None
    return half_loops._loop(op, tuple(dtypes), (False,) * len(dtypes), out) if set(dtypes) == {HALF} else None


LOOPS = {op.name: loop for op in REGISTRY.values() if (loop := loop_of(op)) is not None}


def operands(count: int) -> Iterator[list[np.ndarray[Any, Any]]]:
    """All numbers; of several operands each beside many others, and all pairs of special ones."""
    rng = np.random.default_rng(5)
    if count == 1:
        yield [EVERY]
        return
    for _ in range(4):
        yield [EVERY, *[rng.permutation(EVERY) for _ in range(count - 1)]]
    yield [np.ascontiguousarray(x).reshape(-1) for x in np.meshgrid(*[SPECIAL] * count)]


def assert_same_bits(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Signs of zeros and all; NaN's payload aside."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("name", LOOPS)
@np.errstate(all="ignore")
def test_loops_have_the_bits_of_numpy(name: str) -> None:
    op, ufunc = REGISTRY[name], compile_loop(LOOPS[name])
    assert ufunc is not None

    for xs in operands(len(op.operands)):
        assert_same_bits(ufunc(*xs), np.asarray(op.eager(*xs)))


def test_arithmetic_comparisons_and_roots_have_loops() -> None:
    assert {"add", "subtract", "multiply", "divide", "negative", "sqrt", "less", "equal", "floor", "abs"} <= LOOPS.keys()


def test_zeros_of_either_sign_keep_numpys_extrema() -> None:
    """In kernels 0 is above -0, and for NumPy the first of the two is the extreme."""
    assert not {"maximum", "minimum", "clip"} & LOOPS.keys()


@np.errstate(all="ignore")
def test_casts_have_the_bits_of_numpy() -> None:
    wide = EVERY.astype(SINGLE)
    rng = np.random.default_rng(3)
    near = [wide, np.nextafter(wide, SINGLE.type(0)), np.nextafter(wide, SINGLE.type(np.inf)), (wide[:-1] + wide[1:]) / 2]
    singles = np.concatenate([*near, rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(SINGLE)])
    to_half = half_loops._loop(REGISTRY["astype"], (SINGLE,), (False,), HALF)
    to_single = half_loops._loop(REGISTRY["astype"], (HALF,), (False,), SINGLE)
    assert to_half is not None
    assert to_single is not None

    narrow, widened = compile_loop(to_half), compile_loop(to_single)

    assert narrow is not None
    assert widened is not None
    assert_same_bits(narrow(singles), singles.astype(HALF))
    assert_same_bits(widened(EVERY), wide)


def test_other_casts_and_functions_are_numpys() -> None:
    double, astype = np.dtype(np.float64), REGISTRY["astype"]

    assert half_loops._loop(astype, (double,), (False,), HALF) is None
    assert half_loops._loop(astype, (HALF,), (False,), np.dtype(np.int32)) is None
    assert half_loops._loop(REGISTRY["exp"], (HALF,), (False,), HALF) is None
    assert half_loops._loop(REGISTRY["add"], (SINGLE, SINGLE), (False, False), SINGLE) is None


def test_they_run_once_a_call_comes_back_forward_and_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def maker(loop: Loop) -> Any:
        made.append(loop.name)
        return compile_loop(loop)

    monkeypatch.setattr(loops, "_USES", 30)
    monkeypatch.setattr(loops._Registered, "maker", staticmethod(maker))
    half_loops._loop.cache_clear()
    x = jg.tensor(np.linspace(-3, 3, 3557, dtype=SINGLE), requires_grad=True)  # of a shape that no other test plans
    for _ in range(20):
        half = x.half()
        ((half * 0.5).float()).sum().backward()
    half_loops._loop.cache_clear()

    assert {"astype", "multiply"} <= set(made)
    np.testing.assert_array_equal(half.detach().numpy(), x.detach().numpy().astype(HALF))
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3557, 10.0, SINGLE))


def test_layouts_are_numpys() -> None:
    x = jg.tensor(np.arange(64, dtype=HALF).reshape(8, 8))
    for _ in range(1100):
        y = x.T + x.T

    assert y.numpy().strides == (x.numpy().T + x.numpy().T).strides
    np.testing.assert_array_equal((x[::2, 1::3] + 1.0).numpy(), x.numpy()[::2, 1::3] + np.float16(1))
