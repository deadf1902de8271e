"""Short strides of the innermost loop are numbers in the kernel's text, so that LLVM vectorises the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit


def only_source(function: Any, *args: Any) -> str:
    compiled = jit(function, check="off")
    compiled(*args)
    (kernel,) = compiled.kernels(*args)
    return str(kernel.source)


@pytest.mark.parametrize(("step", "dtype", "text"), [
    (3, "f8", "i * 3"), (-1, "f4", "i * -1"), (-2, "i4", "i * -2"), (64, "f4", "i * 64"), (-1, "i1", "i * -1"),
    (65, "f4", "i * x0_i0"), (3, "i1", "i * x0_i0"), (2, "i2", "i * x0_i0"),
])  # fmt: skip
def test_stride_in_the_text(step: int, dtype: str, text: str, same: Any) -> None:
    x = jg.tensor(np.arange(1, 10 * abs(step) + 1).astype(dtype))

    assert f"x0[{text}]" in only_source(lambda x: x[::step] + x[::step], x)
    same(lambda x: x[::step] + x[::step], x)


def test_columns_of_a_matrix_and_their_gradients(same: Any) -> None:
    def loss(p: Any) -> Any:
        r2 = sum((p[:, k : k + 1] - p[:, k : k + 1].T) ** 2 for k in range(3))
        return jg.exp(-r2).sum()

    same(jg.value_and_grad(loss), jg.tensor(np.random.default_rng(0).normal(size=(20, 3))), rtol=1e-12, atol=1e-12)


@pytest.mark.numba
@pytest.mark.parametrize("step", [-3, -1, 2, 3, 5, 8, 9, 20])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "i4", "i8"])
def test_machine_code(step: int, dtype: str, same: Any) -> None:
    x = jg.tensor((np.random.default_rng(0).normal(size=70 * abs(step) + 1) * 9).astype(dtype))

    same(lambda x: (x[::step] * 2 + 1, x[1:][::step] - x[:-1][::step]), x)
