"""NumPy's windows for the analysis of signals; vectors of float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import floating, tensor_of
from jitgrad.ops.arithmetic import divide, multiply
from jitgrad.ops.bessel import i0


def bartlett(M: int) -> Tensor:
    """A triangle with zeros at both ends."""
    return tensor_of(np.bartlett(M))


def blackman(M: int) -> Tensor:
    """A sum of three cosines."""
    return tensor_of(np.blackman(M))


def hamming(M: int) -> Tensor:
    """A cosine that does not reach zero."""
    return tensor_of(np.hamming(M))


def hanning(M: int) -> Tensor:
    """A cosine with zeros at both ends."""
    return tensor_of(np.hanning(M))


def kaiser(M: int, beta: Any) -> Tensor:
    """A ratio of modified Bessel functions; differentiable by ``beta``."""
    if M == 1:
        return tensor_of(np.ones(1))
    half = (M - 1) / 2.0
    profile = np.sqrt(np.maximum(1.0 - ((np.arange(M) - half) / half) ** 2, 0.0))
    shape = floating(beta)
    return divide(i0(multiply(shape, profile)), i0(shape))
