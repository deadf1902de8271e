"""The base class of learning-rate schedules, and the op by which compiled steps compute rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add
from jitgrad.ops.inplace import assign
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import weak_scalar


class Schedule:
    """Base class: subclasses give the factor on the initial learning rates after ``n`` steps.

    ``last_epoch`` counts the steps; the rates are set in the constructor (n = 0) and by each
    ``step()``. Within a compiled step the count and the rates are state of the program, which calls
    the schedule's Python code for the new rates: nothing is traced anew.

    The first schedule of a group notes its learning rate as ``group["initial_lr"]``. Schedules that
    torch computes from the current rate are computed so here (`next_rate`): two of them multiply,
    and a rate that was set by hand is where they go on.

    A subclass written for torch defines `get_lr`, which reads ``last_epoch``, ``base_lrs`` and
    ``optimizer.param_groups``, in place of `factor`.
    """

    _during: tuple[int, Sequence[float]] | None = None  # count and rates that a run of `get_lr` reads

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        """Begin after ``last_epoch + 1`` steps."""
        if not isinstance(optimizer, Optimizer):
            given = shown(optimizer)
            raise ArgumentError(f"{type(self).__name__}: expected an optimizer such as optim.SGD(...), got {given}")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.initial_lr = group["lr"] if group.initial_lr is None else group.initial_lr
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self._count: Tensor = weak_scalar(last_epoch + 1.0)
        if type(self).step is not Schedule.step:  # as torch's constructor, which steps to the first rates
            self.last_epoch = last_epoch
            self.step()
        elif last_epoch < 0 or type(self).next_rate is Schedule.next_rate:  # else the groups have the rates there
            self.set_rates()

    @property
    def last_epoch(self) -> Any:
        """The number of steps so far; a tensor inside a compiled function."""
        if self._during is not None:
            return self._during[0]
        return add(self._count, 0.0) if current_interpreter.get().tracing else _whole(self._count.item())

    @last_epoch.setter
    def last_epoch(self, value: float) -> None:
        with no_grad():
            assign(self._count, value)

    def factor(self, n: int) -> float:
        """The factor on the initial learning rates after ``n`` steps."""
        raise NotImplementedError(f"{type(self).__name__} defines neither factor(n) nor get_lr()")

    def get_lr(self) -> list[float]:
        """The learning rate of each group after ``last_epoch`` steps, from the rates one step before."""
        n, pairs = self.last_epoch, zip(self.base_lrs, self.get_last_lr(), strict=False)
        return [self.next_rate(n, base, k, now) for k, (base, now) in enumerate(pairs)]

    def rate(self, n: int, base: float, k: int) -> float:
        """The learning rate after ``n`` steps of group ``k``, which began with ``base``."""
        return base * self.factor(n)

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        """The learning rate after ``n`` steps of group ``k``, whose rate is ``current`` after n - 1 steps."""
        return self.rate(n, base, k)

    def scheduled(self) -> list[Tensor]:
        """The scalars that the schedule sets: the learning rate of each group first."""
        return [group.lr for group in self.optimizer.param_groups[: len(self.base_lrs)]]

    def values(self, n: int, current: Sequence[float] | None) -> list[float]:
        """What the `scheduled` scalars are after ``n`` steps: from the ``current`` ones, or from the initial ones."""
        if type(self).get_lr is not Schedule.get_lr:
            with self._standing_at(n, self.base_lrs if current is None else current):
                return [float(rate) for rate in self.get_lr()]
        if current is None:
            return [self.rate(n, base, k) for k, base in enumerate(self.base_lrs)]
        return [
            self.next_rate(n, base, k, now) for k, (base, now) in enumerate(zip(self.base_lrs, current, strict=False))
        ]

    @contextmanager
    def _standing_at(self, n: int, rates: Sequence[float]) -> Iterator[None]:
        """Let ``last_epoch`` and ``group["lr"]`` be ``n`` and ``rates`` meanwhile: a compiled step runs `get_lr` before
        it has written its results."""
        groups = self.optimizer.param_groups
        self._during = (n, rates)
        for group, rate in zip(groups, rates, strict=False):
            group.shown_rate = rate
        try:
            yield
        finally:
            self._during = None
            for group in groups:
                group.shown_rate = None

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next learning rates, or to those after ``epoch`` steps."""
        with no_grad():
            assign(self._count, add(self._count, 1.0) if epoch is None else epoch)
        self.set_rates(direct=epoch is not None)

    def set_rates(self, direct: bool = False) -> None:
        """Set the rates for the current number of steps; ``direct``: from the initial rates."""
        scalars = self.scheduled()
        if current_interpreter.get().tracing:
            values = apply_op(SCHEDULED, self._count, *scalars, schedule=self, direct=direct)
        else:
            current = None if direct else [float(scalar.item()) for scalar in scalars]
            values = self.values(_whole(self._count.item()), current)
        with no_grad():
            for scalar, value in zip(scalars, values, strict=True):
                assign(scalar, value)

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The position of the schedule, and the rates there."""
        return {"base_lrs": list(self.base_lrs), "last_epoch": self.last_epoch, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the position in ``state``, and set the learning rates."""
        self.base_lrs, self.last_epoch = list(state["base_lrs"]), state["last_epoch"]
        self.set_rates(direct=True)
        for group, rate in zip(self.optimizer.param_groups, state.get("_last_lr", ()), strict=False):
            group["lr"] = rate


def _whole(n: Any) -> Any:
    """The number of steps as an int, unless it is between two."""
    return int(n) if float(n).is_integer() else float(n)


def _run(count: Any, *scalars: Any, schedule: Schedule, direct: bool) -> tuple[np.ndarray[Any, Any], ...]:
    current = None if direct else [float(x) for x in scalars]
    return tuple([np.asarray(v, np.float64) for v in schedule.values(_whole(count), current)])


def _avals(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, ...]:
    # weak as the scalars are: the optimizer multiplies float32 gradients by them
    return tuple([Aval((), np.dtype(np.float64), weak=aval.weak) for aval in avals[1:]])


# The schedule's Python code runs when the program does, so what it reads needs no guard.
SCHEDULED = define(
    "scheduled(count, *scalars, schedule, direct)",
    kind=Kind.OPAQUE,
    eager=_run,
    abstract=_avals,
    multiple=True,
    weak_results=True,
    register=False,
)
