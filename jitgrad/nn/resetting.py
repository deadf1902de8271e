"""Layers whose parameters can be drawn anew: `reset_parameters`, as torch's layers have it."""

from __future__ import annotations

from math import sqrt

from jitgrad.core.tensor import Tensor
from jitgrad.nn.init import ones_, uniform_, zeros_
from jitgrad.nn.module import Module


class UniformStart(Module):
    """A layer whose parameters are uniform in +-1 / sqrt(fan in) at first."""

    def _fan_in(self) -> int:
        """How many inputs each output adds up."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Draw all parameters anew. `__init__` calls it if a subclass has its own."""
        bound = 1.0 / sqrt(self._fan_in()) if self._fan_in() > 0 else 0.0
        for parameter in self.parameters():
            uniform_(parameter, -bound, bound)

    def _start(self) -> None:
        """What `__init__` does last: the parameters have been drawn, unless a subclass says how."""
        if type(self).reset_parameters is not UniformStart.reset_parameters:
            self.reset_parameters()


class UnitStart(Module):
    """A layer that scales by 1 and shifts by 0 at first."""

    weight: Tensor | None
    bias: Tensor | None

    def reset_running_stats(self) -> None:
        """Forget the running means and variances, if there are any."""
        for name, buffer in self.named_buffers():
            (ones_ if name == "running_var" else zeros_)(buffer)

    def reset_parameters(self) -> None:
        """Scale by 1 and shift by 0 again, and forget running means and variances."""
        self.reset_running_stats()
        for name, parameter in self.named_parameters():
            (ones_ if name == "weight" else zeros_)(parameter)
