"""Mixed operands have torch's dtypes once jitgrad.torch is imported, eager and compiled; NumPy's before."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

peer = pytest.importorskip("torch")

MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "ints and floats": lambda torch, x: x.ints * x.floats,
    "ints and a number": lambda torch, x: x.ints * 0.5,
    "quotient of ints": lambda torch, x: x.ints / 2,
    "bools and a number": lambda torch, x: x.bools * 1e6,
    "a double without axes": lambda torch, x: x.floats * x.double,
    "ints and a float without axes": lambda torch, x: x.ints * x.float,
    "half and float without axes": lambda torch, x: x.halves * x.float,
    "half and ints": lambda torch, x: x.halves * x.ints,
    "float and double": lambda torch, x: x.floats + x.doubles,
    "small ints and one int64": lambda torch, x: x.bytes + x.int,
    "exp of ints": lambda torch, x: x.ints.exp(),
    "exp of bools": lambda torch, x: torch.exp(x.bools),
    "power of ints": lambda torch, x: x.ints**0.5,
    "power of a number": lambda torch, x: 10000 ** (x.ints / 3),
    "a double of NumPy": lambda torch, x: x.floats / np.sqrt(2.0),
    "a double of NumPy on the left": lambda torch, x: np.float64(3.0) * x.floats,
    "pi": lambda torch, x: x.ints * math.pi,
    "imaginary": lambda torch, x: x.ints * 1j,
    "concatenated": lambda torch, x: torch.cat([x.ints, x.floats]),
    "selected": lambda torch, x: torch.where(x.bools, x.ints, x.floats),
    "selected numbers": lambda torch, x: torch.where(x.bools, 1.0, 0.0),
    "selected ints": lambda torch, x: torch.where(x.bools, x.ints, 0.5),
    "sum of bytes": lambda torch, x: x.bytes.sum(),
    "scaled bytes": lambda torch, x: x.bytes / 255,
    "clamped": lambda torch, x: x.ints.clamp(min=0.5),
    "compared": lambda torch, x: x.ints == x.floats,
    "arctangent": lambda torch, x: torch.atan2(x.ints, x.ints + 1),
    "in place": lambda torch, x: x.floats.clone().mul_(x.doubles),
    "embedding of a position": lambda torch, x: torch.sin(x.ints[:, None] * torch.exp(torch.arange(2) * (-math.log(9.0) / 2))),
}


def operands(torch: Any) -> SimpleNamespace:
    return SimpleNamespace(
        ints=torch.arange(3), floats=torch.tensor([1.0, 2.0, 0.5]), doubles=torch.tensor([1.0, 0.5, 3.0], dtype=torch.float64),
        bools=torch.tensor([True, False, True]), halves=torch.tensor([1.0, 0.5, 2.0]).half(), float=torch.tensor(0.5),
        double=torch.tensor(2.0, dtype=torch.float64), int=torch.tensor(3), bytes=torch.tensor([1, 2, 3], dtype=torch.uint8),
    )  # fmt: skip


@pytest.fixture
def torch() -> ModuleType:
    return importlib.import_module("jitgrad.torch")


@pytest.mark.parametrize("name", MIXED)
def test_mixed_operands_have_the_dtype_of_torch(name: str, torch: ModuleType):
    expected = MIXED[name](peer, operands(peer)).numpy()
    given = operands(torch)

    for found in (MIXED[name](torch, given), jg.jit(lambda: MIXED[name](torch, given), backend="python")()):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-3 if expected.dtype == np.float16 else 1e-6)


def test_gradients_have_the_dtypes_of_what_was_converted(torch: ModuleType):
    def gradients(torch: Any) -> list[Any]:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
        (x * scale).sum().backward()
        return [x.grad.numpy(), scale.grad.numpy()]

    for g, expected in zip(gradients(torch), gradients(peer), strict=True):
        assert g.dtype == expected.dtype
        np.testing.assert_array_equal(g, expected)


def test_result_types(torch: ModuleType):
    x, number = torch.ones(2), torch.tensor(1.0, dtype=torch.float64)

    assert (torch.result_type(x, number), torch.result_type(torch.arange(2), 1.5)) == (np.float32, np.float32)
    assert (torch.promote_types(torch.int64, torch.float32), torch.promote_types(torch.float16, torch.float64)) == (
        np.float32, np.float64
    )  # fmt: skip


def test_without_the_import_it_is_that_of_numpy():
    assert (jg.arange(3) * jg.ones(3)).dtype == np.float64
    with_torch = importlib.import_module("jitgrad.torch")
    assert (jg.arange(3) * with_torch.ones(3)).dtype == np.float32
