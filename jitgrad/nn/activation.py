"""Activation functions as modules."""

from __future__ import annotations

from typing import Any, Literal

from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional
from jitgrad.nn.module import Module, Parameter
from jitgrad.ops import activations as act
from jitgrad.ops.creation import full
from jitgrad.ops.inplace import assign
from jitgrad.ops.placement import placing
from jitgrad.ops.random import Generator
from jitgrad.ops.reduce import log_softmax, softmax
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.trigonometric import tanh


class Identity(Module):
    """Returns ``x``; constructor arguments are ignored."""

    def __init__(self, *_args: Any, **_keywords: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class _InPlace(Module):
    """Base class of functions without parameters, which may change their argument ``inplace``."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


class ReLU(_InPlace):
    """``max(x, 0)``."""

    def forward(self, x: Any) -> Tensor:
        return functional.relu(x, self.inplace)


class ReLU6(_InPlace):
    """``min(max(x, 0), 6)``."""

    def forward(self, x: Any) -> Tensor:
        return functional.relu6(x, self.inplace)


class LeakyReLU(Module):
    """``x`` where positive, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope: float = negative_slope
        self.inplace: bool = inplace

    def forward(self, x: Any) -> Tensor:
        return functional.leaky_relu(x, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class RReLU(Module):
    """``x`` where positive, else times a slope: random between ``lower`` and ``upper`` in training, else their mean."""

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False, *, generator: Generator | None = None
    ) -> None:
        self.lower: float = lower
        self.upper: float = upper
        self.inplace: bool = inplace
        self.generator: Generator | None = generator

    def forward(self, x: Any) -> Tensor:
        return functional.rrelu(x, self.lower, self.upper, self.training, self.inplace, generator=self.generator)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


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

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha: float = alpha
        self.inplace: bool = inplace

    def forward(self, x: Any) -> Tensor:
        return functional.elu(x, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class CELU(ELU):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""

    def forward(self, x: Any) -> Tensor:
        return functional.celu(x, self.alpha, self.inplace)


class SELU(_InPlace):
    """The self-normalising ELU."""

    def forward(self, x: Any) -> Tensor:
        return functional.selu(x, self.inplace)


class SiLU(_InPlace):
    """``x * sigmoid(x)``."""

    def forward(self, x: Any) -> Tensor:
        return functional.silu(x, self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``."""

    def forward(self, x: Any) -> Tensor:
        return functional.mish(x, self.inplace)


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
        self.beta: float = beta
        self.threshold: float = threshold

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

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val: float = min_val
        self.max_val: float = max_val
        self.inplace: bool = inplace

    def forward(self, x: Any) -> Tensor:
        return functional.hardtanh(x, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Hardsigmoid(_InPlace):
    """``relu6(x + 3) / 6``."""

    def forward(self, x: Any) -> Tensor:
        return functional.hardsigmoid(x, self.inplace)


class Hardswish(_InPlace):
    """``x * relu6(x + 3) / 6``."""

    def forward(self, x: Any) -> Tensor:
        return functional.hardswish(x, self.inplace)


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


class Softmin(Softmax):
    """The softmax of ``-x`` over the axis ``dim``."""

    def forward(self, x: Any) -> Tensor:
        return functional.softmin(x, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of images [..., channels, h, w]."""

    def forward(self, x: Any) -> Tensor:
        return softmax(x, axis=-3)


class GLU(Module):
    """The first half along ``dim``, times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Tensor:
        return functional.glu(x, self.dim)


class Threshold(Module):
    """``x`` where it is above ``threshold``, else ``value``; ``inplace`` changes ``x``."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold: float = threshold
        self.value: float = value
        self.inplace: bool = inplace

    def forward(self, x: Any) -> Tensor:
        out = functional.threshold(x, self.threshold, self.value)
        return assign(x, out) if self.inplace else out


class Hardshrink(Module):
    """``x`` where its size is above ``lambd``, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Any) -> Tensor:
        return functional.hardshrink(x, self.lambd)


class Softshrink(Hardshrink):
    """``x`` moved towards 0 by ``lambd``, at most to 0."""

    def forward(self, x: Any) -> Tensor:
        return functional.softshrink(x, self.lambd)


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, x: Any) -> Tensor:
        return functional.tanhshrink(x)
