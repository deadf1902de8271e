"""torch's ``out=``, and names that programs use beside it: checkpoint_sequential, chunk_size, ``layer.weight += y``."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, ShapeError
from jitgrad.utils.checkpoint import checkpoint_sequential

X = np.array([[1.0, -2.0], [3.0, 4.0]], dtype=np.float32)
CALLS = {
    "add": lambda m, x, out: m.add(x, x, out=out),
    "mul by keywords": lambda m, x, out: m.mul(input=x, other=2.0, out=out),
    "exp": lambda m, x, out: m.exp(x, out=out),
    "sum": lambda m, x, out: m.sum(x, 0, out=out),
    "matmul": lambda m, x, out: m.matmul(x, x, out=out),
    "cat": lambda m, x, out: m.cat([x, x], dim=1, out=out),
    "stack": lambda m, x, out: m.stack([x, x], out=out),
    "where": lambda m, x, out: m.where(x > 0.0, x, -x, out=out),
    "zeros": lambda m, x, out: m.zeros(3, out=out),
    "arange": lambda m, x, out: m.arange(4.0, out=out),
    "clamp": lambda m, x, out: m.clamp(x, min=0.0, out=out),
}


@pytest.fixture
def torch_names() -> ModuleType:
    return importlib.import_module("jitgrad.torch")


@pytest.mark.peers
@pytest.mark.parametrize("name", CALLS)
def test_out_is_torchs(torch_names: ModuleType, name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    expected = CALLS[name](torch, torch.tensor(X), torch.empty(0)).numpy()
    full = torch_names.full(expected.shape, 7.0)
    for out in (torch_names.empty(0), full, full.double()):
        assert CALLS[name](torch_names, torch_names.tensor(X), out) is out
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_out_in_a_compiled_function_and_of_pairs(torch_names: ModuleType) -> None:
    buffer = torch_names.zeros(2, 2)
    view = buffer[0]
    product = jg.jit(lambda x: torch_names.matmul(x, x, out=buffer) + 1.0, backend="python")
    assert product(torch_names.tensor(X)).tolist() == (X @ X + 1.0).tolist()
    assert buffer.tolist() == (X @ X).tolist() and view.tolist() == (X @ X)[0].tolist()
    values, places = torch_names.empty(0), torch_names.empty(0, dtype=jg.int64)
    found = torch_names.topk(torch_names.tensor([1.0, 3.0, 2.0]), 2, out=(values, places))
    assert found.values is values and values.tolist() == [3.0, 2.0] and places.tolist() == [1, 2]


@pytest.mark.parametrize(
    "error, match, call",
    [
        (AutogradError, "no gradients", lambda m: m.exp(m.ones(2, requires_grad=True), out=m.empty(2))),
        (ShapeError, "does not fit", lambda m: m.exp(m.ones(2), out=m.empty(3))),
        (DtypeError, "cannot write", lambda m: m.exp(m.ones(2), out=m.empty(2, dtype=m.int64))),
        (ArgumentError, "out= is a tensor", lambda m: m.exp(m.ones(2), out=np.empty(2))),
        (ArgumentError, "tuple of 2", lambda m: m.topk(m.ones(2), 1, out=m.empty(2))),
    ],
)
def test_out_that_does_not_fit_is_refused(torch_names: ModuleType, error: type[Exception], match: str, call: Any) -> None:
    with pytest.raises(error, match=match):
        call(torch_names)


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_checkpoint_sequential_is_the_sequence(segments: int) -> None:
    layers = [jg.tanh, lambda x: x * 3.0, jg.sigmoid]
    x = jg.tensor([0.3, -1.0], requires_grad=True)
    checkpoint_sequential(layers, segments, x, use_reentrant=False).sum().backward()

    expected = jg.grad(lambda x: jg.sigmoid(jg.tanh(x) * 3.0).sum())(x.detach())
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-6)
    with pytest.raises(ArgumentError, match="cannot make 4 segments"):
        checkpoint_sequential(layers, 4, x)


def test_vmap_takes_chunk_size() -> None:
    assert jg.vmap(lambda x: x * 2.0, chunk_size=2)(jg.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_a_frozen_parameter_may_be_changed_in_place_by_an_operator() -> None:
    layer = nn.Linear(2, 2)
    layer.weight.requires_grad_(False)
    before = layer.weight.clone()
    layer.weight += 1.0
    np.testing.assert_allclose(layer.weight.numpy(), before.numpy() + 1.0)
    with pytest.raises(ArgumentError, match="is a parameter"):
        layer.weight = layer.weight + 1.0
