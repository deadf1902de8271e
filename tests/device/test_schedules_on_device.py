"""Schedules within steps on a device: the host computes their rates before the step, and waits for nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.optim import lr_scheduler
from jitgrad.testing.fake_driver import FakeDriver

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.5**n),
    "OneCycleLR, which sets a momentum as well": lambda o: lr_scheduler.OneCycleLR(o, 0.3, total_steps=20),
    "two, one after the other": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.StepLR(o, 2)]
    ),
}


class Training:
    """A float32 network whose compiled step ends, or begins, with one of the schedule."""

    def __init__(self, make: Callable[[Any], Any], device: str, first: bool) -> None:
        jg.manual_seed(0)
        self.model = jg.nn.Sequential(jg.nn.Linear(4, 6), jg.nn.Tanh(), jg.nn.Linear(6, 1)).to(device)
        self.optimizer = jg.optim.Adam(self.model.parameters(), lr=0.1)
        self.schedule = make(self.optimizer)
        self.first = first
        self.x = jg.tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4), device=device)
        self.step = jg.jit(self._step)

    def _step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        if self.first:
            self.schedule.step()
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        if not self.first:
            self.schedule.step()
        return loss

    def run(self, steps: int) -> list[Any]:
        return [self.step(self.x) for _ in range(steps)]


@pytest.mark.parametrize("first", [False, True], ids=["after the optimizer", "before the optimizer"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_step_of_a_schedule_waits_for_nothing(name: str, first: bool, driver: FakeDriver) -> None:
    expected, training = Training(SCHEDULES[name], "cpu", first), Training(SCHEDULES[name], "cuda", first)
    wanted, losses = expected.run(8), training.run(4)
    before = replace(driver.counts)
    losses += training.run(4)

    assert driver.counts.graph_launches == before.graph_launches + 4
    assert driver.counts.copies_to_host == before.copies_to_host
    assert driver.counts.copies_to_device == before.copies_to_device
    np.testing.assert_allclose([x.item() for x in losses], [x.item() for x in wanted], rtol=1e-4)
    assert training.schedule.get_last_lr() == expected.schedule.get_last_lr()
    assert training.step.cache_info().fallbacks == 0


def test_explain_says_that_the_host_computes_rates_before_the_step(driver: FakeDriver) -> None:
    training = Training(SCHEDULES["ExponentialLR"], "cuda", True)
    text = str(training.step.explain(training.x))

    assert "by the host, before the step" in text
    assert "as one CUDA graph" in text


def test_rates_of_a_schedule_are_read_without_waiting(driver: FakeDriver) -> None:
    training = Training(SCHEDULES["ExponentialLR"], "cuda", False)
    training.run(2)
    before = driver.counts.copies_to_host
    rates = [(training.schedule.step(), training.schedule.get_last_lr())[1][0] for _ in range(2)]

    assert driver.counts.copies_to_host == before
    np.testing.assert_allclose(rates, [0.1 * 0.9**3, 0.1 * 0.9**4], rtol=1e-12)


def test_a_schedule_made_after_the_first_steps(driver: FakeDriver) -> None:
    """The rate was on the device until then."""
    losses = {}
    for device in ("cpu", "cuda"):
        training = Training(lambda o: None, device, False)
        training.schedule = lr_scheduler.StepLR(jg.optim.SGD(training.model.parameters(), lr=0.1), 1)  # of another optimizer
        losses[device] = [x.item() for x in training.run(2)]
        training.schedule = lr_scheduler.ExponentialLR(training.optimizer, 0.5)
        losses[device] += [x.item() for x in training.run(4)]
        assert training.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**4)
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-4)


@pytest.mark.parametrize("count", [1, 3])
def test_the_python_code_of_a_schedule_runs_once_a_step(count: int, driver: FakeDriver) -> None:
    calls: list[int] = []

    def factor(n: int) -> float:
        calls.append(n)
        return 0.9**n

    training = Training(lambda o: lr_scheduler.LambdaLR(o, factor), "cuda", True)
    training.run(3)
    calls.clear()
    training.run(count)

    assert calls == list(range(4, 4 + count))
