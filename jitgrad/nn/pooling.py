"""Layers of pooling, and of resizing."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module
from jitgrad.ops import pooling


class _Pooling(Module):
    """Base class of layers whose constructor arguments are those of their function."""

    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(_Pooling):
    """The largest element of each window."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation: Any = dilation
        self.return_indices: bool = return_indices
        self.ceil_mode: bool = ceil_mode

    def _arguments(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def forward(self, x: Any) -> Any:
        return pooling.max_pool2d(x, *self._arguments())


class MaxPool1d(MaxPool2d):
    """The largest element of each window of a sequence."""

    def forward(self, x: Any) -> Any:
        return pooling.max_pool1d(x, *self._arguments())


class AvgPool2d(_Pooling):
    """The mean of each window."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size: Any = kernel_size
        self.stride: Any = stride
        self.padding: Any = padding
        self.ceil_mode: bool = ceil_mode
        self.count_include_pad: bool = count_include_pad
        self.divisor_override: int | None = divisor_override

    def forward(self, x: Any) -> Tensor:
        more = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return pooling.avg_pool2d(x, self.kernel_size, self.stride, self.padding, *more)


class AvgPool1d(_Pooling):
    """The mean of each window of a sequence."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size: Any = kernel_size
        self.stride: Any = stride
        self.padding: Any = padding
        self.ceil_mode: bool = ceil_mode
        self.count_include_pad: bool = count_include_pad

    def forward(self, x: Any) -> Tensor:
        more = (self.ceil_mode, self.count_include_pad)
        return pooling.avg_pool1d(x, self.kernel_size, self.stride, self.padding, *more)


class AdaptiveAvgPool2d(Module):
    """The means of parts of an image, so many that the result has ``output_size``."""

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Tensor:
        return pooling.adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptiveAvgPool2d):
    """The means of parts of a sequence, so many that the result has ``output_size``."""

    def forward(self, x: Any) -> Tensor:
        return pooling.adaptive_avg_pool1d(x, self.output_size)


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """The largest elements of parts of an image, so many that the result has ``output_size``."""

    def forward(self, x: Any) -> Tensor:
        return pooling.adaptive_max_pool2d(x, self.output_size)


class Upsample(Module):
    """An image resized to ``size`` or by ``scale_factor``; ``mode`` "nearest" or "bilinear"."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
    ) -> None:
        self.size: Any = size
        self.scale_factor: Any = scale_factor
        self.mode: str = mode
        self.align_corners: bool | None = align_corners

    def forward(self, x: Any) -> Tensor:
        return pooling.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)
