"""Averages of weights: `AveragedModel`, its rules, the statistics of batch norms, and the schedule SWALR.

P. Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from math import cos, pi
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module
from jitgrad.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from jitgrad.ops.arithmetic import add, astype, divide, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.inplace import assign
from jitgrad.ops.interpolation import lerp
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.schedule import Schedule

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Tensor], Tensor]  # of the average, the new value and the number of averaged ones
AverageAll = Callable[[Sequence[Tensor], Sequence[Tensor], Tensor], None]  # changes its first argument


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average of one tensor. Raises ArgumentError if ``decay`` is not in [0, 1]."""
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(f"an exponential moving average: decay must be between 0 and 1, got {decay}")

    def average(averaged: Tensor, current: Tensor, _count: Tensor) -> Tensor:
        return lerp(averaged, current, 1.0 - decay)

    return average


def get_swa_avg_fn() -> Average:
    """The mean of one tensor over the calls."""

    def average(averaged: Tensor, current: Tensor, count: Tensor) -> Tensor:
        weight = astype(divide(1.0, add(count, 1)), averaged.dtype)
        return add(averaged, subtract(current, averaged) * weight)

    return average


def _of_all(average: Average) -> AverageAll:
    def average_all(averaged: Sequence[Tensor], current: Sequence[Tensor], count: Tensor) -> None:
        with no_grad():
            for mean, value in zip(averaged, current, strict=True):
                assign(mean, astype(average(mean, value, count), mean.dtype))

    return average_all


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageAll:
    """`get_ema_avg_fn` for lists of tensors, in place."""
    return _of_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> AverageAll:
    """`get_swa_avg_fn` for lists of tensors, in place."""
    return _of_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages of those that `update_parameters` was given.

    By default they are means. ``avg_fn(averaged, current, count)`` returns another average;
    ``multi_avg_fn`` changes a list of averages. With ``use_buffers`` buffers are averaged as well;
    otherwise they are copied. Whether a call is the first one is data of a compiled function, so
    `update_parameters` may stand in a compiled step.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: avg_fn and multi_avg_fn are two rules for one average; give one")
        self.module: Module = deepcopy(model)
        if device is not None:
            self.module.to(device=device)
        self.register_buffer("n_averaged", asarray(np.zeros((), np.int64)))
        self.avg_fn = avg_fn
        self.multi_avg_fn: AverageAll = multi_avg_fn or _of_all(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **keywords: Any) -> Any:
        return self.module(*args, **keywords)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of ``model`` into the averages; the first ones are copied."""
        own, current = [*self.module.parameters()], [*model.parameters()]
        own_buffers, buffers = [*self.module.buffers()], [*model.buffers()]
        if self.use_buffers:
            own, current = own + own_buffers, current + buffers
        averaged, values = [detached(t) for t in own], [detached(t) for t in current]
        with no_grad():
            is_first = equal(self.n_averaged, 0)
            self.multi_avg_fn(averaged, values, self.n_averaged)
            for mean, value in zip(averaged, values, strict=True):
                assign(mean, where(is_first, value, mean))
            if not self.use_buffers:
                for own_buffer, buffer in zip(own_buffers, buffers, strict=True):
                    assign(own_buffer, buffer)
            assign(self.n_averaged, add(self.n_averaged, 1))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the running statistics of all batch norms in ``model`` to the means over the batches of ``loader``.

    A batch is the input of ``model``, or a list or tuple that begins with it.
    """
    norms = [part for part in model.modules() if isinstance(part, (BatchNorm1d, BatchNorm2d, BatchNorm3d))]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all batches
        with no_grad():
            for batch in loader:
                given = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(given if device is None else given.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(Schedule):
    """From the current rate to ``swa_lr`` over ``anneal_epochs`` steps, along a line or a cosine; then constant."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.swa_lrs: list[float] = [swa_lr] * groups if isinstance(swa_lr, (int, float)) else list(swa_lr)
        if len(self.swa_lrs) != groups:
            raise ArgumentError(f"SWALR: {len(self.swa_lrs)} rates swa_lr for {groups} groups")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"SWALR: anneal_strategy must be 'cos' or 'linear', got {shown(anneal_strategy)}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(f"SWALR: anneal_epochs must be an int of at least 0, got {shown(anneal_epochs)}")
        self.anneal_epochs: int = anneal_epochs
        self.is_cosine: bool = anneal_strategy == "cos"
        super().__init__(optimizer, last_epoch)

    def _share(self, n: int) -> float:
        """How much of the rate is ``swa_lr`` after ``n`` steps."""
        t = max(0.0, min(1.0, n / self.anneal_epochs)) if self.anneal_epochs else 1.0
        return (1.0 - cos(pi * t)) / 2.0 if self.is_cosine else t

    def rate(self, n: int, base: float, k: int) -> float:
        share = self._share(n)
        return self.swa_lrs[k] * share + base * (1.0 - share)

    def next_rate(self, n: int, base: float, k: int, current: float) -> float:
        before, target = self._share(n - 1), self.swa_lrs[k]
        start = target if before == 1.0 else (current - before * target) / (1.0 - before)
        share = self._share(n)
        return target * share + start * (1.0 - share)
