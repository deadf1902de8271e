"""GradScaler: keeps gradients of small floats away from 0 by a factor on the loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, TraceError
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import is_available
from jitgrad.ops.arithmetic import astype, multiply, reciprocal
from jitgrad.ops.comparison import isfinite
from jitgrad.ops.inplace import assign
from jitgrad.ops.reduce import all as all_
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import weak_scalar


class GradScaler:
    """Multiplies losses by a scale, and leaves out steps whose gradients are not finite (P. Micikevicius et al.,
    "Mixed precision training", arXiv:1710.03740).

    The scale shrinks by ``backoff_factor`` after such a step, and grows by ``growth_factor`` after ``growth_interval``
    steps without. With ``device="cuda"``, the default, and no such device it is not enabled, as in torch, and changes
    nothing: ``GradScaler("cpu")`` is. A @jit function may scale losses; of a scaler that is enabled the rest stays outside.
    """

    _unguarded = ("_growth_tracker", "_failed")  # eager execution alone reads them

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
        self._growth_tracker: int = 0  # steps since the scale changed
        self._failed: dict[int, bool] = {}  # by optimizer, since the last update: whether gradients are not finite

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
            ArgumentError: that has been done since the last ``update``.
            TraceError: in a compiled function.
        """
        if not self._enabled:
            return
        _refuse_trace("unscale_")
        if id(optimizer) in self._failed:
            raise ArgumentError("GradScaler.unscale_ has been called on this optimizer since the last update()")
        finite: list[bool] = []
        with no_grad():
            factor = reciprocal(self._scale)
            for p in optimizer.params:
                if (g := p.grad) is not None:
                    finite.append(bool(all_(isfinite(g))))
                    p.grad = astype(multiply(g, factor), g.dtype)
        if not finite:
            raise ArgumentError("GradScaler: no parameter of this optimizer has a gradient: call backward first")
        self._failed[id(optimizer)] = not all(finite)

    def step(self, optimizer: Optimizer, *args: Any, **keywords: Any) -> Any:
        """``optimizer.step(...)``, unless gradients are not finite; they are unscaled first if they have not been.

        Raises:
            TraceError: in a compiled function.
        """
        if not self._enabled:
            return optimizer.step(*args, **keywords)
        _refuse_trace("step")
        if id(optimizer) not in self._failed:
            self.unscale_(optimizer)
        return None if self._failed[id(optimizer)] else optimizer.step(*args, **keywords)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Change the scale after the steps of all optimizers.

        Raises:
            ArgumentError: there was no step.
            TraceError: in a compiled function.
        """
        if not self._enabled:
            return
        _refuse_trace("update")
        steps, failed = len(self._failed), any(self._failed.values())
        self._failed.clear()
        if new_scale is not None:
            self._set_scale(float(new_scale))
            return
        if not steps:
            raise ArgumentError("GradScaler.update: no step(optimizer) or unscale_(optimizer) since the last one")
        self._growth_tracker = 0 if failed else self._growth_tracker + 1
        if failed:
            self._set_scale(self.get_scale() * self._backoff_factor)
        elif self._growth_tracker == self._growth_interval:
            self._growth_tracker = 0
            self._set_scale(self.get_scale() * self._growth_factor)

    def _set_scale(self, value: float) -> None:
        with no_grad():
            assign(self._scale, value)

    def get_scale(self) -> float:
        """The scale; 1.0 if this is not enabled."""
        return float(self._scale.item()) if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors and the count; empty if this is not enabled, as in torch."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        if not self._enabled:
            return
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
        self._set_scale(float(state_dict["scale"]))


def _refuse_trace(what: str) -> None:
    if current_interpreter.get().tracing:
        raise TraceError(
            f"GradScaler.{what} in a @jit function: whether an optimizer steps is decided by the gradients of each call. Let the "
            "@jit function compute scaler.scale(loss).backward(), and call unscale_, step and update after it"
        )
