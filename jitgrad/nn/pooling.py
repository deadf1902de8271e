"""Layers of pooling, and of resizing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module
from jitgrad.ops import pooling, resampling, volumes, windows


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


class MaxPool3d(MaxPool2d):
    """The largest element of each window of a volume."""

    def forward(self, x: Any) -> Any:
        return volumes.max_pool3d(x, *self._arguments())


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

    pool: Callable[..., Tensor] = staticmethod(pooling.avg_pool2d)

    def forward(self, x: Any) -> Tensor:
        more = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return self.pool(x, self.kernel_size, self.stride, self.padding, *more)


class AvgPool3d(AvgPool2d):
    """The mean of each window of a volume."""

    pool: Callable[..., Tensor] = staticmethod(volumes.avg_pool3d)


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

    pool: Callable[..., Tensor] = staticmethod(pooling.adaptive_avg_pool2d)

    def forward(self, x: Any) -> Tensor:
        return self.pool(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptiveAvgPool2d):
    """The means of parts of a sequence, so many that the result has ``output_size``."""

    pool: Callable[..., Tensor] = staticmethod(pooling.adaptive_avg_pool1d)


class AdaptiveAvgPool3d(AdaptiveAvgPool2d):
    """The means of parts of a volume, so many that the result has ``output_size``."""

    pool: Callable[..., Tensor] = staticmethod(volumes.adaptive_avg_pool3d)


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """The largest elements of parts of an image, so many that the result has ``output_size``; with ``return_indices``
    a named tuple of them and of their positions."""

    pool: Callable[..., Any] = staticmethod(pooling.adaptive_max_pool2d)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices: bool = return_indices

    def forward(self, x: Any) -> Any:
        return self.pool(x, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool2d):
    """The largest elements of parts of a sequence, so many that the result has ``output_size``; with
    ``return_indices`` a named tuple of them and of their positions."""

    pool: Callable[..., Any] = staticmethod(pooling.adaptive_max_pool1d)


class AdaptiveMaxPool3d(AdaptiveMaxPool2d):
    """The largest elements of parts of a volume, so many that the result has ``output_size``; with ``return_indices``
    a named tuple of them and of their positions."""

    pool: Callable[..., Any] = staticmethod(volumes.adaptive_max_pool3d)


class LPPool2d(Module):
    """The ``norm_type``-norm of each window of an image."""

    pool: Callable[..., Tensor] = staticmethod(windows.lp_pool2d)

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        self.norm_type: float = norm_type
        self.kernel_size: Any = kernel_size
        self.stride: Any = stride
        self.ceil_mode: bool = ceil_mode

    def forward(self, x: Any) -> Tensor:
        return self.pool(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}"


class LPPool1d(LPPool2d):
    """The ``norm_type``-norm of each window of a sequence."""

    pool: Callable[..., Tensor] = staticmethod(windows.lp_pool1d)


class MaxUnpool2d(_Pooling):
    """An image with the largest elements at the places that ``MaxPool2d(return_indices=True)`` found, else zeros."""

    unpool: Callable[..., Tensor] = staticmethod(windows.max_unpool2d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size: Any = kernel_size
        self.stride: Any = stride
        self.padding: Any = padding

    def forward(self, x: Any, indices: Any, output_size: Any = None) -> Tensor:
        return self.unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool2d):
    """A sequence with the largest elements at the places that ``MaxPool1d(return_indices=True)`` found, else zeros."""

    unpool: Callable[..., Tensor] = staticmethod(windows.max_unpool1d)


class MaxUnpool3d(MaxUnpool2d):
    """A volume with the largest elements at the places that ``MaxPool3d(return_indices=True)`` found, else zeros."""

    unpool: Callable[..., Tensor] = staticmethod(volumes.max_unpool3d)


class Upsample(Module):
    """A sequence, image or volume resized to ``size`` or by ``scale_factor``, in a mode of
    :func:`jitgrad.nn.functional.interpolate`."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size: Any = size
        self.scale_factor: Any = scale_factor
        self.mode: str = mode
        self.align_corners: bool | None = align_corners
        self.recompute_scale_factor: bool | None = recompute_scale_factor

    def forward(self, x: Any) -> Tensor:
        how = (self.mode, self.align_corners, self.recompute_scale_factor)
        return resampling.interpolate(x, self.size, self.scale_factor, *how)


class UpsamplingNearest2d(Upsample):
    """An image resized to ``size`` or by ``scale_factor`` by its nearest pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """An image resized to ``size`` or by ``scale_factor`` bilinearly; corners stay at corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
