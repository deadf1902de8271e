"""Every op of the registry on arrays with a zero-length axis: compiled, forward and gradients, as eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import JitgradError
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.testing.samples import DOMAINS, sample_operands

OPS = [op for op in REGISTRY.values() if op.domain and DOMAINS.keys() >= set(op.domain)]
SHAPES = [(0,), (3, 0), (2, 0, 3)]
ERRORS = (JitgradError, ValueError, TypeError, IndexError)


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def listed(results: Any) -> list[jg.Tensor]:
    return list(results) if isinstance(results, tuple) else [results]


def assert_equal(found: Any, expected: Any) -> None:
    for a, b in zip(listed(found), listed(expected), strict=True):
        assert a.aval == b.aval
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def weighed(op: OpDef, *xs: jg.Tensor) -> Any:
    outs = listed(apply_op(op, *xs, **op.sample_attrs))
    return sum(((out * 1.5).sum().real for out in outs if out.dtype.kind in "fc"), start=jg.zeros(()))


@pytest.mark.parametrize("dtype", ["f4", "i8", "?"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", OPS, ids=str)
def test_results_are_those_of_eager(op: OpDef, shape: tuple[int, ...], dtype: str) -> None:
    xs = [jg.tensor(x) for x in sample_operands(op, np.random.default_rng(0), shape, dtype)]
    compiled = jg.jit(lambda *xs: apply_op(op, *xs, **op.sample_attrs))

    try:
        expected = compiled.eager(*xs)
    except ERRORS as error:
        with pytest.raises(type(error)):
            compiled(*xs)
    else:
        assert_equal(compiled(*xs), expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", [op for op in OPS if op.vjp is not None], ids=str)
def test_gradients_are_those_of_eager(op: OpDef, shape: tuple[int, ...]) -> None:
    arrays = sample_operands(op, np.random.default_rng(0), shape, "f4")
    xs = [jg.tensor(x) for x in arrays]
    positions = tuple(k for k, x in enumerate(xs) if x.dtype.kind in "fc")
    step = jg.grad(lambda *xs: weighed(op, *xs), argnums=positions)
    try:
        expected = listed(step(*xs))
    except ERRORS as error:
        pytest.skip(f"not differentiable: {error}")

    assert_equal(jg.jit(step)(*xs), tuple(expected))
    leaves = [jg.tensor(x, requires_grad=x.dtype.kind in "fc") for x in arrays]
    jg.jit(lambda *xs: weighed(op, *xs))(*leaves).backward()
    for k, gradient in zip(positions, expected, strict=True):
        found = leaves[k].grad
        assert_equal(jg.zeros_like(leaves[k].detach()) if found is None else found, gradient)


def test_a_library_call_reads_a_turned_array_without_elements() -> None:
    """Its strides and the length of the other axis do not fit into memory of no bytes."""
    w = jg.zeros((0, 5)).requires_grad_(True)

    def f(x: Any) -> Any:
        ((w * w).sum() * x[:, ::-1].sum()).backward()
        return x[:, ::-1] * x

    assert_equal(jg.jit(f)(jg.zeros((0, 5))), f(jg.zeros((0, 5))))
