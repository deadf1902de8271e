"""jax.image: resized images, as sums of weighted rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import take
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import moveaxis


class ResizeMethod(Enum):
    """How `resize` computes between pixels."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name. Raises ArgumentError for another."""
        if s not in _NAMES:
            raise ArgumentError(f"jax.image: unknown method {shown(s)}; there are {', '.join(_NAMES)}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST, "linear": ResizeMethod.LINEAR, "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR, "triangle": ResizeMethod.LINEAR, "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC, "tricubic": ResizeMethod.CUBIC, "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
}  # fmt: skip


def _cubic(x: Any) -> Any:
    """Keys's cubic convolution with a = -1/2 (R. Keys, 1981)."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2.0, 0.0, np.where(x >= 1.0, far, near))


def _lanczos(radius: int) -> Any:
    return lambda x: np.where(x > radius, 0.0, np.sinc(x) * np.sinc(x / radius))


_KERNELS = {
    ResizeMethod.LINEAR: lambda x: np.maximum(0.0, 1.0 - x), ResizeMethod.CUBIC: _cubic,
    ResizeMethod.LANCZOS3: _lanczos(3), ResizeMethod.LANCZOS5: _lanczos(5),
}  # fmt: skip


def _weights(old: int, new: int, kernel: Any, scale: float, shift: float, antialias: bool) -> np.ndarray[Any, Any]:
    """The matrix [old, new] whose columns say how much of each old pixel is in a new one; they sum to 1 or are 0."""
    width = max(1.0 / scale, 1.0) if antialias else 1.0
    places = (np.arange(new) + 0.5) / scale - shift / scale - 0.5
    weights = kernel(np.abs(places[None, :] - np.arange(old)[:, None]) / width)
    total = weights.sum(0, keepdims=True)
    weights = np.where(np.abs(total) > 1000.0 * np.finfo(np.float32).eps, weights / np.where(total != 0, total, 1.0), 0.0)
    within = (places >= -0.5) & (places <= old - 0.5)
    kept: np.ndarray[Any, Any] = np.where(within[None, :], weights, 0.0)
    return kept


def _method_of(method: str | ResizeMethod) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def resize(
    image: Any, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True, precision: Any = None
) -> Tensor:
    """``image`` in another ``shape`` of as many axes: each pixel a weighted sum of those around its place.

    With ``antialias`` the sum is over all pixels that one of a smaller image covers. ``precision`` changes nothing.

    Raises:
        ShapeError: another number of axes. ArgumentError: an unknown method.
    """
    chosen, out, wanted = _method_of(method), asarray(image), tuple(map(int, shape))
    if len(wanted) != out.ndim:
        raise ShapeError(f"jax.image.resize: expected a shape of {out.ndim} axes, as {out.aval} has, got {wanted}")
    if chosen is ResizeMethod.NEAREST:
        for axis, (old, new) in enumerate(zip(out.shape, wanted, strict=True)):
            if old != new:
                out = take(out, np.floor((np.arange(new) + 0.5) * (old / new)).astype(np.int64), axis)
        return out
    scales = [new / old for old, new in zip(out.shape, wanted, strict=True)]
    axes = [k for k, (old, new) in enumerate(zip(out.shape, wanted, strict=True)) if old != new]
    return _resized(out, wanted, axes, [scales[k] for k in axes], [0.0] * len(axes), chosen, antialias)


def scale_and_translate(
    image: Any, shape: Sequence[int], spatial_dims: Sequence[int], scale: Any, translation: Any,
    method: str | ResizeMethod, antialias: bool = True, precision: Any = None,
) -> Tensor:  # fmt: skip
    """``image`` made larger by ``scale`` and moved by ``translation``, numbers for each of ``spatial_dims``.

    Raises ArgumentError for the method "nearest", or an unknown one.
    """
    chosen, out = _method_of(method), asarray(image)
    if chosen is ResizeMethod.NEAREST:
        raise ArgumentError("jax.image.scale_and_translate: the method must not be nearest")
    wanted, axes = tuple(map(int, shape)), [k % out.ndim for k in spatial_dims]
    return _resized(out, wanted, axes, np.asarray(scale).tolist(), np.asarray(translation).tolist(), chosen, antialias)


def _resized(
    out: Tensor, wanted: Sequence[int], axes: Sequence[int], scales: Sequence[float], shifts: Sequence[float],
    method: ResizeMethod, antialias: bool,
) -> Tensor:  # fmt: skip
    dtype = out.dtype if out.dtype.kind in "fc" else np.dtype(f"f{4 if out.dtype.itemsize < 8 else 8}")  # as in JAX
    out = astype(out, dtype)
    for axis, scale, shift in zip(axes, scales, shifts, strict=True):
        weights = _weights(out.shape[axis], wanted[axis], _KERNELS[method], scale, shift, antialias)
        out = moveaxis(matmul(moveaxis(out, axis, -1), asarray(weights.astype(dtype))), -1, axis)
    return out
