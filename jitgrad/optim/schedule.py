"""The base class of learning-rate schedules."""

from __future__ import annotations

from typing import Any

from jitgrad.optim.optimizer import Optimizer


class Schedule:
    """Base class: subclasses give the factor on the initial learning rates after ``n`` steps.

    ``last_epoch`` counts the steps; the rates are set in the constructor (n = 0) and by each
    ``step()``. Call it outside compiled functions, for which the new rate is new data that needs no
    new trace.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lrs: list[float] = [group["lr"] for group in optimizer.param_groups]
        self.last_epoch: int = 0
        self.set_rates()

    def factor(self, n: int) -> float:
        """The factor on the initial learning rates after ``n`` steps."""
        raise NotImplementedError(f"{type(self).__name__} defines no factor")

    def rate(self, n: int, base: float, k: int) -> float:
        """The learning rate after ``n`` steps of group ``k``, which began with ``base``."""
        return base * self.factor(n)

    def step(self) -> None:
        """Go on to the next learning rates."""
        self.last_epoch += 1
        self.set_rates()

    def set_rates(self) -> None:
        """Set the rates for the current number of steps."""
        for k, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = self.rate(self.last_epoch, base, k)

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The position of the schedule."""
        return {"base_lrs": list(self.base_lrs), "last_epoch": self.last_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to the position in ``state``, and set the learning rates."""
        self.base_lrs, self.last_epoch = list(state["base_lrs"]), state["last_epoch"]
        self.set_rates()
