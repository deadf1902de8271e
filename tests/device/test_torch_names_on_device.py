"""torch's functions, layers and optimisers on the CUDA device give what they give on the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.nn import functional as F
from tests.agreement import leaves
from tests.nn.test_functional import SAME as FUNCTIONALS
from tests.nn.test_torch_layers import LAYERS
from tests.ops.test_torch_names import SAME as FUNCTIONS
from tests.optim.test_torch_names import CASES, RECORDED

pytestmark = pytest.mark.usefixtures("cuda")


# What creates tensors of its own beside its operands; the emulator is too slow to run everything each time.
QUICK = """
    index_fill scatter cummax new one_hot max_pool2d_ceil max_pool2d_indices avg_pool2d_ceil attention_causal multi_margin
    interpolate embedding RNNCell pools MultiMarginLoss attention_masks dampening nadam radam
""".split()


def rows(names: Iterable[str]) -> list[Any]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


class Placed:
    """jitgrad, with tensors made on a device."""

    def __init__(self, device: str) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        value = getattr(jg, name)
        if name in ("tensor", "zeros", "ones", "full", "linspace", "arange", "eye"):
            return lambda *args, **kwargs: value(*args, **{"device": self._device, **kwargs})
        return value


def values(module: Any, call: Any, arrays: tuple[Any, ...]) -> list[Any]:
    """Results, and gradients of floating operands, brought to the host."""
    xs = [module.tensor(a) for a in arrays]
    learned = [x.requires_grad_() for x, a in zip(xs, arrays) if np.asarray(a).dtype.kind == "f"]
    outs = leaves(call(module, *xs))
    parts = [x for x in outs if x.requires_grad]
    if parts:
        sum((x * x).sum() for x in parts).backward()
    assert {x.device for x in outs} == {xs[0].device}
    return [x.detach().cpu().numpy() for x in (*outs, *(x.grad for x in learned if x.grad is not None))]


def assert_same_on_device(call: Any, arrays: tuple[Any, ...]) -> None:
    for x, y in zip(values(Placed("cuda"), call, arrays), values(jg, call, arrays), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", rows(name for name in FUNCTIONS if name not in ("masked_select", "nonzero")))
def test_functions(name: str):
    call, *arrays = FUNCTIONS[name]

    assert_same_on_device(call, tuple(arrays))


@pytest.mark.parametrize("name", rows(FUNCTIONALS))
def test_functionals(name: str):
    call, *arrays = FUNCTIONALS[name]

    assert_same_on_device(lambda _m, *xs: call(F, *xs), tuple(arrays))


@pytest.mark.parametrize("name", rows(LAYERS))
def test_layers(name: str):
    build, arrays = LAYERS[name]
    jg.manual_seed(0)
    layer = build(nn).double()

    expected = values(jg, lambda _m, *xs: layer(*xs), arrays)
    layer.to("cuda")
    for x, y in zip(values(Placed("cuda"), lambda _m, *xs: layer(*xs), arrays), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", rows(CASES))
def test_optimisers(name: str):
    kind, options = CASES[name]
    p = jg.tensor([1.0, -2.0, 0.5], dtype=jg.float64, device="cuda", requires_grad=True)
    optimizer = getattr(jg.optim, kind)([p], **options)
    for _ in range(8):
        optimizer.zero_grad()
        (p**4 / 4 + p**2 / 2).sum().backward()
        optimizer.step()

    np.testing.assert_allclose(p.detach().cpu().numpy(), RECORDED[name], rtol=2e-7)
