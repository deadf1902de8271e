"""Windows of tensors as columns, and back; pooling by them; and channels rearranged into images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, divide, multiply, square
from jitgrad.ops.convolution import FOLD, UNFOLD, as_images, as_row, int_pair, only_int, padded
from jitgrad.ops.creation import asarray
from jitgrad.ops.movement import cut, moveaxis, permute_dims, reshape, squeeze
from jitgrad.ops.pooling import avg_pool2d
from jitgrad.ops.scattering import scatter
from jitgrad.ops.transcendental import pow as pow_

# --- columns -----------------------------------------------------------------------------------------------------


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of ``x`` [n, c, h, w] as columns [n, c * kh * kw, windows], as torch.nn.functional.unfold.

    Raises:
        ShapeError: the padded image is smaller than the window.
    """
    what = "unfold"
    x, alone = as_images(what, x)
    kernel, steps = int_pair(what, "kernel_size", kernel_size, 1), int_pair(what, "stride", stride, 1)
    spread, margin = int_pair(what, "dilation", dilation, 1), int_pair(what, "padding", padding, 0)
    border = (margin[0], margin[0]), (margin[1], margin[1])
    parts = apply_op(UNFOLD, padded(x, border), kernel=kernel, stride=steps, dilation=spread)
    columns = reshape(parts, (x.shape[0], x.shape[1] * prod(kernel), prod(parts.shape[-2:])))
    return reshape(columns, columns.shape[1:]) if alone else columns


def fold(
    x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The image [n, c, height, width] that columns [n, c * kh * kw, windows] add up to: the transpose of :func:`unfold`.

    Raises:
        ShapeError: there are not as many columns, or as long ones, as such an image has windows.
    """
    what = "fold"
    given = asarray(x)
    columns = reshape(given, (1, *given.shape)) if given.ndim == 2 else given
    size, kernel = int_pair(what, "output_size", output_size, 1), int_pair(what, "kernel_size", kernel_size, 1)
    steps, spread = int_pair(what, "stride", stride, 1), int_pair(what, "dilation", dilation, 1)
    margin = int_pair(what, "padding", padding, 0)
    whole = size[0] + 2 * margin[0], size[1] + 2 * margin[1]
    rows, across = ((whole[k] - spread[k] * (kernel[k] - 1) - 1) // steps[k] + 1 for k in (0, 1))
    if columns.ndim != 3 or columns.shape[1] % prod(kernel) or columns.shape[2] != max(rows, 0) * max(across, 0):
        raise ShapeError(
            f"{what}: {given.aval}: expected [n, channels * {prod(kernel)}, {max(rows, 0) * max(across, 0)}], the "
            f"windows {kernel} of an image {size}"
        )
    channels = columns.shape[1] // prod(kernel)
    parts = reshape(columns, (columns.shape[0], channels, *kernel, rows, across))
    image: Tensor = apply_op(FOLD, parts, shape=whole, kernel=kernel, stride=steps, dilation=spread)
    for axis in (0, 1):
        image = cut(image, 2 + axis, margin[axis], margin[axis] + size[axis])
    return reshape(image, image.shape[1:]) if given.ndim == 2 else image


@composed
def windows_along(x: Any, dimension: int, size: int, step: int) -> Tensor:
    """torch's ``x.unfold(dimension, size, step)``: windows along one axis, their elements on a new last one."""
    x = asarray(x)
    axis = normalize_axis("unfold", dimension, x.ndim)
    if not 1 <= size <= x.shape[axis] or step < 1:
        raise ArgumentError(f"unfold: size={size} and step={step} do not fit axis {dimension} of {x.aval}")
    lines = moveaxis(x, axis, -1)
    rows = reshape(lines, (*lines.shape[:-1], 1, lines.shape[-1]))
    parts = apply_op(UNFOLD, rows, kernel=(1, size), stride=(1, step), dilation=(1, 1))
    count = parts.shape[-1]
    by_window = permute_dims(reshape(parts, (*lines.shape[:-1], size, count)), (*range(x.ndim - 1), x.ndim, x.ndim - 1))
    return moveaxis(by_window, x.ndim - 1, axis)


# --- pooling -----------------------------------------------------------------------------------------------------


def lp_pool2d(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The ``norm_type``-norm of each window of ``x`` [n, c, h, w]: ``sum(x ** p) ** (1 / p)``, as in torch."""
    kernel = int_pair("lp_pool2d", "kernel_size", kernel_size, 1)
    powers = square(x) if norm_type == 2 else pow_(x, norm_type)
    total = avg_pool2d(powers, kernel, stride, 0, ceil_mode, True, 1)
    return pow_(total, 1.0 / norm_type)


def lp_pool1d(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """:func:`lp_pool2d` of ``x`` [n, c, length]."""
    size = only_int("lp_pool1d", "kernel_size", kernel_size)
    step = size if stride is None else only_int("lp_pool1d", "stride", stride)
    return squeeze(lp_pool2d(as_row("lp_pool1d", x), norm_type, (1, size), (1, step), ceil_mode), -2)


def max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Zeros, but the elements of ``x`` at ``indices``, as ``max_pool2d(..., return_indices=True)`` gives both.

    ``output_size``: the height and width of the result, where several fit. Of elements for one place, the last stays.
    """
    what = "max_unpool2d"
    x, alone = as_images(what, x)
    kernel, margin = int_pair(what, "kernel_size", kernel_size, 1), int_pair(what, "padding", padding, 0)
    steps = kernel if stride is None else int_pair(what, "stride", stride, 1)
    image = unpooled(what, x, indices, kernel, steps, margin, output_size)
    return reshape(image, image.shape[1:]) if alone else image


def unpooled(
    what: str, x: Tensor, indices: Any, kernel: Sequence[int], steps: Sequence[int], margin: Sequence[int], output_size: Any
) -> Tensor:
    """Zeros [n, c, ...], but the elements of ``x`` [n, c, ...] at ``indices`` in the flattened axes after the channels."""
    axes = zip(x.shape[2:], steps, margin, kernel, strict=True)
    fitting = tuple((n - 1) * s - 2 * m + k for n, s, m, k in axes)
    size = fitting if output_size is None else tuple(output_size)[-len(fitting) :]
    if any(abs(a - b) >= s for a, b, s in zip(size, fitting, steps, strict=True)):
        raise ArgumentError(f"{what}: output_size {shown(output_size)} does not fit: it must be near {fitting}")
    lines = (*x.shape[:2], prod(x.shape[2:]))
    places = reshape(asarray(indices), lines)
    out = scatter(x.new_zeros((*x.shape[:2], prod(size))), 2, places, reshape(x, lines))
    return reshape(out, (*x.shape[:2], *size))


def max_unpool1d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """:func:`max_unpool2d` of ``x`` [n, c, length]."""
    what = "max_unpool1d"
    size, margin = only_int(what, "kernel_size", kernel_size), only_int(what, "padding", padding)
    step = size if stride is None else only_int(what, "stride", stride)
    length = None if output_size is None else (1, tuple(output_size)[-1])
    row, places = as_row(what, x), as_row(what, indices)
    return squeeze(max_unpool2d(row, places, (1, size), (1, step), (0, margin), length), -2)


# --- channels ----------------------------------------------------------------------------------------------------


def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """[..., c * r * r, h, w] rearranged to [..., c, h * r, w * r] (W. Shi et al., CVPR 2016)."""
    x, r = asarray(input), upscale_factor
    *rest, channels, h, w = x.shape
    if r < 1 or channels % (r * r):
        raise ArgumentError(f"pixel_shuffle: {channels} channels do not divide by {r} squared")
    n, parts = len(rest), reshape(x, (*rest, channels // (r * r), r, r, h, w))
    moved = permute_dims(parts, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshape(moved, (*rest, channels // (r * r), h * r, w * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """[..., c, h * r, w * r] rearranged to [..., c * r * r, h, w]: the inverse of :func:`pixel_shuffle`."""
    x, r = asarray(input), downscale_factor
    *rest, channels, h, w = x.shape
    if r < 1 or h % r or w % r:
        raise ArgumentError(f"pixel_unshuffle: an image of {h} by {w} does not divide by {r}")
    n, parts = len(rest), reshape(x, (*rest, channels, h // r, r, w // r, r))
    moved = permute_dims(parts, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshape(moved, (*rest, channels * r * r, h // r, w // r))


def channel_shuffle(input: Any, groups: int) -> Tensor:
    """The channels of [n, c, ...], by turns one of each of ``groups`` (X. Zhang et al., arXiv:1707.01083)."""
    x = asarray(input)
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ArgumentError(f"channel_shuffle: {groups} groups do not fit {x.aval}")
    n, channels, *rest = x.shape
    parts = reshape(x, (n, groups, channels // groups, *rest))
    return reshape(permute_dims(parts, (0, 2, 1, *range(3, parts.ndim))), x.shape)


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Each element over ``(k + alpha * mean of the squares of size neighbouring channels) ** beta`` (A. Krizhevsky et
    al., NeurIPS 2012), of [n, c, ...]."""
    x = asarray(input)
    if x.ndim < 3 or size < 1:
        raise ArgumentError(f"local_response_norm: size={size} does not fit {x.aval}; expected [n, channels, ...]")
    squares = reshape(square(x), (x.shape[0], 1, x.shape[1], prod(x.shape[2:])))
    around = padded(squares, ((size // 2, (size - 1) // 2), (0, 0)))
    mean = reshape(avg_pool2d(around, (size, 1), 1), x.shape)
    return divide(x, pow_(add(multiply(mean, alpha), k), beta))

