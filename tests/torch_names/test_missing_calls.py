"""Calls of torch that stopped programs, or meant something else: values, gradients and errors are torch's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError

torch: Any = pytest.importorskip("torch")
ours: Any = None  # jitgrad.torch, which each test imports anew


@pytest.fixture(autouse=True)
def names(methods_of_numpy: None) -> None:
    globals()["ours"] = importlib.import_module("jitgrad.torch")


X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


@pytest.mark.parametrize("dtypes", ["f4 i4", "i8 f8", "f8 u1", "u1 i2", "f2 i2"])
def test_view_as_another_dtype(dtypes: str) -> None:
    given, wanted = map(np.dtype, dtypes.split())
    x = (10 * np.random.default_rng(0).random((3, 8))).astype(given)
    expected = x.view(wanted)
    for view in (lambda x: x.view(wanted), jg.jit(lambda x: x.view(wanted))):
        found = view(jg.tensor(x)).numpy()
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    assert jg.tensor(x).view(4, 6).shape == (4, 6)
    with pytest.raises(ShapeError, match="multiple of 8"):
        jg.tensor(x[:, :3].astype(np.int8)).view(jg.float64)
    with pytest.raises(DtypeError, match="complex"):
        jg.tensor(x[:, :2].astype(np.complex128)).view(jg.float32)


def _fake_quantized(module: Any, x: Any, per_channel: bool) -> Any:
    if per_channel:
        scale, zero = module.tensor([0.1, 0.2, 0.05]), module.tensor([0, 1, 2], dtype=module.int32)
        return module.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 15)
    return module.fake_quantize_per_tensor_affine(x, 0.02, 3, -64, 63)


@pytest.mark.parametrize("per_channel", [False, True])
def test_fake_quantize(per_channel: bool) -> None:
    x = torch.tensor(X, requires_grad=True)
    expected = _fake_quantized(torch, x, per_channel)
    expected.pow(2).sum().backward()
    function = jg.jit(lambda x: _fake_quantized(ours, x, per_channel))
    np.testing.assert_array_equal(function(jg.tensor(X)).numpy(), expected.detach().numpy())
    gradient = jg.grad(lambda x: (function(x) ** 2).sum())(jg.tensor(X)).numpy()
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-6)
    with pytest.raises(ArgumentError, match="quant_min"):
        ours.fake_quantize_per_tensor_affine(X, 0.1, 0, 5, 1)
    with pytest.raises(ShapeError, match="vectors"):
        ours.fake_quantize_per_channel_affine(X, np.ones(2), np.zeros(2), 1, 0, 5)


def test_products_with_derivatives() -> None:
    def f(module: Any) -> list[Any]:
        of, a, b = module.autograd.functional, module.tensor([0.5, -1.0]), module.tensor([2.0, 3.0])
        cube, product = (lambda x: (x**3).sum()), (lambda x, y: x * y)
        return [
            *of.hvp(cube, a, b), *of.vhp(cube, a, b), *of.jvp(lambda x: x * x, a, b), of.hessian(cube, a),
            *of.hvp(lambda x, y: (x * x * y).sum(), (a, b), (b, a))[1], *of.vjp(product, (a, b), a)[1], of.vjp(cube, a)[1],
            *of.jvp(product, (a, b), (b, a)),
        ]  # fmt: skip

    for found, expected in zip(f(ours), f(torch), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
    with pytest.raises(ArgumentError, match="v may be left out"):
        ours.autograd.functional.vjp(lambda x: x, ours.ones(2))


def test_a_diagonal_is_a_copy() -> None:
    for module in (torch, ours):
        x = module.arange(4.0).reshape(2, 2)
        one, other = x.diag(), module.diag(x, 1)
        x.add_(10.0)
        assert (one.tolist(), other.tolist()) == ([0.0, 3.0], [1.0])
        assert module.diag(module.ones(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_small_calls() -> None:
    x = ours.tensor(X)
    assert [p.shape for p in x.split(split_size=3, dim=0)] == [(3, 3), (1, 3)]
    assert x.broadcast_to(2, 4, 3).shape == x.broadcast_to((2, 4, 3)).shape == (2, 4, 3)
    for one in ("bool", "uint8", "int8", "int64", "float32", "complex64"):
        for other in ("bool", "uint8", "int8", "int64", "float32", "complex64"):
            expected = torch.can_cast(getattr(torch, one), getattr(torch, other))
            assert ours.can_cast(getattr(ours, one), getattr(ours, other)) == expected, (one, other)


def test_zeta_of_several_exponents() -> None:
    x, q = np.array([2.0, 3.5]), np.array([1.5, 0.7])
    expected = torch.special.zeta(torch.tensor(x), torch.tensor(q)).numpy()
    np.testing.assert_allclose(jg.jit(ours.special.zeta)(jg.tensor(x), jg.tensor(q)).numpy(), expected, rtol=1e-13)
    slope = jg.grad(lambda q: ours.special.zeta(jg.tensor(x), q).sum())(jg.tensor(q)).numpy()
    np.testing.assert_allclose(slope, -x * torch.special.zeta(torch.tensor(x) + 1, torch.tensor(q)).numpy(), rtol=1e-12)
    with pytest.raises(jg.errors.AutogradError, match="zeta none with respect to its exponent"):
        jg.grad(lambda x: ours.special.zeta(x, jg.tensor(q)).sum())(jg.tensor(x))


def test_the_text_of_a_module_with_parts_and_options() -> None:
    def text(nn: Any) -> str:
        class Scaled(nn.Linear):
            def __init__(self) -> None:
                super().__init__(2, 3)
                self.act = nn.ReLU()

            def extra_repr(self) -> str:
                return "scale=2\nof=1"

        return repr(nn.Sequential(Scaled(), nn.Linear(3, 1)))

    assert text(ours.nn) == text(torch.nn)
