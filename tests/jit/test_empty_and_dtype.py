"""Zero-length axes and the dtypes of reductions: eager, compiled and NumPy agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

EMPTY = {
    "zeros_like": (jg.zeros_like, (0, 2)),
    "tile": (lambda x: jg.tile(x, (0, 0, 3)), (3,)),
    "repeat none of it": (lambda x: jg.repeat(x, 0), (3,)),
    "repeat nothing": (lambda x: jg.repeat(x, []), (0,)),
    "sum over nothing": (lambda x: (x * 2.0).sum(axis=0) + x.sum(), (0, 2)),
    "sum of nothing": (lambda x: jg.exp(x).sum(axis=1), (0, 3)),
    "softmax": (lambda x: jg.softmax(x, axis=1), (0, 3)),
    "windows": (lambda x: x.reshape(4, 0, 2).sum(axis=2), (4, 0)),
    "broadcast": (lambda x: x + jg.zeros((1, 5)), (0, 1)),
    "pad": (lambda x: jg.pad(x * 2.0, ((1, 1), (0, 0))), (0, 2)),
}


@pytest.mark.parametrize("f, shape", EMPTY.values(), ids=EMPTY)
def test_zero_length_axes(f: Any, shape: tuple[int, ...]) -> None:
    x = jg.tensor(np.ones(shape, np.float32))

    np.testing.assert_array_equal(jg.jit(f)(x).numpy(), f(x).numpy())
    gradient = jg.jit(jg.grad(lambda x: jg.sum(f(x) * 1.0)))(x)
    assert gradient.shape == shape


@pytest.mark.parametrize("dtype", [*"bhilBHIL?", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum"])
def test_reductions_give_the_dtype_that_was_asked_for(name: str, dtype: str) -> None:
    a = np.array([100, 3, 100, 7], np.int32)
    with np.errstate(over="ignore"):  # the product is infinite in float16
        expected = getattr(np, name)(a, dtype=dtype)
    function = getattr(jg, name)

    for f in (lambda x: function(x, dtype=dtype), jg.jit(lambda x: function(x, dtype=dtype))):
        found = f(jg.tensor(a)).numpy()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [2, 80])
@pytest.mark.parametrize("axis", [0, 1])
def test_extrema_of_bools(rows: int, axis: int) -> None:
    a = np.random.default_rng(0).integers(0, 2, (rows, 3)).astype(bool)

    for f, g in ((jg.max, np.max), (jg.min, np.min)):
        np.testing.assert_array_equal(jg.jit(lambda x, f=f: f(x, axis=axis))(jg.tensor(a)).numpy(), g(a, axis=axis))

def test_a_value_without_elements_shares_no_kernel_with_one_that_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of the former never runs, and the latter would be what its memory held before."""
    monkeypatch.setenv("JITGRAD_BACKEND", "python")

    def f(x: Any) -> Any:
        row = x[0]
        total = jg.sum(row, axis=0, keepdims=True) * 0.3
        return total, (row * total).clone()

    compiled = jg.jit(f, check="off")
    for _ in range(3):
        assert compiled(jg.zeros((3, 0)))[0].tolist() == [0.0]
