"""jax.nn.initializers: functions of a key and a shape that make parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.jax import keys as random
from jitgrad.jax.families import orthogonal as orthogonal_matrices
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.creation import full
from jitgrad.ops.movement import moveaxis, reshape

Initializer = Callable[..., Tensor]
_CUT_STD = 0.87962566103423978  # the standard deviation of a normal number that is cut to [-2, 2]


def constant(value: Any) -> Initializer:
    """All elements ``value``."""
    return lambda key, shape, dtype=None: full(tuple(shape), value, dtype=random.float_dtype(dtype))


zeros: Initializer = constant(0.0)
ones: Initializer = constant(1.0)


def normal(stddev: float = 1e-2, dtype: Any = None) -> Initializer:
    """Normal numbers of this standard deviation."""
    given = dtype
    return lambda key, shape, dtype=None: multiply(random.normal(key, shape, dtype or given), stddev)


def uniform(scale: float = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform numbers in [0, scale)."""
    given = dtype
    return lambda key, shape, dtype=None: random.uniform(key, shape, dtype or given, 0.0, scale)


def truncated_normal(stddev: float = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0) -> Initializer:
    """Normal numbers of this standard deviation before they are cut to [lower, upper] times it."""
    given = dtype
    return lambda key, shape, dtype=None: multiply(random.truncated_normal(key, lower, upper, shape, dtype or given), stddev)


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Matrices with orthonormal columns or rows times ``scale``: all axes but ``column_axis`` count as one.

    Raises ShapeError when called for a shape with less than two axes.
    """
    given = dtype

    def make(key: Any, shape: Sequence[int], dtype: Any = None) -> Tensor:
        if len(shape) < 2:
            raise ShapeError(f"orthogonal: expected a shape with two axes or more, got {tuple(shape)}")
        columns = shape[column_axis]
        matrix = orthogonal_matrices(key, prod(shape) // max(columns, 1), (), dtype or given, columns)
        rest = [n for k, n in enumerate(shape) if k != column_axis % len(shape)]
        return moveaxis(reshape(multiply(matrix, scale), (*rest, columns)), -1, column_axis)

    return make


def variance_scaling(scale: float, mode: str, distribution: str, in_axis: int = -2, out_axis: int = -1) -> Initializer:
    """Numbers of the variance ``scale / n``, where ``n`` counts a unit's inputs, outputs, or the mean of both.

    ``mode`` is "fan_in", "fan_out" or "fan_avg", ``distribution`` "normal", "truncated_normal" or "uniform". Axes other
    than ``in_axis`` and ``out_axis`` are of a receptive field, which both counts include.

    Raises:
        ArgumentError: another ``mode`` or ``distribution``.
        ShapeError: when called for a shape with less than two axes.
    """
    if mode not in ("fan_in", "fan_out", "fan_avg") or distribution not in ("normal", "truncated_normal", "uniform"):
        raise ArgumentError(f"variance_scaling: there is no mode {shown(mode)} with the distribution {shown(distribution)}")

    def make(key: Any, shape: Sequence[int], dtype: Any = None) -> Tensor:
        if len(shape) < 2:
            raise ShapeError(f"variance_scaling: expected a shape with two axes or more, got {tuple(shape)}")
        field = prod(shape) / (shape[in_axis] * shape[out_axis] or 1)
        inputs, outputs = shape[in_axis] * field, shape[out_axis] * field
        count = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[mode]
        std = sqrt(scale / max(1.0, count))
        if distribution == "uniform":
            return random.uniform(key, shape, dtype, -sqrt(3.0) * std, sqrt(3.0) * std)
        if distribution == "normal":
            return multiply(random.normal(key, shape, dtype), std)
        return multiply(random.truncated_normal(key, -2.0, 2.0, shape, dtype), std / _CUT_STD)

    return make


def lecun_normal() -> Initializer:
    """`variance_scaling` by the inputs (Y. LeCun et al., "Efficient BackProp", 1998)."""
    return variance_scaling(1.0, "fan_in", "truncated_normal")


def lecun_uniform() -> Initializer:
    """Likewise with uniform numbers."""
    return variance_scaling(1.0, "fan_in", "uniform")


def glorot_normal() -> Initializer:
    """`variance_scaling` by the mean of both (X. Glorot, Y. Bengio, 2010)."""
    return variance_scaling(1.0, "fan_avg", "truncated_normal")


def glorot_uniform() -> Initializer:
    """Likewise with uniform numbers."""
    return variance_scaling(1.0, "fan_avg", "uniform")


def he_normal() -> Initializer:
    """`variance_scaling` by the inputs with the factor 2, for relu (K. He et al., 2015)."""
    return variance_scaling(2.0, "fan_in", "truncated_normal")


def he_uniform() -> Initializer:
    """Likewise with uniform numbers."""
    return variance_scaling(2.0, "fan_in", "uniform")


xavier_normal, xavier_uniform, kaiming_normal, kaiming_uniform = glorot_normal, glorot_uniform, he_normal, he_uniform
