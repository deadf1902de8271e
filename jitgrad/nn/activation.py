"""Activation functions as modules."""

from __future__ import annotations

from typing import Any, Literal

from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module, Parameter
from jitgrad.ops import activations as act
from jitgrad.ops.creation import full
from jitgrad.ops.placement import placing
from jitgrad.ops.reduce import log_softmax, softmax
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.trigonometric import tanh


class Identity(Module):
    """Returns ``x``; constructor arguments are ignored."""

    def __init__(self, *_args: Any, **_keywords: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, x: Any) -> Tensor:
        return act.relu(x)


class ReLU6(Module):
    """``min(max(x, 0), 6)``."""

    def forward(self, x: Any) -> Tensor:
        return act.relu6(x)


class LeakyReLU(Module):
    """``x`` where positive, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Tensor:
        return act.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class PReLU(Module):
    """``x`` where positive, else a learned slope (one, or one per channel) times ``x``."""

    weight: Tensor

    @placing
    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self.weight = Parameter(full((num_parameters,), init, dtype=dtype))

    def forward(self, x: Any) -> Tensor:
        return act.prelu(x, self.weight)


class ELU(Module):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Any) -> Tensor:
        return act.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class CELU(ELU):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""

    def forward(self, x: Any) -> Tensor:
        return act.celu(x, self.alpha)


class SELU(Module):
    """The self-normalising ELU."""

    def forward(self, x: Any) -> Tensor:
        return act.selu(x)


class SiLU(Module):
    """``x * sigmoid(x)``."""

    def forward(self, x: Any) -> Tensor:
        return act.silu(x)


class Mish(Module):
    """``x * tanh(softplus(x))``."""

    def forward(self, x: Any) -> Tensor:
        return act.mish(x)


class GELU(Module):
    """``x`` times the normal distribution function of ``x``, exact or by tanh."""

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Any) -> Tensor:
        return act.gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``, linear above ``threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Any) -> Tensor:
        return act.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, x: Any) -> Tensor:
        return act.softsign(x)


class Hardtanh(Module):
    """``x`` cut to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Any) -> Tensor:
        return act.hardtanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Hardsigmoid(Module):
    """``relu6(x + 3) / 6``."""

    def forward(self, x: Any) -> Tensor:
        return act.hardsigmoid(x)


class Hardswish(Module):
    """``x * relu6(x + 3) / 6``."""

    def forward(self, x: Any) -> Tensor:
        return act.hardswish(x)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, x: Any) -> Tensor:
        return sigmoid(x)


class LogSigmoid(Module):
    """``log(sigmoid(x))``."""

    def forward(self, x: Any) -> Tensor:
        return act.logsigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Any) -> Tensor:
        return tanh(x)


class Softmax(Module):
    """``exp(x) / sum(exp(x))`` over the axis ``dim``."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Tensor:
        return softmax(x, axis=self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """``log(softmax(x))`` over the axis ``dim``."""

    def forward(self, x: Any) -> Tensor:
        return log_softmax(x, axis=self.dim)
