"""Layers that rearrange elements, take windows, or compare neighbouring channels."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional
from jitgrad.nn.module import Module
from jitgrad.ops.movement import flatten
from jitgrad.ops.torch_names import unflatten


class Flatten(Module):
    """The axes from ``start_dim`` to ``end_dim`` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim: int = start_dim
        self.end_dim: int = end_dim

    def forward(self, x: Any) -> Tensor:
        return flatten(x, self.start_dim, self.end_dim)


class Unflatten(Module):
    """The axis ``dim`` as several, of the lengths ``unflattened_size``, one of which may be -1."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        self.dim: int = dim
        self.unflattened_size: tuple[Any, ...] = tuple(unflattened_size)

    def forward(self, x: Any) -> Tensor:
        return unflatten(x, self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """[..., c * r * r, h, w] rearranged to [..., c, h * r, w * r]."""

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Tensor:
        return functional.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """[..., c, h * r, w * r] rearranged to [..., c * r * r, h, w]."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Any) -> Tensor:
        return functional.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """The channels of [n, c, ...], by turns one of each of ``groups``."""

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Any) -> Tensor:
        return functional.channel_shuffle(x, self.groups)


class Unfold(Module):
    """The windows of images [n, c, h, w] as columns [n, c * kh * kw, windows]."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        self.kernel_size: Any = kernel_size
        self.dilation: Any = dilation
        self.padding: Any = padding
        self.stride: Any = stride

    def forward(self, x: Any) -> Tensor:
        return functional.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Unfold):
    """The images [n, c, height, width] that columns [n, c * kh * kw, windows] add up to."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size: Any = output_size

    def forward(self, x: Any) -> Tensor:
        return functional.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class LocalResponseNorm(Module):
    """Each element over ``(k + alpha * mean of the squares of size neighbouring channels) ** beta``."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size: int = size
        self.alpha: float = alpha
        self.beta: float = beta
        self.k: float = k

    def forward(self, x: Any) -> Tensor:
        return functional.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
