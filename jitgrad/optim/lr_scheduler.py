"""Learning-rate schedules: each sets the rates of an optimizer to a function of the number of its steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import cos, inf, pi
from typing import TYPE_CHECKING, Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.missing_names import Lookup, raising
from jitgrad.core.tensor import Tensor
from jitgrad.optim.cycles import CyclicLR as CyclicLR  # noqa: PLC0414 - public here
from jitgrad.optim.cycles import OneCycleLR as OneCycleLR  # noqa: PLC0414 - public here
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.schedule import Schedule as Schedule  # noqa: PLC0414 - public here

LRScheduler = Schedule
_LRScheduler = Schedule  # torch's first name of it, which schedules of one's own still derive from


class LambdaLR(Schedule):
    """The factor is ``lr_lambda(n)``; a list has a function per group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ArgumentError(f"{type(self).__name__}: {len(self.lr_lambdas)} functions for {groups} groups")
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int, base: float, k: int) -> float:
        return base * self.lr_lambdas[k](n)


class MultiplicativeLR(LambdaLR):
    """Times ``lr_lambda(n)`` at step n; a list has a function per group."""

    def rate(self, n: int, base: float, k: int) -> float:
        for j in range(1, n + 1):
            base *= self.lr_lambdas[k](j)
        return base

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return current * self.lr_lambdas[k](n) if n > 0 else current


class StepLR(Schedule):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ArgumentError(f"StepLR: step_size must be positive, got {step_size}")
        self.step_size: int = step_size
        self.gamma: float = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, n: int) -> float:
        return self.gamma ** (n // self.step_size)

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return current if n == 0 or n % self.step_size else current * self.gamma


class MultiStepLR(Schedule):
    """Times ``gamma`` at each of the ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones: list[int] = sorted(milestones)
        self.gamma: float = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, n: int) -> float:
        return self.gamma ** sum(1 for m in self.milestones if m <= n)

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return current * self.gamma ** self.milestones.count(n)


class ExponentialLR(Schedule):
    """Times ``gamma`` at each step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, n: int) -> float:
        return self.gamma**n

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return current if n == 0 else current * self.gamma


class LinearLR(Schedule):
    """Linear from ``start_factor`` to ``end_factor`` over ``total_iters`` steps: a warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if total_iters < 1:
            raise ArgumentError(f"LinearLR: total_iters must be positive, got {total_iters}")
        self.start_factor: float = start_factor
        self.end_factor: float = end_factor
        self.total_iters: int = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, n: int) -> float:
        part = min(n, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return _next_by_factors(self, n, self.total_iters, current)


class ConstantLR(Schedule):
    """Times ``factor`` for the first ``total_iters`` steps."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.start_factor: float = factor
        self.total_iters: int = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, n: int) -> float:
        return self.start_factor if n < self.total_iters else 1.0

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return _next_by_factors(self, n, self.total_iters, current)


class PolynomialLR(Schedule):
    """Down to 0 in ``total_iters`` steps, as ``(1 - n / total_iters)**power``."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters: int = total_iters
        self.power: float = power
        super().__init__(optimizer, last_epoch)

    def factor(self, n: int) -> float:
        return float((1.0 - min(n, self.total_iters) / self.total_iters) ** self.power)

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        return _next_by_factors(self, n, self.total_iters, current)


def _next_by_factors(schedule: Schedule, n: int, last: int, current: float) -> float:
    """``current`` times what the factor of ``schedule``, which changes up to step ``last``, changes by at step ``n``."""
    if n > last:
        return current
    before = 1.0 if n == 0 else schedule.factor(n - 1)
    return current * (schedule.factor(n) / before) if before else 0.0


class CosineAnnealingLR(Schedule):
    """Down to ``eta_min`` along half a cosine wave of ``T_max`` steps, after ``warmup`` steps of
    linear rise.

    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    After ``T_max`` steps the wave goes on (upwards), as in torch.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1, *, warmup: int = 0
    ) -> None:
        if T_max < 1 or warmup < 0:
            raise ArgumentError(f"CosineAnnealingLR: T_max={T_max} must be positive, warmup={warmup} not negative")
        self.T_max: int = T_max
        self.eta_min: float = eta_min
        self.warmup: int = warmup
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int, base: float, k: int) -> float:
        if n < self.warmup:
            return base * (n + 1) / (self.warmup + 1)
        return self.eta_min + (base - self.eta_min) * (1.0 + cos(pi * (n - self.warmup) / self.T_max)) / 2.0

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        m = n - self.warmup
        if self.warmup and m <= 0:
            return self.rate(n, base, k)
        if m <= 0:
            return current
        if (m - 1 - self.T_max) % (2 * self.T_max) == 0:  # the wave was at its lowest point
            return current + (base - self.eta_min) * (1.0 - cos(pi / self.T_max)) / 2.0
        ratio = (1.0 + cos(pi * m / self.T_max)) / (1.0 + cos(pi * (m - 1) / self.T_max))
        return ratio * (current - self.eta_min) + self.eta_min


class CosineAnnealingWarmRestarts(Schedule):
    """Half cosine waves from the initial rates to ``eta_min``: the first of ``T_0`` steps, each next one ``T_mult``
    times as long (the paper of CosineAnnealingLR)."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: T_0={T_0} and T_mult={T_mult} must be positive")
        self.T_0: int = T_0
        self.T_mult: int = T_mult
        self.eta_min: float = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int, base: float, k: int) -> float:
        period = self.T_0
        if self.T_mult == 1:
            n %= period
        while n >= period:
            n, period = n - period, period * self.T_mult
        return self.eta_min + (base - self.eta_min) * (1.0 + cos(pi * n / period)) / 2.0


class SequentialLR(Schedule):
    """One schedule after the other, each from the step in ``milestones`` on and counting from there."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[Schedule], milestones: Sequence[int]) -> None:
        if len(schedulers) != len(milestones) + 1 or any(s.optimizer is not optimizer for s in schedulers):
            raise ArgumentError("SequentialLR: give schedules of this optimizer, and a milestone between each two")
        self.schedulers: list[Schedule] = list(schedulers)
        self.milestones: list[int] = list(milestones)
        for group in optimizer.param_groups:  # each schedule has begun with what the one before it set
            group["lr"] = group["initial_lr"]
        super().__init__(optimizer)

    def scheduled(self) -> list[Tensor]:
        # all that any of them sets, each once
        every = {id(scalar): scalar for schedule in self.schedulers for scalar in schedule.scheduled()}
        return list(every.values())

    def values(self, n: int, current: Sequence[float] | None) -> list[float]:
        which = bisect_right(self.milestones, n)
        schedule, start = self.schedulers[which], self.milestones[which - 1] if which else 0
        scalars = self.scheduled()
        places = [next(k for k, x in enumerate(scalars) if x is own) for own in schedule.scheduled()]
        before = [float(x.item()) for x in scalars] if current is None else list(current)
        chained = current is not None and not (which and n == start)
        for k, value in zip(
            places, schedule.values(n - start, [before[k] for k in places] if chained else None), strict=True
        ):
            before[k] = value
        return before


class ChainedScheduler:
    """Steps all of ``schedulers``, whose effects multiply where they compute from the current rate."""

    def __init__(self, schedulers: Sequence[Schedule], optimizer: Optimizer | None = None) -> None:
        owner = optimizer or (schedulers[0].optimizer if schedulers else None)
        if not schedulers or any(s.optimizer is not owner for s in schedulers):
            raise ArgumentError("ChainedScheduler: give schedules of one optimizer")
        self.optimizer: Optimizer = schedulers[0].optimizer
        self.schedulers: list[Schedule] = list(schedulers)

    def step(self) -> None:
        """Step each schedule, in order."""
        for schedule in self.schedulers:
            schedule.step()

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each group."""
        return self.schedulers[-1].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The states of the schedules."""
        return {"schedulers": [schedule.state_dict() for schedule in self.schedulers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``."""
        for schedule, own in zip(self.schedulers, state["schedulers"], strict=True):
            schedule.load_state_dict(own)


class ReduceLROnPlateau:
    """Times ``factor`` when a metric has not improved for more than ``patience`` steps, down to ``min_lr``.

    ``threshold`` is how much better is better, by ratio or, with ``threshold_mode="abs"``, by difference. After a change
    bad steps do not count for ``cooldown`` steps. A change of less than ``eps`` is not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or not 0.0 < factor < 1.0 or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"ReduceLROnPlateau: mode 'min' or 'max', factor in (0, 1), threshold_mode 'rel' or 'abs'; got "
                f"{shown(mode)}, {factor}, {shown(threshold_mode)}"
            )
        self.optimizer: Optimizer = optimizer
        self.sign: float = 1.0 if mode == "min" else -1.0
        self.factor: float = factor
        self.patience: int = patience
        self.threshold: float = threshold
        self.relative: bool = threshold_mode == "rel"
        count = len(optimizer.param_groups)
        self.min_lrs: list[float] = [float(min_lr)] * count if isinstance(min_lr, (int, float)) else list(min_lr)
        self.cooldown: int = cooldown
        self.eps: float = eps
        self.best: float = inf
        self.bad: int = 0
        self.waiting: int = 0

    def step(self, metrics: Any) -> None:
        """Take the metric of this step, a number or a tensor of one element."""
        value = self.sign * float(metrics)
        margin = abs(self.best) * self.threshold if self.relative else self.threshold
        if self.best == inf or value < self.best - margin:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.waiting:
            self.waiting, self.bad = self.waiting - 1, 0
        if self.bad > self.patience:
            self.bad, self.waiting = 0, self.cooldown
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = group["lr"]
                new = max(old * self.factor, least)
                if old - new > self.eps:
                    group["lr"] = new

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """What the schedule remembers."""
        return {"best": self.best, "bad": self.bad, "waiting": self.waiting}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``; the learning rates are the optimizer's state."""
        self.best, self.bad, self.waiting = state["best"], state["bad"], state["waiting"]


if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.optim.lr_scheduler", globals())
