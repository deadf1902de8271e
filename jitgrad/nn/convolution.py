"""Layers of convolutions over sequences, images and volumes, and their transposes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional
from jitgrad.nn.init import uniform_parameter
from jitgrad.nn.resetting import UniformStart
from jitgrad.ops.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from jitgrad.ops.placement import placing
from jitgrad.ops.volumes import conv3d, conv_transpose3d


def _tuple_of(count: int, value: Any) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Convolution(UniformStart):
    """Base class: ``axes`` is the number of axes of an image; weights are drawn as torch draws them."""

    weight: Tensor
    bias: Tensor | None
    axes: int
    stride: Any
    transposed = False

    def _set_up(
        self, in_channels: int, out_channels: int, kernel_size: Any, groups: int, bias: bool, dtype: Any
    ) -> None:
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(f"{name}: {in_channels} and {out_channels} channels do not divide into {groups} groups")
        self.in_channels: int = in_channels
        self.out_channels: int = out_channels
        self.groups: int = groups
        self.kernel_size: tuple[int, ...] = _tuple_of(self.axes, kernel_size)
        if len(self.kernel_size) != self.axes or min(self.kernel_size) < 1:
            count = f"an int or {self.axes} of them"
            raise ArgumentError(f"{name}: kernel_size must be {count}, at least 1, got {shown(kernel_size)}")
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        fan_in = shape[1] * prod(self.kernel_size)
        self.weight = uniform_parameter(shape, fan_in, dtype)
        self.register_parameter("bias", uniform_parameter((out_channels,), fan_in, dtype) if bias else None)
        self._start()

    def _fan_in(self) -> int:
        return prod(self.weight.shape[1:])

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"


class _Forward(_Convolution):
    convolve: Callable[..., Tensor]

    @placing
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ArgumentError(f"{type(self).__name__}: padding_mode {shown(padding_mode)} is not known")
        self._set_up(in_channels, out_channels, kernel_size, groups, bias, dtype)
        self.stride = stride
        self.padding: Any = padding
        self.dilation: Any = dilation
        self.padding_mode = padding_mode

    def forward(self, x: Any) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = functional.pad(x, self._border(), self.padding_mode), 0
        return self.convolve(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _border(self) -> list[int]:
        """The padding, (before, after) for the last axis first."""
        if self.padding == "valid":
            return [0, 0] * self.axes
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(_tuple_of(self.axes, self.dilation), self.kernel_size, strict=True)]
            return [n for total in reversed(totals) for n in (total // 2, total - total // 2)]
        return [n for p in reversed(_tuple_of(self.axes, self.padding)) for n in (p, p)]


class Conv1d(_Forward):
    """Cross-correlation of sequences [n, in_channels, length] with weight [out_channels, in_channels / groups, k]."""

    axes = 1
    convolve: Callable[..., Tensor] = staticmethod(conv1d)


class Conv2d(_Forward):
    """Cross-correlation of images [n, in_channels, h, w] with weight [out_channels, in_channels / groups, kh, kw]."""

    axes = 2
    convolve: Callable[..., Tensor] = staticmethod(conv2d)


class Conv3d(_Forward):
    """Cross-correlation of volumes [n, in_channels, d, h, w] with weight [out_channels, in_channels / groups, kd, kh, kw]."""

    axes = 3
    convolve: Callable[..., Tensor] = staticmethod(conv3d)


class _Transposed(_Convolution):
    convolve: Callable[..., Tensor]
    transposed = True

    @placing
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._set_up(in_channels, out_channels, kernel_size, groups, bias, dtype)
        self.stride = stride
        self.padding: Any = padding
        self.output_padding: Any = output_padding
        self.dilation: Any = dilation

    def forward(self, x: Any) -> Tensor:
        more = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return self.convolve(x, self.weight, self.bias, *more)


class ConvTranspose1d(_Transposed):
    """The transpose of Conv1d, with weight [in_channels, out_channels / groups, k]."""

    axes = 1
    convolve: Callable[..., Tensor] = staticmethod(conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """The transpose of Conv2d, with weight [in_channels, out_channels / groups, kh, kw]."""

    axes = 2
    convolve: Callable[..., Tensor] = staticmethod(conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """The transpose of Conv3d, with weight [in_channels, out_channels / groups, kd, kh, kw]."""

    axes = 3
    convolve: Callable[..., Tensor] = staticmethod(conv_transpose3d)
