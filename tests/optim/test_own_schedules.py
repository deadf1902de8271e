"""Schedules that a program derives from torch's base class: they give torch's rates, eager and in compiled steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg


def warmup(m: Any, optimizer: Any) -> Any:
    class Warmup(m._LRScheduler):  # type: ignore[misc, name-defined]
        def __init__(self, optimizer: Any, steps: int, last_epoch: int = -1) -> None:
            self.steps = steps
            super().__init__(optimizer, last_epoch)

        def get_lr(self) -> list[float]:
            return [base * min(1.0, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]

    return Warmup(optimizer, 4)


def from_the_rate_before(m: Any, optimizer: Any) -> Any:
    class Shrinking(m.LRScheduler):  # type: ignore[misc, name-defined]
        def get_lr(self) -> list[float]:
            rates = [group["lr"] for group in self.optimizer.param_groups]
            return rates if self.last_epoch == 0 else [rate * 0.5 + 0.01 for rate in rates]

    return Shrinking(optimizer)


def around_a_schedule(m: Any, optimizer: Any) -> Any:
    class AtLeast(m.ExponentialLR):  # type: ignore[misc, name-defined]
        def get_lr(self) -> list[float]:
            return [max(rate, 0.05) for rate in super().get_lr()]

    return AtLeast(optimizer, gamma=0.7)


def with_a_step_of_its_own(m: Any, optimizer: Any) -> Any:
    class Restarts(m._LRScheduler):  # type: ignore[misc, name-defined]
        def __init__(self, optimizer: Any, period: int) -> None:
            self.period, self.cycle = period, -1
            super().__init__(optimizer, -1)

        def get_lr(self) -> list[float]:
            return [base * (1 + math.cos(math.pi * self.cycle / self.period)) / 2 for base in self.base_lrs]

        def step(self, epoch: int | None = None) -> None:
            self.cycle = (self.cycle + 1) % self.period
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate

    return Restarts(optimizer, 3)


OWN = [warmup, from_the_rate_before, around_a_schedule, with_a_step_of_its_own]


def rates(m: Any, make: Callable[[Any, Any], Any], compiled: Any = None) -> tuple[list[list[float]], Any]:
    p, q = m.tensor([1.0, 2.0], requires_grad=True), m.tensor([3.0], requires_grad=True)
    optimizer = m.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.4}], lr=0.1)
    schedule = make(m.optim.lr_scheduler, optimizer)
    inside = make is not with_a_step_of_its_own  # whose Python code belongs outside of a compiled step

    def step() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum() + (q * q).sum()
        loss.backward()
        optimizer.step()
        if inside:
            schedule.step()
        return loss

    run = step if compiled is None else compiled(step)
    seen = []
    for _ in range(7):
        seen.append([group["lr"] for group in optimizer.param_groups])
        run()
        if not inside:
            schedule.step()
    return [*seen, [schedule.last_epoch], p.tolist(), q.tolist()], run


@pytest.mark.parametrize("make", OWN)
def test_own_schedule_gives_torchs_rates(make: Callable[[Any, Any], Any]):
    torch = pytest.importorskip("torch")
    expected = rates(torch, make)[0]
    for compiled in (None, jg.jit):
        found, run = rates(jg, make, compiled)
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other, rel=1e-5)
    assert run.cache_info().traces == 1


@pytest.mark.parametrize("make", OWN[:3])
def test_own_schedule_goes_on_from_its_state(make: Callable[[Any, Any], Any]):
    optimizers = [jg.optim.SGD([jg.tensor([1.0], requires_grad=True)], lr=0.1) for _ in range(2)]
    first, second = [make(jg.optim.lr_scheduler, optimizer) for optimizer in optimizers]
    for _ in range(3):
        first.step()
    second.load_state_dict(first.state_dict())
    first.step()
    second.step()
    assert second.last_epoch == 4
    assert optimizers[0].param_groups[0]["lr"] == optimizers[1].param_groups[0]["lr"]


def test_schedule_without_a_rule_says_what_to_define():
    class Nothing(jg.optim.lr_scheduler.LRScheduler):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing defines neither factor\(n\) nor get_lr"):
        Nothing(jg.optim.SGD([jg.tensor([1.0], requires_grad=True)], lr=0.1))
