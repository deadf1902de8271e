"""Learning-rate schedules that go up first: one cycle, and cycles without end."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.schedule import Schedule


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
        self.cycled: list[Tensor] = [self._momentum_of(group) for group in groups] if cycle_momentum else []
        super().__init__(optimizer)

    def _momentum_of(self, group: Any) -> Tensor:
        name = "beta1" if "betas" in group.options else "momentum"
        if name == "momentum" and not group.options.get("momentum"):
            raise ArgumentError("OneCycleLR: cycle_momentum=True needs an optimizer with momentum or betas; pass False")
        momentum: Tensor = group.as_tensor(name, self.momenta[0])
        return momentum

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
        if n > self.total_steps:  # as in torch, a step after the last batch, too
            raise ArgumentError(f"OneCycleLR: step {n} of a cycle of {self.total_steps} steps")
        initial = self.max_lrs[k] / self.div_factor
        return self._between(n, (initial, self.max_lrs[k], initial / self.final_div_factor))

    def scheduled(self) -> list[Tensor]:
        return [*super().scheduled(), *self.cycled]

    def values(self, n: int, current: Sequence[float] | None) -> list[float]:
        high, low = self.momenta
        return [*super().values(n, current), *(self._between(n, (high, low, high)) for _ in self.cycled)]


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
