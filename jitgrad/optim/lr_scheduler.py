"""Learning-rate schedules: each sets the rates of an optimizer to a function of the number of its steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import cos, inf, pi
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.schedule import Schedule as Schedule  # noqa: PLC0414 - public here

LRScheduler = Schedule


class LambdaLR(Schedule):
    """The factor is ``lr_lambda(n)``; a list has a function per group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]]
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ArgumentError(f"{type(self).__name__}: {len(self.lr_lambdas)} functions for {groups} groups")
        super().__init__(optimizer)

    def rate(self, n: int, base: float, k: int) -> float:
        return base * self.lr_lambdas[k](n)


class MultiplicativeLR(LambdaLR):
    """Times ``lr_lambda(n)`` at step n; a list has a function per group."""

    def rate(self, n: int, base: float, k: int) -> float:
        for j in range(1, n + 1):
            base *= self.lr_lambdas[k](j)
        return base


class StepLR(Schedule):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        if step_size < 1:
            raise ArgumentError(f"StepLR: step_size must be positive, got {step_size}")
        self.step_size: int = step_size
        self.gamma: float = gamma
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return self.gamma ** (n // self.step_size)


class MultiStepLR(Schedule):
    """Times ``gamma`` at each of the ``milestones``."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones: list[int] = sorted(milestones)
        self.gamma: float = gamma
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
        self.start_factor: float = start_factor
        self.end_factor: float = end_factor
        self.total_iters: int = total_iters
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        part = min(n, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class ConstantLR(Schedule):
    """Times ``factor`` for the first ``total_iters`` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5) -> None:
        self.start_factor: float = factor
        self.total_iters: int = total_iters
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return self.start_factor if n < self.total_iters else 1.0


class PolynomialLR(Schedule):
    """Down to 0 in ``total_iters`` steps, as ``(1 - n / total_iters)**power``."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
        self.total_iters: int = total_iters
        self.power: float = power
        super().__init__(optimizer)

    def factor(self, n: int) -> float:
        return float((1.0 - min(n, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(Schedule):
    """Down to ``eta_min`` along half a cosine wave of ``T_max`` steps, after ``warmup`` steps of
    linear rise.

    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    After ``T_max`` steps the wave goes on (upwards), as in torch.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, warmup: int = 0) -> None:
        if T_max < 1 or warmup < 0:
            raise ArgumentError(f"CosineAnnealingLR: T_max={T_max} must be positive, warmup={warmup} not negative")
        self.T_max: int = T_max
        self.eta_min: float = eta_min
        self.warmup: int = warmup
        super().__init__(optimizer)

    def rate(self, n: int, base: float, k: int) -> float:
        if n < self.warmup:
            return base * (n + 1) / (self.warmup + 1)
        return self.eta_min + (base - self.eta_min) * (1.0 + cos(pi * (n - self.warmup) / self.T_max)) / 2.0


class CosineAnnealingWarmRestarts(Schedule):
    """Half cosine waves from the initial rates to ``eta_min``: the first of ``T_0`` steps, each next one ``T_mult``
    times as long (the paper of CosineAnnealingLR)."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: T_0={T_0} and T_mult={T_mult} must be positive")
        self.T_0: int = T_0
        self.T_mult: int = T_mult
        self.eta_min: float = eta_min
        super().__init__(optimizer)

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
        # each schedule has begun with what the one before it set
        first = schedulers[0].base_lrs
        for later in schedulers[1:]:
            later.base_lrs = list(first)
        super().__init__(optimizer)
        self.base_lrs: list[float] = list(first)

    def set_rates(self) -> None:
        current = bisect_right(self.milestones, self.last_epoch)
        schedule = self.schedulers[current]
        schedule.last_epoch = self.last_epoch - (self.milestones[current - 1] if current else 0)
        schedule.set_rates()


class OneCycleLR(Schedule):
    """Up to ``max_lr`` in ``pct_start`` of all steps, then down far below where it began (L. N. Smith, N. Topin,
    "Super-convergence", 2017).

    ``cycle_momentum`` moves the momentum (of Adam: the first beta) the other way; it becomes a tensor of the optimizer,
    so that compiled steps need no new trace.

    Raises:
        ArgumentError: the number of steps is not given, or an argument has no such value.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        total = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        if total < 1 or not 0 <= pct_start <= 1 or anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"OneCycleLR: needs total_steps, or epochs and steps_per_epoch; pct_start in [0, 1] and anneal_strategy "
                f"'cos' or 'linear'; got {total} steps, {pct_start} and {shown(anneal_strategy)}"
            )
        self.total_steps: int = total
        self.strategy: str = anneal_strategy
        groups = optimizer.param_groups
        self.max_lrs: list[float] = [float(max_lr)] * len(groups) if isinstance(max_lr, (int, float)) else [*map(float, max_lr)]
        self.div_factor: float = div_factor
        self.final_div_factor: float = final_div_factor
        self.momenta: tuple[float, float] = (max_momentum, base_momentum)
        rise = pct_start * total - 1
        # (last step, value at its start, value at its end); values are 0: initial, 1: largest, 2: final
        self.phases: list[tuple[float, int, int]] = [(rise, 0, 1), (total - 1, 1, 2)]
        if three_phase:
            self.phases = [(rise, 0, 1), (2 * pct_start * total - 2, 1, 0), (total - 1, 0, 2)]
        self.cycled: list[Any] = [self._momentum_of(group) for group in groups] if cycle_momentum else []
        super().__init__(optimizer)

    def _momentum_of(self, group: Any) -> Any:
        name = "beta1" if "betas" in group.options else "momentum"
        if name == "momentum" and not group.options.get("momentum"):
            raise ArgumentError("OneCycleLR: cycle_momentum=True needs an optimizer with momentum or betas; pass False")
        return group.as_tensor(name, self.momenta[0])

    def _between(self, n: int, values: tuple[float, float, float]) -> float:
        start = 0.0
        for end, first, last in self.phases:
            if n <= end or end == self.phases[-1][0]:
                part = (n - start) / (end - start) if end != start else 1.0
                if self.strategy == "linear":
                    return values[first] + (values[last] - values[first]) * part
                return values[last] + (values[first] - values[last]) * (1.0 + cos(pi * part)) / 2.0
            start = end
        raise AssertionError("the last phase ends at the last step")

    def rate(self, n: int, base: float, k: int) -> float:
        if n >= self.total_steps:
            raise ArgumentError(f"OneCycleLR: step {n + 1} of a cycle of {self.total_steps} steps")
        initial = self.max_lrs[k] / self.div_factor
        return self._between(n, (initial, self.max_lrs[k], initial / self.final_div_factor))

    def set_rates(self) -> None:
        super().set_rates()
        high, low = self.momenta
        for group, held in zip(self.optimizer.param_groups, self.cycled, strict=False):
            name = "beta1" if "betas" in group.options else "momentum"
            assert group.options[name] is held
            group[name] = self._between(self.last_epoch, (high, low, high))


class CyclicLR(Schedule):
    """Up from ``base_lr`` to ``max_lr`` and down again, in lines (L. N. Smith, "Cyclical learning rates", WACV 2017).

    ``mode`` "triangular" keeps the height, "triangular2" halves it with each cycle, "exp_range" makes it
    ``gamma**n``. ``cycle_momentum`` is not supported: pass False.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float,
        max_lr: float,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        cycle_momentum: bool = True,
    ) -> None:
        if cycle_momentum or mode not in ("triangular", "triangular2", "exp_range"):
            raise ArgumentError(f"CyclicLR: pass cycle_momentum=False, and one of torch's modes; got {shown(mode)}")
        self.low: float = base_lr
        self.high: float = max_lr
        self.mode: str = mode
        self.gamma: float = gamma
        self.up: int = step_size_up
        self.down: int = step_size_up if step_size_down is None else step_size_down
        super().__init__(optimizer)

    def rate(self, n: int, base: float, k: int) -> float:
        cycle, place = divmod(n, self.up + self.down)
        part = place / self.up if place <= self.up else 1.0 - (place - self.up) / self.down
        scale = {"triangular": 1.0, "triangular2": 0.5**cycle, "exp_range": self.gamma**n}[self.mode]
        return self.low + (self.high - self.low) * part * scale


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
