"""Learning-rate schedules: each sets ``optimizer.lr`` to a function of the number of its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, inf, pi
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.optim.optimizer import Optimizer


class Schedule:
    """Base class: subclasses give the factor on the initial learning rate after ``n`` steps.

    ``last_epoch`` counts the steps; ``optimizer.lr`` is set in the constructor (n = 0) and by each
    ``step()``. Call it outside compiled functions, for which the new rate is new data that needs no
    new trace.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lr = optimizer.lr
        self.last_epoch = 0
        self._set()

    def factor(self, n: int) -> float:
        """The factor on the initial learning rate after ``n`` steps."""
        raise NotImplementedError(f"{type(self).__name__} defines no factor")

    def step(self) -> None:
        """Go on to the next learning rate."""
        self.last_epoch += 1
        self._set()

    def _set(self) -> None:
        self.optimizer.lr = self.base_lr * self.factor(self.last_epoch)

    def get_last_lr(self) -> list[float]:
        """The current learning rate, in a list as in torch."""
        return [self.optimizer.lr]

    def state_dict(self) -> dict[str, Any]:
        """The position of the schedule."""
        return {"base_lr": self.base_lr, "last_epoch": self.last_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to the position in ``state``, and set the learning rate."""
        self.base_lr, self.last_epoch = state["base_lr"], state["last_epoch"]
        self._set()


class LambdaLR(Schedule):
    """The factor is ``lr_lambda(n)``."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float]) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return self.lr_lambda(n)


class StepLR(Schedule):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        if step_size < 1:
            raise ArgumentError(f"StepLR: step_size must be positive, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return self.gamma ** (n // self.step_size)


class MultiStepLR(Schedule):
    """Times ``gamma`` at each of the ``milestones``."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return self.gamma ** sum(1 for m in self.milestones if m <= n)


class ExponentialLR(Schedule):
    """Times ``gamma`` at each step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return self.gamma**n


class LinearLR(Schedule):
    """Linear from ``start_factor`` to ``end_factor`` over ``total_iters`` steps: a warm-up."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5
    ) -> None:
        if total_iters < 1:
            raise ArgumentError(f"LinearLR: total_iters must be positive, got {total_iters}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        part = min(n, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class CosineAnnealingLR(Schedule):
    """Down to ``eta_min`` along half a cosine wave of ``T_max`` steps, after ``warmup`` steps of
    linear rise.

    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    After ``T_max`` steps the wave goes on (upwards), as in torch.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, warmup: int = 0) -> None:
        if T_max < 1 or warmup < 0:
            raise ArgumentError(f"CosineAnnealingLR: T_max={T_max} must be positive, warmup={warmup} not negative")
        self.T_max, self.eta_min, self.warmup = T_max, eta_min, warmup
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        if n < self.warmup:
            return (n + 1) / (self.warmup + 1)
        least = self.eta_min / self.base_lr if self.base_lr else 0.0
        return least + (1.0 - least) * (1.0 + cos(pi * (n - self.warmup) / self.T_max)) / 2.0


class ReduceLROnPlateau:
    """Times ``factor`` when a metric has not improved for more than ``patience`` steps, down to
    ``min_lr``."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        min_lr: float = 0.0,
    ) -> None:
        if mode not in ("min", "max") or not 0.0 < factor < 1.0:
            raise ArgumentError(f"ReduceLROnPlateau: mode 'min' or 'max', factor in (0, 1); got {shown(mode)}, {factor}")
        self.optimizer, self.sign = optimizer, 1.0 if mode == "min" else -1.0
        self.factor, self.patience, self.threshold, self.min_lr = factor, patience, threshold, min_lr
        self.best, self.bad = inf, 0

    def step(self, metrics: Any) -> None:
        """Take the metric of this step, a number or a tensor of one element."""
        value = self.sign * float(metrics)
        if self.best == inf or value < self.best - abs(self.best) * self.threshold:
            self.best, self.bad = value, 0
            return
        self.bad += 1
        if self.bad > self.patience:
            self.bad = 0
            self.optimizer.lr = max(self.optimizer.lr * self.factor, self.min_lr)
