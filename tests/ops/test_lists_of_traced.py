"""``tensor([...])`` of lists with traced tensors and numbers is what eager execution makes of their values."""

from __future__ import annotations

from typing import Any

import pytest

import jitgrad as jg

LISTS = {
    "tensors": lambda s, r: [s * 2, s * 3],
    "a matrix of tensors and numbers": lambda s, r: [[s, 1.0], [2, s]],
    "numbers of the caller": lambda s, r: [r, r * 0.5, 1.0],
    "numbers and ints": lambda s, r: [r * 2, 1],
    "a tuple": lambda s, r: (s, s > 1.0),
    "vectors": lambda s, r: [s + jg.arange(3), s * jg.ones(3)],
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("dtype", [None, jg.float64, jg.int64])
def test_a_list_of_traced_values_is_the_eager_one(name: str, dtype: Any) -> None:
    def f(x: jg.Tensor, rate: float) -> jg.Tensor:
        return jg.tensor(LISTS[name](x.mean(), rate), dtype=dtype)

    x = jg.tensor([1.0, 2.0, 4.5])
    eager, compiled = f(x, 3.0), jg.jit(f)(x, 3.0)
    assert compiled.dtype == eager.dtype
    assert compiled.shape == eager.shape
    assert compiled.tolist() == pytest.approx(eager.tolist()) if eager.ndim < 2 else compiled.tolist() == eager.tolist()


def test_the_new_tensor_has_no_history() -> None:
    x = jg.tensor([1.0, 2.0], requires_grad=True)

    @jg.jit
    def f(x: jg.Tensor) -> jg.Tensor:
        return (jg.tensor([x.sum().detach(), 2.0]) * x).sum()

    f(x).backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 2.0]
