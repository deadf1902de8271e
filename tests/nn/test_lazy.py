"""Layers that learn the number of their inputs from the first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ShapeError, TraceError

LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "LazyLinear": (lambda nn: nn.LazyLinear(5), (3, 4)),
    "LazyLinear of a vector": (lambda nn: nn.LazyLinear(5, bias=False), (4,)),
    "LazyConv1d": (lambda nn: nn.LazyConv1d(4, 3, 1, 1, 1, 2), (2, 6, 8)),
    "LazyConv2d": (lambda nn: nn.LazyConv2d(4, kernel_size=3, padding=1, groups=2), (2, 6, 5, 5)),
    "LazyConv2d of an image": (lambda nn: nn.LazyConv2d(4, (3, 1), stride=2), (3, 5, 5)),
    "LazyConv3d": (lambda nn: nn.LazyConv3d(2, 2), (1, 3, 4, 4, 4)),
    "LazyConvTranspose1d": (lambda nn: nn.LazyConvTranspose1d(2, 3), (1, 3, 4)),
    "LazyConvTranspose2d": (lambda nn: nn.LazyConvTranspose2d(2, 3, stride=2, bias=False), (1, 3, 4, 4)),
    "LazyConvTranspose3d": (lambda nn: nn.LazyConvTranspose3d(2, 2), (1, 3, 2, 2, 2)),
    "LazyBatchNorm1d": (lambda nn: nn.LazyBatchNorm1d(), (5, 3)),
    "LazyBatchNorm2d": (lambda nn: nn.LazyBatchNorm2d(eps=1e-3, momentum=0.2), (5, 3, 2, 2)),
    "LazyBatchNorm3d": (lambda nn: nn.LazyBatchNorm3d(affine=False), (2, 3, 2, 2, 2)),
}


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("name", LAYERS)
def test_layers_become_those_of_torch(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    make, shape = LAYERS[name]
    ours, theirs = make(nn), make(torch.nn)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    ours(jg.tensor(x)), theirs(torch.tensor(x))

    assert type(ours).__name__ == type(theirs).__name__
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}
    with jg.no_grad():
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            mine.copy_(jg.tensor(other.detach().numpy()))
    found, expected = ours(jg.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_a_model_is_trained_by_an_optimiser_made_before() -> None:
    jg.manual_seed(0)
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    optimizer = jg.optim.SGD(model.parameters(), lr=0.1)
    x, y = jg.randn(8, 1, 6, 6), jg.tensor([0, 1] * 4)
    assert model[0].has_uninitialized_params() and sum(p.size for p in model.parameters()) == 0

    model(x)
    assert isinstance(model[4], nn.Linear) and type(model[0]) is nn.Conv2d and model[4].in_features == 64

    @jg.jit
    def step() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step().item() for _ in range(8)]
    assert losses[-1] < 0.7 * losses[0]


def test_first_values_are_those_of_the_layer() -> None:
    jg.manual_seed(3)
    layer = nn.LazyLinear(400)
    layer(jg.ones(1, 25))
    assert 0.15 < float(abs(layer.weight).max()) <= 0.2  # one over the root of 25
    layer.eval()
    assert not layer.training


def test_what_lazy_layers_refuse() -> None:
    with pytest.raises(TraceError, match="LazyLinear has no sizes yet: call the module once"):
        jg.jit(nn.LazyLinear(3))(jg.ones(2, 2))
    with pytest.raises(ShapeError, match=r"expected \[n, channels"):
        nn.LazyBatchNorm1d()(jg.ones(3))
