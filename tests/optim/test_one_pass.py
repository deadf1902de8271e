"""Updates of optimizers in one pass of machine code: the bits of the ops, for gradients in any layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.eager_rows import compile_rows
from jitgrad.core.tensor import Tensor
from jitgrad.eager import row_programs
from jitgrad.eager.large_arrays import allowing_kernels
from jitgrad.eager.row_programs import RowBinder, RowProgram
from jitgrad.ops.arithmetic import multiply, subtract
from jitgrad.ops.inplace import assign
from jitgrad.optim import one_pass
from jitgrad.optim.optimizer import Optimizer

STEPS = 7
OPTIMIZERS: dict[str, Callable[[list[Tensor]], Optimizer]] = {
    "SGD": lambda p: jg.optim.SGD(p, lr=0.1),
    "SGD nesterov": lambda p: jg.optim.SGD(p, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True),
    "Adam amsgrad": lambda p: jg.optim.Adam(p, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: jg.optim.AdamW(p),
    "RMSprop": lambda p: jg.optim.RMSprop(p, centered=True, momentum=0.5),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RowProgram]]:
    """The programs that are compiled, at once, of a few elements each."""
    programs: list[RowProgram] = []

    def maker(program: RowProgram) -> RowBinder | None:
        programs.append(program)
        return compile_rows(program)

    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    monkeypatch.setattr(row_programs, "_USES", 0)
    monkeypatch.setattr(row_programs._Registered, "maker", staticmethod(maker))
    monkeypatch.setattr(one_pass, "_STRETCH", 64)
    monkeypatch.setattr(one_pass, "_LEAST", 0)
    row_programs.kernel_of.cache_clear()
    yield programs
    row_programs.kernel_of.cache_clear()


def trained(make: Callable[[list[Tensor]], Optimizer], dtype: str, gradient: Callable[[np.ndarray], np.ndarray]) -> list[bytes]:
    rng = np.random.default_rng(0)
    params = [jg.tensor(rng.normal(size=shape).astype(dtype), requires_grad=True) for shape in ((11, 13), (64,), (3, 2, 5))]
    optimizer = make(params)
    for _ in range(STEPS):
        for p in params:
            p.grad = Tensor(gradient(rng.normal(size=p.shape).astype(dtype)))
        optimizer.step()
    return [t.detach().numpy().tobytes() for t in (*params, *optimizer.state_dict().values())]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_have_the_bits_of_the_ops(name: str, dtype: str, made: list[RowProgram]) -> None:
    with allowing_kernels(False):
        expected = trained(OPTIMIZERS[name], dtype, np.array)
    assert not made

    assert trained(OPTIMIZERS[name], dtype, np.array) == expected
    assert made
    assert trained(OPTIMIZERS[name], dtype, np.asfortranarray) == expected


def test_a_parameter_that_shares_memory_with_its_gradient_is_updated_op_by_op(made: list[RowProgram]) -> None:
    def backwards() -> list[bytes]:
        p = jg.tensor(np.linspace(1, 2, 200), requires_grad=True)
        optimizer = jg.optim.Adam([p], lr=0.1)
        for _ in range(STEPS):
            p.grad = Tensor(p.detach().numpy()[::-1])
            optimizer.step()
        return [p.detach().numpy().tobytes()]

    with allowing_kernels(False):
        expected = backwards()

    assert backwards() == expected
    assert made


class ReadsAfterWriting(Optimizer, recordable=True):
    """Changes the parameter twice, the second time by what the first one left."""

    def update(self, _k: int, p: Tensor, g: Tensor, _options: Mapping[str, Any], *_common: Tensor) -> None:
        assign(p, subtract(p, multiply(g, 0.1)))
        assign(p, subtract(p, multiply(multiply(p, p), 0.1)))


def test_a_parameter_that_is_read_after_a_write_is_left_to_the_ops(made: list[RowProgram]) -> None:
    def make(params: list[Tensor]) -> Optimizer:
        return ReadsAfterWriting(params, 0.1)

    with allowing_kernels(False):
        expected = trained(make, "f4", np.array)

    assert trained(make, "f4", np.array) == expected
    assert not made
