"""Linear maps, embeddings, convolutions, pooling and dropout."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.init import normal_parameter, uniform_parameter
from jitgrad.nn.module import Module
from jitgrad.ops.convolution import avg_pool2d, conv2d, max_pool2d
from jitgrad.ops.linalg import linear
from jitgrad.ops.movement import reshape
from jitgrad.ops.neural import dropout, embedding
from jitgrad.ops.placement import placing
from jitgrad.ops.random import Generator


class Linear(Module):
    """``x @ weight.T + bias`` for x [..., in_features], weight [out_features, in_features], bias
    [out_features]."""

    weight: Tensor
    bias: Tensor | None

    @placing
    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform_parameter((out_features, in_features), in_features, dtype)
        self.register_parameter("bias", uniform_parameter((out_features,), in_features, dtype) if bias else None)

    def forward(self, x: Any) -> Tensor:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """The rows of ``weight`` [num_embeddings, embedding_dim] at integer indices."""

    weight: Tensor

    @placing
    def __init__(self, num_embeddings: int, embedding_dim: int, device: Any = None, dtype: Any = None) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = normal_parameter((num_embeddings, embedding_dim), dtype)

    def forward(self, x: Any) -> Tensor:
        return embedding(x, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class Conv2d(Module):
    """Cross-correlation of images [n, in_channels, h, w] with weight [out_channels, in_channels /
    groups, kh, kw]."""

    weight: Tensor
    bias: Tensor | None

    @placing
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(f"Conv2d: {in_channels} and {out_channels} channels do not divide into {groups} groups")
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        shape = (out_channels, in_channels // groups, *kernel)
        fan_in = shape[1] * kernel[0] * kernel[1]
        self.weight = uniform_parameter(shape, fan_in, dtype)
        self.register_parameter("bias", uniform_parameter((out_channels,), fan_in, dtype) if bias else None)

    def forward(self, x: Any) -> Tensor:
        return conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"


class MaxPool2d(Module):
    """The largest element of each window."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> None:
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation

    def forward(self, x: Any) -> Tensor:
        return max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Any) -> Tensor:
        return avg_pool2d(x, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class Dropout(Module):
    """Drops elements with probability ``p`` in training, and scales others by ``1 / (1 - p)``."""

    def __init__(self, p: float = 0.5, generator: Generator | None = None) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"Dropout: a probability is between 0 and 1, got {p}")
        self.p, self.generator = p, generator

    def forward(self, x: Any) -> Tensor:
        return dropout(x, self.p, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Flatten(Module):
    """All axes from ``start_dim`` on as one."""

    def __init__(self, start_dim: int = 1) -> None:
        self.start_dim = start_dim

    def forward(self, x: Any) -> Tensor:
        shape = x.shape[: self.start_dim]
        rest = 1
        for n in x.shape[self.start_dim :]:
            rest *= n
        return reshape(x, (*shape, rest))
