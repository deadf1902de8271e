"""Convolution and pooling of volumes: those of images over two axes, and windows along the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, multiply
from jitgrad.ops.convolution import FOLD, UNFOLD, conv2d, conv_transpose2d, padded
from jitgrad.ops.creation import asarray
from jitgrad.ops.indexing import gather
from jitgrad.ops.movement import cut, expand_dims, permute_dims, reshape
from jitgrad.ops.operand import ValuesAndIndices
from jitgrad.ops.pooling import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, max_pool2d
from jitgrad.ops.rounding import floor_divide
from jitgrad.ops.windows import unpooled

Triple = tuple[int, int, int]
IMAGE, SLICES = "h and w", "d"


def int_triple(what: str, name: str, value: Any, least: int) -> Triple:
    """An argument for volumes: an int, or three, of at least ``least``."""
    triple = (value,) * 3 if isinstance(value, (int, np.integer)) else tuple(value)
    if len(triple) != 3 or min(triple) < least:
        raise ArgumentError(f"{what}: {name} must be an int or three ints of at least {least}, got {shown(value)}")
    return int(triple[0]), int(triple[1]), int(triple[2])


def as_volumes(what: str, x: Any) -> tuple[Tensor, bool]:
    """``x`` as [n, channels, d, h, w], and whether the batch axis was put there."""
    x = asarray(x)
    if x.ndim not in (4, 5):
        raise ShapeError(f"{what}: expected [n, channels, d, h, w] or [channels, d, h, w], got {x.aval}")
    return (expand_dims(x, 0), True) if x.ndim == 4 else (x, False)


def _without_batch(out: Tensor, alone: bool) -> Tensor:
    return reshape(out, out.shape[1:]) if alone else out


# --- convolution -------------------------------------------------------------------------------------------------


def conv3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The cross-correlation of ``x`` [n, c, d, h, w] with ``weight`` [out, c / groups, kd, kh, kw], as torch's conv3d.

    The slices under a window along the first axis become channels of :func:`jitgrad.conv2d`. ``padding`` may be "same"
    or "valid".

    Raises:
        ShapeError: channels, groups and weight do not fit, or the volume is smaller than the window.
    """
    what = "conv3d"
    given, weight = asarray(x), asarray(weight)
    x, alone = as_volumes(what, given)
    if weight.ndim != 5 or groups < 1 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(
            f"{what}: a volume {given.aval} of {x.shape[1]} channels, weight {weight.aval} and groups={groups} do not fit "
            "together: the weight is [out, channels / groups, kd, kh, kw]"
        )
    steps, spread = int_triple(what, "stride", stride, 1), int_triple(what, "dilation", dilation, 1)
    outs, ins, depth, *kernel = weight.shape
    before, after, across = _padding(what, padding, weight.shape[2:], steps, spread)
    n, channels, _, h, w = x.shape
    slices = reshape(x, (n, channels, x.shape[2], h * w))
    windows = apply_op(
        UNFOLD,
        padded(slices, ((before, after), (0, 0))),
        kernel=(depth, 1),
        stride=(steps[0], 1),
        dilation=(spread[0], 1),
    )
    count = windows.shape[-2]
    by_window = permute_dims(reshape(windows, (n, channels, depth, count, h, w)), (0, 3, 1, 2, 4, 5))
    images = reshape(by_window, (n * count, channels * depth, h, w))
    filters = reshape(weight, (outs, ins * depth, *kernel))
    out = conv2d(images, filters, bias, steps[1:], across, spread[1:], groups)
    volumes = permute_dims(reshape(out, (n, count, outs, *out.shape[2:])), (0, 2, 1, 3, 4))
    return _without_batch(volumes, alone)


def _padding(
    what: str, padding: Any, kernel: Sequence[int], stride: Triple, dilation: Triple
) -> tuple[int, int, Any]:
    """(before, after the first axis, the padding of conv2d)."""
    if padding == "valid":
        return 0, 0, 0
    if padding == "same":
        if stride != (1, 1, 1):
            raise ArgumentError(f"{what}: padding='same' needs stride 1, got {stride}")
        total = dilation[0] * (kernel[0] - 1)
        return total // 2, total - total // 2, "same"
    first, *rest = int_triple(what, "padding", padding, 0)
    return first, first, tuple(rest)


def conv_transpose3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of :func:`conv3d`, for ``x`` [n, c, d, h, w] and ``weight`` [c, out / groups, kd, kh, kw].

    Raises:
        ShapeError: channels, groups and weight do not fit.
        ArgumentError: the padding leaves no volume.
    """
    what = "conv_transpose3d"
    given, weight = asarray(x), asarray(weight)
    x, alone = as_volumes(what, given)
    if weight.ndim != 5 or groups < 1 or x.shape[1] != weight.shape[0] or x.shape[1] % groups:
        raise ShapeError(
            f"{what}: a volume {given.aval} of {x.shape[1]} channels, weight {weight.aval} and groups={groups} do not fit "
            "together: the weight is [channels, out / groups, kd, kh, kw]"
        )
    steps, spread = int_triple(what, "stride", stride, 1), int_triple(what, "dilation", dilation, 1)
    margin, extra = int_triple(what, "padding", padding, 0), int_triple(what, "output_padding", output_padding, 0)
    (n, ins, d, h, w), (_, outs, depth, *kernel) = x.shape, weight.shape
    images = reshape(permute_dims(x, (0, 2, 1, 3, 4)), (n * d, ins, h, w))
    filters = reshape(weight, (ins, outs * depth, *kernel))
    out = conv_transpose2d(images, filters, None, steps[1:], margin[1:], extra[1:], groups, spread[1:])
    height, width = out.shape[2:]
    by_window = permute_dims(reshape(out, (n, d, groups * outs, depth, height * width)), (0, 2, 3, 1, 4))
    volume = padded(_added_slices(by_window, steps[0], spread[0]), ((0, extra[0]), (0, 0)))
    if volume.shape[2] <= 2 * margin[0]:
        raise ArgumentError(f"{what}: padding={margin} leaves nothing of a volume of {volume.shape[2]} slices")
    volume = cut(volume, 2, margin[0], volume.shape[2] - margin[0])
    volume = reshape(volume, (n, groups * outs, volume.shape[2], height, width))
    return _without_batch(volume if bias is None else add(volume, expand_dims(asarray(bias), (1, 2, 3))), alone)


def _added_slices(parts: Tensor, step: int, spread: int) -> Tensor:
    """The slices [n, c, whole, pixels] that windows of them, [n, c, depth, windows, pixels], add up to."""
    n, channels, depth, count, pixels = parts.shape
    columns = reshape(parts, (n, channels, depth, 1, count, pixels))
    whole = (count - 1) * step + spread * (depth - 1) + 1
    attrs: dict[str, Any] = {"kernel": (depth, 1), "stride": (step, 1), "dilation": (spread, 1)}
    slices: Tensor = apply_op(FOLD, columns, shape=(whole, pixels), **attrs)
    return slices


# --- pooling -----------------------------------------------------------------------------------------------------


def max_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of ``x`` [n, c, d, h, w]; padding counts as -inf. Equal largest elements share
    the gradient.

    With ``return_indices`` a named tuple of them and of their positions in the flattened volume, of the first of equals.
    """
    what = "max_pool3d"
    volumes, alone = as_volumes(what, x)
    kernel = int_triple(what, "kernel_size", kernel_size, 1)
    step = kernel if stride is None or stride == [] else int_triple(what, "stride", stride, 1)
    margin, spread = int_triple(what, "padding", padding, 0), int_triple(what, "dilation", dilation, 1)

    def pool(images: Tensor, axes: str) -> Any:
        k, s, p, d = (_pair(v, axes, fill) for v, fill in ((kernel, 1), (step, 1), (margin, 0), (spread, 1)))
        return max_pool2d(images, k, s, p, d, ceil_mode, return_indices)

    return _largest(volumes, pool, alone, return_indices)


def avg_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of ``x`` [n, c, d, h, w], with :func:`jitgrad.avg_pool2d`'s options."""
    what = "avg_pool3d"
    volumes, alone = as_volumes(what, x)
    kernel = int_triple(what, "kernel_size", kernel_size, 1)
    step = kernel if stride is None or stride == [] else int_triple(what, "stride", stride, 1)
    margin = int_triple(what, "padding", padding, 0)

    def pool(images: Tensor, axes: str) -> Tensor:
        k, s, p = (_pair(v, axes, fill) for v, fill in ((kernel, 1), (step, 1), (margin, 0)))
        divisor = None if divisor_override is None else divisor_override if axes == IMAGE else 1
        return avg_pool2d(images, k, s, p, ceil_mode, count_include_pad, divisor)

    return _without_batch(_over_both(volumes, pool), alone)


def _pair(triple: Triple, axes: str, fill: int) -> tuple[int, int]:
    """The part of an argument that concerns the images [h, w], or the slices [d, h * w]."""
    return triple[1:] if axes == IMAGE else (triple[0], fill)


def _over_both(x: Tensor, pool: Any) -> Tensor:
    """``pool(images, IMAGE)`` of [n, c, d, h, w] over the last two axes, and ``pool(images, SLICES)`` of the result over
    the first."""
    n, channels, d, h, w = x.shape
    flat = pool(reshape(x, (n, channels * d, h, w)), IMAGE)
    height, width = flat.shape[2:]
    out = pool(reshape(flat, (n, channels, d, height * width)), SLICES)
    return reshape(out, (n, channels, out.shape[2], height, width))


def _largest(x: Tensor, pool: Any, alone: bool, return_indices: bool) -> Any:
    """The largest elements over both, with ``return_indices`` with their positions, which ``pool`` then gives, too."""
    if not return_indices:
        return _without_batch(_over_both(x, pool), alone)
    n, channels, d, h, w = x.shape
    flat, places = pool(reshape(x, (n, channels * d, h, w)), IMAGE)
    height, width = flat.shape[2:]
    pixels = height * width
    out, chosen = pool(reshape(flat, (n, channels, d, pixels)), SLICES)
    lines = (n, channels, out.shape[2] * pixels)
    in_slice = gather(reshape(places, (n, channels, d * pixels)), 2, reshape(chosen, lines))
    positions = add(multiply(floor_divide(reshape(chosen, lines), pixels), h * w), in_slice)
    shape = (n, channels, out.shape[2], height, width)
    return ValuesAndIndices(*(_without_batch(reshape(part, shape), alone) for part in (out, positions)))


def max_unpool3d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Zeros, but the elements of ``x`` at ``indices``, as ``max_pool3d(..., return_indices=True)`` gives both.

    ``output_size``: the depth, height and width of the result, where several fit. Of elements for one place, the last
    stays.
    """
    what = "max_unpool3d"
    volumes, alone = as_volumes(what, x)
    kernel, margin = int_triple(what, "kernel_size", kernel_size, 1), int_triple(what, "padding", padding, 0)
    steps = kernel if stride is None else int_triple(what, "stride", stride, 1)
    return _without_batch(unpooled(what, volumes, indices, kernel, steps, margin, output_size), alone)


def _sizes(what: str, output_size: Any) -> tuple[Any, Any, Any]:
    triple = (output_size,) * 3 if isinstance(output_size, (int, np.integer, type(None))) else tuple(output_size)
    if len(triple) != 3:
        raise ArgumentError(f"{what}: output_size must be an int or three ints (or None), got {shown(output_size)}")
    return triple[0], triple[1], triple[2]


def _adaptive(what: str, pool: Any, x: Any, output_size: Any) -> Tensor:
    volumes, alone = as_volumes(what, x)
    first, *rest = _sizes(what, output_size)
    sizes = {IMAGE: tuple(rest), SLICES: (first, None)}
    return _without_batch(_over_both(volumes, lambda images, axes: pool(images, sizes[axes])), alone)


def adaptive_avg_pool3d(x: Any, output_size: Any) -> Tensor:
    """The means of parts of ``x`` [n, c, d, h, w], so many that the result has ``output_size`` (None: that of ``x``)."""
    return _adaptive("adaptive_avg_pool3d", adaptive_avg_pool2d, x, output_size)


def adaptive_max_pool3d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of parts of ``x`` [n, c, d, h, w], so many that the result has ``output_size``.

    With ``return_indices`` a named tuple of them and of their positions in the flattened volume, of the first of equals.
    """
    volumes, alone = as_volumes("adaptive_max_pool3d", x)
    first, *rest = _sizes("adaptive_max_pool3d", output_size)
    sizes = {IMAGE: tuple(rest), SLICES: (first, None)}
    return _largest(volumes, lambda part, axes: adaptive_max_pool2d(part, sizes[axes], return_indices), alone, return_indices)
