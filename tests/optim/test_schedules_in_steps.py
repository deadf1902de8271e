"""Schedules within compiled steps, several schedules of one optimizer, and rates that were changed by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from tests.optim.test_torch_names import SCHEDULES, START

Made = Callable[[Any, Any], Any]


def chained(m: Any, o: Any) -> Any:
    return m.ChainedScheduler([m.ConstantLR(o, factor=0.1, total_iters=3), m.ExponentialLR(o, gamma=0.9)])


def in_three_parts(m: Any, o: Any) -> Any:
    parts = [m.ConstantLR(o, 0.5, 2), m.CosineAnnealingLR(o, 4), m.LambdaLR(o, lambda n: 0.5**n)]
    return m.SequentialLR(o, parts, milestones=[2, 6])


def fractional(m: Any, o: Any) -> Any:
    schedule = m.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2)
    schedule.step(1.25)
    return schedule


MORE: dict[str, Made] = {
    "Chained": chained, "Sequential_three": in_three_parts, "WarmRestarts_fractional": fractional,
    "LinearLR_down": lambda m, o: m.LinearLR(o, 1.0, 0.0, total_iters=5),
}  # fmt: skip
ALL = SCHEDULES | MORE


def train(module: Any, make: Made, compiled: Callable[..., Any], by_hand: bool = False) -> tuple[list[Any], Any]:
    """Rates and parameters of some steps, each with a step of the schedule."""
    ps = [module.tensor(START).requires_grad_() for _ in range(2)]
    groups = [{"params": [ps[0]]}, {"params": [ps[1]], "lr": 0.3}]
    optimizer = module.optim.SGD(groups, lr=0.1, momentum=0.9)
    schedule = make(module.optim.lr_scheduler, optimizer)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (ps[0] * ps[0] * ps[1]).sum()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    step = compiled(step)
    seen = []
    for k in range(9):
        if by_hand and k == 4:
            optimizer.param_groups[0]["lr"] *= 0.5
        step()
        seen.append([*schedule.get_last_lr(), *(group["momentum"] for group in optimizer.param_groups)])
        seen[-1] += [*ps[0].tolist(), *ps[1].tolist()]
    return seen, step


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_a_schedule_in_a_compiled_step(name: str) -> None:
    expected, _ = train(jg, ALL[name], lambda step: step)
    found, step = train(jg, ALL[name], jg.jit)

    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
    assert step.cache_info().traces == 1
    assert step.cache_info().fallbacks == 0


@pytest.mark.peers
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_schedules_go_on_from_the_current_rate_as_in_torch(name: str, by_hand: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = train(torch, ALL[name], lambda step: step, by_hand)

    for compiled in (lambda step: step, jg.jit):
        found, _ = train(jg, ALL[name], compiled, by_hand)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.peers
def test_two_schedules_multiply_as_in_torch() -> None:
    torch: Any = pytest.importorskip("torch")

    def rates(module: Any) -> list[float]:
        optimizer = module.optim.SGD([module.tensor(START).requires_grad_()], lr=0.4)
        first = module.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        second = module.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
        seen = []
        for _ in range(6):
            optimizer.step()
            first.step()
            second.step()
            seen.append(optimizer.param_groups[0]["lr"])
        return [*seen, optimizer.param_groups[0]["initial_lr"]]

    np.testing.assert_allclose(rates(jg), rates(torch), rtol=1e-12)


def test_the_rate_of_a_compiled_step_is_read_and_set_after_the_schedule() -> None:
    p = jg.tensor(START).requires_grad_()
    optimizer = jg.optim.SGD([p], lr=1.0)
    schedule = jg.optim.ExponentialLR(optimizer, gamma=0.5)

    @jg.jit
    def step() -> Any:
        schedule.step()
        optimizer.param_groups[0]["lr"] *= 0.5
        return optimizer.param_groups[0]["lr"] + schedule.last_epoch

    assert [float(step()) for _ in range(3)] == [1.25, 2.0625, 3.015625]
    assert (schedule.last_epoch, optimizer.lr) == (3, 0.015625)


def test_what_a_schedule_reads_is_read_in_each_call() -> None:
    decay = {"gamma": 0.5}
    optimizer = jg.optim.SGD([jg.tensor(START).requires_grad_()], lr=1.0)
    schedule = jg.optim.LambdaLR(optimizer, lambda n: decay["gamma"] ** n)
    step = jg.jit(lambda: schedule.step())

    step()
    step()
    assert optimizer.lr == 0.25
    decay["gamma"] = 2.0
    step()
    assert optimizer.lr == 8.0


def test_an_error_of_a_schedule_changes_nothing() -> None:
    p = jg.tensor(START).requires_grad_()
    optimizer = jg.optim.SGD([p], lr=0.1, momentum=0.9)
    schedule = jg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=3)

    @jg.jit
    def step() -> None:
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()
        schedule.step()

    for _ in range(3):  # the last one leads to no further batch, and torch takes it
        step()
    before = (p.tolist(), optimizer.lr, schedule.last_epoch)
    with pytest.raises(jg.errors.ArgumentError, match="step 4 of a cycle of 3 steps"):
        step()
    assert (p.tolist(), optimizer.lr, schedule.last_epoch) == before


def test_state_of_a_schedule_after_compiled_steps() -> None:
    optimizer = jg.optim.SGD([jg.tensor(START).requires_grad_()], lr=1.0)
    schedule = jg.optim.StepLR(optimizer, 2, 0.5)
    step = jg.jit(lambda: schedule.step())
    for _ in range(3):
        step()
    optimizer.lr = 0.125
    saved = schedule.state_dict()

    again = jg.optim.SGD([jg.tensor(START).requires_grad_()], lr=1.0)
    other = jg.optim.StepLR(again, 2, 0.5)
    other.load_state_dict(saved)

    assert (other.last_epoch, again.lr) == (3, 0.125)
    other.step()
    assert again.lr == 0.0625
