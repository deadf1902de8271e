"""Averages of weights, `optim.swa_utils`, against torch: eager and within a compiled step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError
from jitgrad.optim import swa_utils

torch = pytest.importorskip("torch")
DATA = np.random.RandomState(0).randn(32, 4).astype(np.float32)
STARTS = {name: np.random.RandomState(k).randn(*shape).astype(np.float32) for k, (name, shape) in enumerate(
    {"0.weight": (8, 4), "0.bias": (8,), "1.weight": (8,), "1.bias": (8,), "3.weight": (1, 8), "3.bias": (1,)}.items()
)}  # fmt: skip


def model_of(lib: Any) -> Any:
    nn = lib.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    model.load_state_dict({name: lib.from_numpy(value.copy()) for name, value in STARTS.items()}, strict=False)
    return model


def averages(lib: Any, model: Any) -> list[Any]:
    utils = lib.optim.swa_utils
    return [
        utils.AveragedModel(model),
        utils.AveragedModel(model, multi_avg_fn=utils.get_ema_multi_avg_fn(0.8)),
        utils.AveragedModel(model, multi_avg_fn=utils.get_swa_multi_avg_fn()),
        utils.AveragedModel(model, avg_fn=utils.get_ema_avg_fn(0.5), use_buffers=True),
        utils.AveragedModel(model, avg_fn=lambda mean, new, n: 0.3 * mean + 0.7 * new + 0.1 * n),
        utils.AveragedModel(model, avg_fn=utils.get_ema_avg_fn(0.3)),
        utils.AveragedModel(model, avg_fn=utils.get_swa_avg_fn()),
    ]


def train(lib: Any, jit: Any = lambda f: f) -> tuple[list[Any], Any]:
    model = model_of(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    averaged = averages(lib, model)

    @jit
    def step(x: Any) -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        for average in averaged:
            average.update_parameters(model)

    for k in range(4):
        step(lib.from_numpy(DATA[8 * k : 8 * k + 8]))
    batches = [(lib.from_numpy(DATA[:16]), 0), (lib.from_numpy(DATA[16:]), 0)]
    lib.optim.swa_utils.update_bn(batches, averaged[0])
    return averaged, step


@pytest.mark.parametrize("compiled", [False, True])
def test_averages_equal_torchs(compiled: bool) -> None:
    own, step = train(jg, jg.jit if compiled else lambda f: f)
    theirs, _ = train(torch)

    for mine, expected in zip(own, theirs, strict=True):
        assert mine.state_dict().keys() == expected.state_dict().keys()
        for name, value in expected.state_dict().items():
            np.testing.assert_allclose(
                mine.state_dict()[name].numpy(), value.numpy(), rtol=3e-5, atol=1e-6, err_msg=name
            )
    if compiled:
        assert step.cache_info().traces == 1


def test_update_bn_restores_mode_and_momentum() -> None:
    model = model_of(jg).eval()

    swa_utils.update_bn([jg.from_numpy(DATA)], model)

    assert not model.training and model[1].momentum == 0.1
    np.testing.assert_allclose(
        model[1].running_mean.numpy(), model[0](jg.from_numpy(DATA)).detach().numpy().mean(0), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 3}, {"anneal_epochs": 0}])
@pytest.mark.parametrize("compiled", [False, True])
def test_swalr_equals_torchs(options: dict[str, Any], compiled: bool) -> None:
    def rates(lib: Any, jit: Any) -> list[float]:
        optimizer = lib.optim.SGD([lib.zeros(1, requires_grad=True)], lr=0.2)
        schedule = lib.optim.swa_utils.SWALR(optimizer, swa_lr=0.05, **options)
        step = jit(lambda: (optimizer.step(), schedule.step())[1])
        found = []
        for _ in range(6):
            step()
            found.append(optimizer.param_groups[0]["lr"])
        return found

    np.testing.assert_allclose(rates(jg, jg.jit if compiled else lambda f: f), rates(torch, lambda f: f), rtol=1e-12)


def test_bad_options_are_refused() -> None:
    optimizer = jg.optim.SGD([jg.zeros(1, requires_grad=True)], lr=0.2)

    with pytest.raises(ArgumentError, match=r"decay must be between 0 and 1, got 1.5"):
        swa_utils.get_ema_multi_avg_fn(1.5)
    with pytest.raises(ArgumentError, match=r"anneal_strategy must be 'cos' or 'linear', got 'step'"):
        swa_utils.SWALR(optimizer, 0.1, anneal_strategy="step")
    with pytest.raises(ArgumentError, match=r"2 rates swa_lr for 1 groups"):
        swa_utils.SWALR(optimizer, [0.1, 0.2])
    with pytest.raises(ArgumentError, match=r"two rules for one average"):
        swa_utils.AveragedModel(
            model_of(jg), avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn()
        )
