"""Initial values of parameters, under torch's names, drawn from the default generator."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Parameter
from jitgrad.ops.inplace import assign
from jitgrad.ops.placement import beside
from jitgrad.ops.random import Generator, normal, randn, uniform

# --- for the layers of this package ------------------------------------------------------------------------------


def uniform_parameter(shape: Any, fan_in: int, dtype: Any) -> Tensor:
    """Uniform in +-1 / sqrt(fan_in).

    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015, with torch's slope
    sqrt(5): sqrt(6 / ((1 + 5) fan_in)).
    """
    bound = 1.0 / sqrt(fan_in) if fan_in > 0 else 0.0
    return Parameter(uniform(-bound, bound, shape, dtype=dtype))


def normal_parameter(shape: Any, dtype: Any) -> Tensor:
    """Normal with mean 0 and standard deviation 1."""
    return Parameter(randn(shape, dtype=dtype))


# --- in place, without a history -----------------------------------------------------------------------------


def _set(tensor: Tensor, value: Any) -> Tensor:
    with no_grad():
        return assign(tensor, value)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    with beside(tensor):
        return _set(tensor, uniform(a, b, tensor.shape, dtype=tensor.dtype, generator=generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    with beside(tensor):
        return _set(tensor, normal(mean, std, tensor.shape, dtype=tensor.dtype, generator=generator))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers, drawn again until they are in [a, b].

    Raises:
        ArgumentError: hardly any would be.
    """
    values = np.empty(tensor.shape, tensor.dtype)
    missing, rounds = np.ones(tensor.shape, np.bool_), 0
    while missing.any():
        if (rounds := rounds + 1) > 1_000:
            raise ArgumentError(f"trunc_normal_: hardly a number of mean {mean} and deviation {std} is in [{a}, {b}]")
        drawn = normal(mean, std, tensor.shape, dtype=tensor.dtype, generator=generator).concrete("trunc_normal_")
        fits = missing & (drawn >= a) & (drawn <= b)
        values[fits] = drawn[fits]
        missing &= ~fits
    return _set(tensor, values)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """``val`` everywhere."""
    return _set(tensor, val)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _set(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return _set(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix. Raises ShapeError unless the tensor is a matrix."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: expected a matrix, got {tensor.aval}")
    return _set(tensor, np.eye(*tensor.shape, dtype=tensor.dtype))


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Orthogonal rows or columns, whichever are fewer (A. Saxe, J. McClelland, S. Ganguli, ICLR 2014).

    Axes after the first count as one. Raises ShapeError below two axes.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: expected at least two axes, got {tensor.aval}")
    rows, columns = tensor.shape[0], prod(tensor.shape[1:])
    drawn = randn((max(rows, columns), min(rows, columns)), dtype=np.float64, generator=generator)
    q, r = np.linalg.qr(drawn.concrete("orthogonal_"))
    q *= np.sign(np.diag(r))  # uniform over all such matrices
    matrix = q.T if rows < columns else q
    return _set(tensor, (gain * matrix).reshape(tensor.shape).astype(tensor.dtype))


# --- by the numbers of inputs and outputs ------------------------------------------------------------------------


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor on the deviation of weights before ``nonlinearity``, which keeps the variance of activations.

    Raises:
        ArgumentError: the name is not known.
    """
    if nonlinearity in ("linear", "conv1d", "conv2d", "sigmoid"):
        return 1.0
    gains = {"tanh": 5.0 / 3, "relu": sqrt(2.0), "selu": 0.75}
    if nonlinearity == "leaky_relu":
        return sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        raise ArgumentError(f"calculate_gain: {shown(nonlinearity)} is not known; linear, relu, tanh and others are")
    return gains[nonlinearity]


def _fans(what: str, tensor: Tensor) -> tuple[int, int]:
    """How many numbers one output sums up, and in how many outputs one input counts."""
    if tensor.ndim < 2:
        raise ShapeError(f"{what}: expected weights of at least two axes, got {tensor.aval}")
    window = prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform, of variance ``2 gain**2 / (fan_in + fan_out)`` (X. Glorot, Y. Bengio, AISTATS 2010)."""
    bound = gain * sqrt(6.0 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal, of variance ``2 gain**2 / (fan_in + fan_out)`` (X. Glorot, Y. Bengio, AISTATS 2010)."""
    return normal_(tensor, 0.0, gain * sqrt(2.0 / sum(_fans("xavier_normal_", tensor))), generator)


def _kaiming_deviation(what: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"{what}: mode must be 'fan_in' or 'fan_out', got {shown(mode)}")
    return calculate_gain(nonlinearity, a) / sqrt(_fans(what, tensor)[mode == "fan_out"])


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform, of variance ``gain**2 / fan`` (K. He et al., "Delving deep into rectifiers", ICCV 2015)."""
    bound = sqrt(3.0) * _kaiming_deviation("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal, of variance ``gain**2 / fan`` (K. He et al., "Delving deep into rectifiers", ICCV 2015)."""
    return normal_(tensor, 0.0, _kaiming_deviation("kaiming_normal_", tensor, a, mode, nonlinearity), generator)
