"""Invertible functions of random variables, with the logarithms of their slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.activations import softplus
from jitgrad.ops.arithmetic import abs, add, clip, multiply
from jitgrad.ops.creation import asarray
from jitgrad.ops.entropy import logit
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.reduce import sum
from jitgrad.ops.transcendental import exp, log, sigmoid
from jitgrad.ops.trigonometric import atanh, tanh

_LOG_2 = math.log(2.0)


class Transform:
    """``t(x)``, its inverse ``t.inv(y)``, and ``t.log_abs_det_jacobian(x, y)`` for ``y = t(x)``.

    Subclasses define ``_call(x)``, ``_inverse(y)`` and ``log_abs_det_jacobian``, as in torch. ``event_dim`` is how many
    axes of ``x`` the function takes together. Nothing is remembered from one call to the next: ``cache_size`` is
    accepted and changes nothing.
    """

    event_dim: int = 0
    bijective: ClassVar[bool] = True

    def __init__(self, cache_size: int = 0) -> None:
        self.cache_size = cache_size

    def __call__(self, x: Operand) -> Tensor:
        return self._call(asarray(x))

    @property
    def inv(self) -> Transform:
        """The inverse function."""
        return _Inverse(self)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the absolute slope, or of the Jacobian's determinant over the last ``event_dim`` axes."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """A transform backwards."""

    def __init__(self, forward: Transform) -> None:
        super().__init__()
        self.event_dim = forward.event_dim
        self._forward = forward

    @property
    def inv(self) -> Transform:
        return self._forward

    def _call(self, x: Tensor) -> Tensor:
        return self._forward._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._forward._call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)


class _Identity(Transform):
    """``x`` itself."""

    def _call(self, x: Tensor) -> Tensor:
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x * 0.0


class ExpTransform(Transform):
    """``exp(x)``."""

    def _call(self, x: Tensor) -> Tensor:
        return exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(Transform):
    """``sigmoid(x)``, kept off 0 and 1 by rounding, as in torch."""

    def _call(self, x: Tensor) -> Tensor:
        return _inside(sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        return logit(_inside(y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """``tanh(x)``; the inverse of exactly -1 and 1 is infinite."""

    def _call(self, x: Tensor) -> Tensor:
        return tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (_LOG_2 - x - softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """``log(1 + exp(x))``."""

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + log(-(-y).expm1())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class AffineTransform(Transform):
    """``loc + scale * x``, over vectors or more with ``event_dim``."""

    def __init__(self, loc: Operand, scale: Operand, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc = loc
        self.scale = scale
        self.event_dim = event_dim

    def _call(self, x: Tensor) -> Tensor:
        return add(self.loc, multiply(self.scale, x))

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope = broadcast_to(log(abs(asarray(self.scale, dtype=x.dtype))), x.shape)
        return over_axes(slope, self.event_dim)


class ComposeTransform(Transform):
    """``parts`` one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts: list[Transform] = list(parts)
        self.event_dim: int = max([part.event_dim for part in self.parts], default=0)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part._call(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            raise ArgumentError("ComposeTransform: of no parts; give at least one")
        slopes: list[Any] = []
        for part in self.parts:
            after = part._call(x)
            slopes.append(over_axes(part.log_abs_det_jacobian(x, after), self.event_dim - part.event_dim))
            x = after
        total = slopes[0]
        for slope in slopes[1:]:
            total = total + slope
        return total  # type: ignore[no-any-return]


identity_transform: Transform = _Identity()


def over_axes(x: Tensor, count: int) -> Tensor:
    """``x`` summed over its last ``count`` axes."""
    return sum(x, tuple(range(-count, 0))) if count else x


def _inside(y: Tensor) -> Tensor:
    limits = np.finfo(y.dtype)
    return clip(y, float(limits.tiny), 1.0 - float(limits.eps))
