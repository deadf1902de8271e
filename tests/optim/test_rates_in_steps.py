"""Learning rates that a compiled step reads and changes itself."""

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim


def decayed(optimizer):
    before = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] *= 0.5
    return before


def warmed_up(optimizer):
    for group in optimizer.param_groups:
        group["lr"] = min_of(group["lr"] + 0.125, 0.5)
    return optimizer.param_groups[-1]["lr"]


def min_of(rate, most):
    return jg.minimum(rate, most) if isinstance(rate, jg.Tensor) else min(rate, most)


@pytest.mark.parametrize("change", [decayed, warmed_up])
@pytest.mark.parametrize("make", [optim.SGD, optim.AdamW])
def test_a_step_changes_its_rates(make, change):
    losses, rates = [], []
    for compiled in (False, True):
        jg.manual_seed(0)
        a, b = nn.Linear(4, 3), nn.Linear(3, 1)
        groups = [{"params": a.parameters(), "lr": 0.25}, {"params": b.parameters()}]
        optimizer = make(groups, lr=0.125)
        x = jg.tensor(np.random.default_rng(0).normal(size=(5, 4)).astype("f4"))

        def step(x=x, a=a, b=b, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (b(jg.tanh(a(x))) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss, change(optimizer)

        run = jg.jit(step) if compiled else step
        found = [tuple(map(float, run())) for _ in range(4)]
        losses.append([loss for loss, _ in found])
        rates.append([rate for _, rate in found] + [group["lr"] for group in optimizer.param_groups])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert rates[1] == rates[0]


def test_a_choice_by_a_rate_is_that_of_the_call():
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.parameters(), lr=0.5)

    @jg.jit
    def step(x):
        layer(x).sum().backward()
        if optimizer.param_groups[0]["lr"] > 0.25:
            optimizer.step()

    changed = []
    for rate in (0.5, 0.5, 0.125, 0.125, 0.5):
        optimizer.param_groups[0]["lr"] = rate
        before = layer.weight.detach().clone()
        step(jg.ones(3, 2))
        changed.append(bool((layer.weight.detach() != before).any()))
    assert changed == [True, True, False, False, True]
