"""GradScaler: keeps gradients of small floats away from 0 by a factor on the loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, TraceError
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import is_available
from jitgrad.ops.arithmetic import add, astype, multiply, reciprocal
from jitgrad.ops.comparison import equal, greater, isfinite, logical_and, logical_not, where
from jitgrad.ops.creation import clone
from jitgrad.ops.inplace import assign
from jitgrad.ops.joining import stack
from jitgrad.ops.reduce import all as all_
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import weak_scalar

# Rounds of different scalers have different numbers: an optimizer has one note of the last one, of any scaler.
_FIRST_ROUNDS = count(0, 2**32)


class GradScaler:
    """Multiplies losses by a scale, and leaves out steps whose gradients are not finite (P. Micikevicius et al.,
    "Mixed precision training", arXiv:1710.03740).

    The scale shrinks by ``backoff_factor`` after such a step, and grows by ``growth_factor`` after ``growth_interval``
    steps without. With ``device="cuda"``, the default, and no such device it is not enabled, as in torch, and changes
    nothing: ``GradScaler("cpu")`` is. A @jit function may call all of it, or only scale losses.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and not (growth_factor > 1.0 > backoff_factor):
            raise ArgumentError(
                f"GradScaler: growth_factor must be above 1 and backoff_factor below, got {growth_factor} and {backoff_factor}"
            )
        self._enabled: bool = enabled and (device != "cuda" or is_available())
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._scale: Tensor = weak_scalar(init_scale)
        self._growth_tracker: Tensor = weak_scalar(0.0)  # steps since the scale changed
        self._round: Tensor = weak_scalar(float(next(_FIRST_ROUNDS)))  # one more after each update
        self._steps: Tensor = weak_scalar(0.0)  # since the last update: optimizers with unscaled gradients
        self._failures: Tensor = weak_scalar(0.0)  # and how many of them have gradients that are not finite

    def is_enabled(self) -> bool:
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """``outputs``, a tensor or an iterable of such, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return multiply(outputs, self._scale)
        if isinstance(outputs, Iterable):
            return type(outputs)([self.scale(x) for x in outputs])  # type: ignore[call-arg]
        raise ArgumentError(f"GradScaler.scale takes tensors, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of ``optimizer`` by the scale, such as before they are clipped.

        Raises:
            ArgumentError: that has been done since the last ``update``, or there are no gradients. In a compiled
                function the first is no error, and changes nothing.
        """
        if not self._enabled:
            return
        if not current_interpreter.get().tracing and optimizer.unscaled_at.item() == self._round.item():
            raise ArgumentError("GradScaler.unscale_ has been called on this optimizer since the last update()")
        self._unscale(optimizer)

    def _unscale(self, optimizer: Optimizer) -> None:
        """`unscale_`, unless that has been done since the last ``update``."""
        with no_grad():
            done = equal(optimizer.unscaled_at, self._round)
            factor = where(done, 1.0, reciprocal(self._scale))
            finite = []
            for p in optimizer.params:
                if (g := p.grad) is not None:
                    finite.append(all_(isfinite(g)))
                    p.grad = astype(multiply(g, factor), g.dtype)
            if not finite:
                raise ArgumentError("GradScaler: no parameter of this optimizer has a gradient: call backward first")
            failed = astype(logical_not(all_(stack(finite))), np.float64)
            assign(optimizer.not_finite, where(done, optimizer.not_finite, failed))
            assign(optimizer.unscaled_at, self._round)
            assign(self._steps, add(self._steps, where(done, 0.0, 1.0)))
            assign(self._failures, add(self._failures, where(done, 0.0, failed)))

    def step(self, optimizer: Optimizer, *args: Any, **keywords: Any) -> Any:
        """``optimizer.step(...)``, unless gradients are not finite; they are unscaled first if they have not been.

        A compiled function computes the step in any case, and keeps the old numbers if gradients are not finite.

        Raises:
            TraceError: in a compiled function, for an optimizer with a ``step`` of its own.
        """
        if not self._enabled:
            return optimizer.step(*args, **keywords)
        if current_interpreter.get().tracing:
            self._unscale(optimizer)
            return _step_unless(optimizer.not_finite, optimizer, *args, **keywords)
        if optimizer.unscaled_at.item() != self._round.item():
            self._unscale(optimizer)
        return None if optimizer.not_finite.item() else optimizer.step(*args, **keywords)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Change the scale after the steps of all optimizers.

        Raises ArgumentError if there was no step; in a compiled function the scale stays as it is then.
        """
        if not self._enabled:
            return
        with no_grad():
            if new_scale is not None:
                assign(self._scale, new_scale)
            elif not current_interpreter.get().tracing and not self._steps.item():
                raise ArgumentError("GradScaler.update: no step(optimizer) or unscale_(optimizer) since the last one")
            else:
                self._follow()
            assign(self._round, add(self._round, 1.0))
            assign(self._steps, 0.0)
            assign(self._failures, 0.0)

    def _follow(self) -> None:
        """Let the scale follow the steps since the last ``update``."""
        failed, any_step = greater(self._failures, 0.0), greater(self._steps, 0.0)
        steps = where(failed, 0.0, add(self._growth_tracker, 1.0))
        grows = logical_and(any_step, equal(steps, float(self._growth_interval)))
        factor = where(failed, self._backoff_factor, where(grows, self._growth_factor, 1.0))
        assign(self._scale, multiply(self._scale, factor))
        assign(self._growth_tracker, where(any_step, where(grows, 0.0, steps), self._growth_tracker))

    def get_scale(self) -> float:
        """The scale; 1.0 if this is not enabled."""
        return float(self._scale.item()) if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors and the count; empty if this is not enabled, as in torch."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": int(self._growth_tracker.item()),
        }  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        if not self._enabled:
            return
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        with no_grad():
            assign(self._growth_tracker, float(state_dict["_growth_tracker"]))
            assign(self._scale, float(state_dict["scale"]))



def _step_unless(failed: Tensor, optimizer: Optimizer, *args: Any, **keywords: Any) -> Any:
    """The step of ``optimizer`` in a trace, where what it changes stays as it is if ``failed`` is 1."""
    if type(optimizer).step is not Optimizer.step:
        raise TraceError(
            f"GradScaler.step of {type(optimizer).__name__} in a @jit function: its step is code of its own, of which the scaler "
            "does not know what it changes. Let the @jit function end with scaler.scale(loss).backward(), and call unscale_, "
            "step and update after it"
        )
    trained = [k for k, p in enumerate(optimizer.params) if p.grad is not None]
    changed = [optimizer.params[k] for k in trained]
    changed += [held[k] for held in optimizer.state_lists for k in trained]
    changed += optimizer.state_scalars
    with no_grad():
        before = [clone(x) for x in changed]
        result = optimizer.step(*args, **keywords)
        for x, old in zip(changed, before, strict=True):
            assign(x, where(greater(failed, 0.0), old, x))
    return result
