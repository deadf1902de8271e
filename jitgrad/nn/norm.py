"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import Shape, normalize_shape
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module, Parameter
from jitgrad.nn.resetting import UnitStart
from jitgrad.ops.arithmetic import add, astype, divide
from jitgrad.ops.creation import asarray, ones, zeros
from jitgrad.ops.inplace import assign
from jitgrad.ops.neural import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from jitgrad.ops.placement import placing


def _register_affine(module: Module, channels: int, affine: bool, dtype: Any) -> None:
    """Give ``module`` a scale, ``weight``, and a shift, ``bias``, for each of ``channels``; None if not ``affine``."""
    module.register_parameter("weight", Parameter(ones((channels,), dtype=dtype)) if affine else None)
    module.register_parameter("bias", Parameter(zeros((channels,), dtype=dtype)) if affine else None)


def _register_statistics(module: Module, channels: int, tracked: bool, dtype: Any) -> None:
    """Give ``module`` buffers for averages of the mean and variance of each of ``channels``; None if not ``tracked``."""
    module.register_buffer("running_mean", zeros((channels,), dtype=dtype) if tracked else None)
    module.register_buffer("running_var", ones((channels,), dtype=dtype) if tracked else None)
    module.register_buffer("num_batches_tracked", zeros((), dtype=np.int64) if tracked else None)


class LayerNorm(UnitStart):
    """Standardises over the last axes, which are ``normalized_shape``; then scales and shifts."""

    weight: Tensor | None
    bias: Tensor | None

    @placing
    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape: Shape = normalize_shape("LayerNorm", normalized_shape)
        self.eps = eps
        shape = self.normalized_shape
        self.register_parameter("weight", Parameter(ones(shape, dtype=dtype)) if elementwise_affine else None)
        shifts = elementwise_affine and bias
        self.register_parameter("bias", Parameter(zeros(shape, dtype=dtype)) if shifts else None)

    def forward(self, x: Any) -> Tensor:
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class RMSNorm(UnitStart):
    """Divides by the root mean square over the last axes, ``normalized_shape``; then scales."""

    weight: Tensor | None

    @placing
    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape: Shape = normalize_shape("RMSNorm", normalized_shape)
        self.eps = eps
        given = Parameter(ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", given)

    def forward(self, x: Any) -> Tensor:
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class GroupNorm(UnitStart):
    """Standardises groups of channels of [n, num_channels, ...]; scales and shifts channels."""

    weight: Tensor | None
    bias: Tensor | None

    @placing
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(f"GroupNorm: num_channels={num_channels} does not divide into {num_groups} groups")
        self.num_groups: int = num_groups
        self.num_channels: int = num_channels
        self.eps: float = eps
        _register_affine(self, num_channels, affine, dtype)

    def forward(self, x: Any) -> Tensor:
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class _BatchNorm(UnitStart):
    """Standardises [n, num_features, ...] per channel: by the batch in training, by running
    statistics otherwise, which are averages over all batches if ``momentum`` is None."""

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    ndims: tuple[int, ...]  # numbers of axes of the input

    @placing
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_features: int = num_features
        self.eps: float = eps
        self.momentum: float | None = momentum
        _register_affine(self, num_features, affine, dtype)
        _register_statistics(self, num_features, track_running_stats, dtype)

    def forward(self, x: Any) -> Tensor:
        if asarray(x).ndim not in self.ndims:
            allowed = " or ".join(map(str, self.ndims))
            raise ShapeError(f"{type(self).__name__}: expected {allowed} axes, got {asarray(x).aval}")
        learns = self.training or self.running_mean is None
        if self.training and self.num_batches_tracked is not None:
            assign(self.num_batches_tracked, add(self.num_batches_tracked, 1))
        momentum: Any = self.momentum
        if momentum is None and self.num_batches_tracked is not None and self.running_mean is not None:
            momentum = divide(1.0, astype(self.num_batches_tracked, self.running_mean.dtype))
        return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, learns, momentum, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.weight is not None}"


class BatchNorm1d(_BatchNorm):
    """Standardises [n, num_features] or [n, num_features, length] per channel: by the batch in
    training, by running statistics otherwise."""

    ndims: tuple[int, ...] = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Standardises [n, num_features, h, w] per channel: by the batch in training, by running
    statistics otherwise."""

    ndims: tuple[int, ...] = (4,)


class BatchNorm3d(_BatchNorm):
    """Standardises [n, num_features, d, h, w] per channel: by the batch in training, by running
    statistics otherwise."""

    ndims: tuple[int, ...] = (5,)


class InstanceNorm2d(UnitStart):
    """Standardises each channel of each image; scales and shifts channels if ``affine``.

    With ``track_running_stats`` averages of their statistics serve outside of training.
    """

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    @placing
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_features: int = num_features
        self.eps: float = eps
        self.momentum: float = momentum
        _register_affine(self, num_features, affine, dtype)
        _register_statistics(self, num_features, track_running_stats, dtype)

    def forward(self, x: Any) -> Tensor:
        own = self.training or self.running_mean is None
        statistics = (self.running_mean, self.running_var)
        return instance_norm(x, *statistics, self.weight, self.bias, own, self.momentum, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, affine={self.weight is not None}"


class InstanceNorm1d(InstanceNorm2d):
    """Standardises each channel of each sequence; scales and shifts channels if ``affine``."""


class InstanceNorm3d(InstanceNorm2d):
    """Standardises each channel of each volume; scales and shifts channels if ``affine``."""
