"""Layers that put elements around sequences, images and volumes."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional
from jitgrad.nn.module import Module


class _Pad(Module):
    """Base class: the same padding on all sides, or (before, after) for the last axis, then for the one before it."""

    axes: int
    mode: str

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        self.padding: tuple[int, ...] = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)

    def forward(self, x: Any) -> Tensor:
        return functional.pad(x, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad1d(_Pad):
    """``value`` around sequences."""

    axes: int = 1
    mode: str = "constant"

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: Any) -> Tensor:
        return functional.pad(x, self.padding, self.mode, self.value)


class ConstantPad2d(ConstantPad1d):
    """``value`` around images."""

    axes = 2


class ZeroPad1d(_Pad):
    """Zeros around sequences."""

    axes: int = 1
    mode: str = "constant"


class ZeroPad2d(_Pad):
    """Zeros around images."""

    axes: int = 2
    mode: str = "constant"


class ReflectionPad1d(_Pad):
    """Sequences mirrored at their ends."""

    axes: int = 1
    mode: str = "reflect"


class ReflectionPad2d(_Pad):
    """Images mirrored at their edges."""

    axes: int = 2
    mode: str = "reflect"


class ReplicationPad1d(_Pad):
    """The ends of sequences repeated."""

    axes: int = 1
    mode: str = "replicate"


class ReplicationPad2d(_Pad):
    """The edges of images repeated."""

    axes: int = 2
    mode: str = "replicate"


class ConstantPad3d(ConstantPad1d):
    """``value`` around volumes."""

    axes = 3


class ZeroPad3d(_Pad):
    """Zeros around volumes."""

    axes: int = 3
    mode: str = "constant"


class ReflectionPad3d(_Pad):
    """Volumes mirrored at their faces."""

    axes: int = 3
    mode: str = "reflect"


class ReplicationPad3d(_Pad):
    """The faces of volumes repeated."""

    axes: int = 3
    mode: str = "replicate"


class CircularPad1d(_Pad):
    """Sequences as a period of longer ones."""

    axes: int = 1
    mode: str = "circular"


class CircularPad2d(_Pad):
    """Images as a period of larger ones."""

    axes: int = 2
    mode: str = "circular"


class CircularPad3d(_Pad):
    """Volumes as a period of larger ones."""

    axes: int = 3
    mode: str = "circular"
