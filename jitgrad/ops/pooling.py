"""Pooling: reductions over windows of images, and over parts of them that fit a given size."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply
from jitgrad.ops.convolution import UNFOLD, Border, Pair, as_images, as_row, int_pair, only_int, padded
from jitgrad.ops.creation import asarray, full, iota
from jitgrad.ops.indexing import gather, take_along_axis
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import cut, reshape, squeeze
from jitgrad.ops.operand import ValuesAndIndices
from jitgrad.ops.placement import beside
from jitgrad.ops.reduce import argmax
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.resampling import mixed_along
from jitgrad.ops.rounding import floor_divide, remainder


class _Windows:
    """The windows that a pooling looks at: kernel, stride, dilation, padding, and what ``ceil_mode`` adds to it."""

    def __init__(
        self, what: str, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any = 1, ceil_mode: bool = False
    ) -> None:
        self.x, self.alone = as_images(what, x)
        self.kernel = int_pair(what, "kernel_size", kernel, 1)
        self.stride = self.kernel if stride is None or stride in ([], ()) else int_pair(what, "stride", stride, 1)
        self.dilation = int_pair(what, "dilation", dilation, 1)
        self.padding = int_pair(what, "padding", padding, 0)
        if any(2 * p > k for p, k in zip(self.padding, self.kernel, strict=True)):
            raise ArgumentError(f"{what}: padding={self.padding} is more than half of kernel_size={self.kernel}")
        self.beyond = (self._beyond(0), self._beyond(1)) if ceil_mode else (0, 0)

    def _beyond(self, axis: int) -> int:
        """How far the last window goes beyond the padding, if it begins before that ends (torch's ceil_mode)."""
        n, step, margin = self.x.shape[2 + axis], self.stride[axis], self.padding[axis]
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        count = -(-(n + 2 * margin - reach) // step) + 1
        if (count - 1) * step >= n + margin:
            count -= 1
        return max(0, (count - 1) * step + reach - n - 2 * margin)

    @property
    def border(self) -> Border:
        (top, left), (below, after) = self.padding, self.beyond
        return (top, top + below), (left, left + after)

    def of(self, image: Tensor, border: Border, value: float = 0.0) -> Tensor:
        """The windows [..., kh, kw, oh, ow] of ``image``."""
        out: Tensor = apply_op(
            UNFOLD, padded(image, border, value), kernel=self.kernel, stride=self.stride, dilation=self.dilation
        )
        return out

    def without_batch(self, out: Tensor) -> Tensor:
        return reshape(out, out.shape[1:]) if self.alone else out


def max_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of ``x`` [n, c, h, w]; padding counts as -inf. Equal largest elements share
    the gradient.

    ``ceil_mode`` adds a last window that begins within the image and ends outside. With ``return_indices`` the result
    is a pair of values and positions in the flattened image, of the first of equals.
    """
    windows = _Windows("max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode)
    image = windows.x
    least = -np.inf if image.dtype.kind == "f" else int(np.iinfo(image.dtype).min)
    parts = windows.of(image, windows.border, least)
    if not return_indices:
        return windows.without_batch(max_(parts, axis=(2, 3)))
    (n, channels, h, w), (rows, columns) = image.shape, parts.shape[-2:]
    with beside(image):
        first = argmax(reshape(parts, (n, channels, -1, rows, columns)), 2)
        row = _position(floor_divide(first, windows.kernel[1]), iota((rows, 1), 0), windows, 0)
        column = _position(remainder(first, windows.kernel[1]), iota((columns,), 0), windows, 1)
    places = add(multiply(row, w), column)
    values = gather(reshape(image, (n, channels, h * w)), 2, reshape(places, (n, channels, rows * columns)))
    return ValuesAndIndices(*map(windows.without_batch, (reshape(values, places.shape), places)))


def _position(inside: Tensor, window: Tensor, windows: _Windows, axis: int) -> Tensor:
    """The coordinate in the image of a position in a window."""
    start = add(multiply(window, windows.stride[axis]), -windows.padding[axis])
    return add(multiply(inside, windows.dilation[axis]), start)


def avg_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of ``x`` [n, c, h, w]; padding counts as zeros, or not at all.

    ``ceil_mode`` adds a last window that begins within the image; what it has outside never counts.
    ``divisor_override`` divides the sums in place of the number of elements.
    """
    windows = _Windows("avg_pool2d", x, kernel_size, stride, padding, 1, ceil_mode)
    total = sum_(windows.of(windows.x, windows.border), axis=(2, 3))
    kernel = windows.kernel
    if divisor_override is not None or (count_include_pad and windows.beyond == (0, 0)):
        return windows.without_batch(divide(total, divisor_override or kernel[0] * kernel[1]))
    (h, w), (top, left) = windows.x.shape[2:], windows.padding
    counted = (h + 2 * top, w + 2 * left) if count_include_pad else (h, w)
    outside: Border = ((0, windows.beyond[0]), (0, windows.beyond[1])) if count_include_pad else windows.border
    ones = full(counted, 1.0, dtype=windows.x.dtype, device=windows.x.device)
    return windows.without_batch(divide(total, sum_(windows.of(ones, outside), axis=(0, 1))))


# --- sequences ---------------------------------------------------------------------------------------------------


def max_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """:func:`max_pool2d` of ``x`` [n, c, length]."""
    what = "max_pool1d"
    size = only_int(what, "kernel_size", kernel_size)
    step = size if stride is None else only_int(what, "stride", stride)
    margin, spread = only_int(what, "padding", padding), only_int(what, "dilation", dilation)
    rows = as_row(what, x)
    out = max_pool2d(rows, (1, size), (1, step), (0, margin), (1, spread), ceil_mode, return_indices)
    return ValuesAndIndices(squeeze(out[0], -2), squeeze(out[1], -2)) if return_indices else squeeze(out, -2)


def avg_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """:func:`avg_pool2d` of ``x`` [n, c, length]."""
    what = "avg_pool1d"
    size = only_int(what, "kernel_size", kernel_size)
    step = size if stride is None else only_int(what, "stride", stride)
    margin = (0, only_int(what, "padding", padding))
    return squeeze(avg_pool2d(as_row(what, x), (1, size), (1, step), margin, ceil_mode, count_include_pad), -2)


# --- a given size of the result ----------------------------------------------------------------------------------


def _wanted(what: str, output_size: Any, shape: tuple[int, ...]) -> Pair:
    given = (output_size, output_size) if isinstance(output_size, (int, type(None))) else tuple(output_size)
    if len(given) != 2 or any(n is not None and n < 1 for n in given):
        raise ArgumentError(f"{what}: output_size must be an int or two ints (or None), got {shown(output_size)}")
    rows, columns = (n if n is not None else m for n, m in zip(given, shape[-2:], strict=True))
    return rows, columns


def _bounds(length: int, parts: int) -> list[tuple[int, int]]:
    """torch's parts of an axis, which may overlap."""
    return [(k * length // parts, -(-(k + 1) * length // parts)) for k in range(parts)]


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Tensor:
    """The means of parts of ``x`` [..., h, w], so many that the result has ``output_size`` (None: that of ``x``)."""
    x = asarray(x)
    out: Tensor = x
    for wanted, axis in zip(_wanted("adaptive_avg_pool2d", output_size, x.shape), (-2, -1), strict=True):
        length = x.shape[axis]
        if wanted != length:
            weights = np.zeros((wanted, length), x.dtype)
            for k, (start, stop) in enumerate(_bounds(length, wanted)):
                weights[k, start:stop] = 1.0 / (stop - start)
            out = mixed_along(out, weights, axis)
    return out


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Tensor:
    """The means of parts of ``x`` [..., length], so many that the result has ``output_size``."""
    what = "adaptive_avg_pool1d"
    wanted = only_int(what, "output_size", output_size)
    return squeeze(adaptive_avg_pool2d(as_row(what, x), (1, wanted)), -2)


def adaptive_max_pool2d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of parts of ``x`` [..., h, w], so many that the result has ``output_size``.

    With ``return_indices`` a named tuple of them and of their int64 positions in the flattened plane, the first of equals.
    """
    x = asarray(x)
    wanted = _wanted("adaptive_max_pool2d", output_size, x.shape)
    if return_indices:
        return _largest_of_parts(x, wanted)
    out: Tensor = x
    for count, axis in zip(wanted, (x.ndim - 2, x.ndim - 1), strict=True):
        parts = [max_(cut(out, axis, *ends), axis) for ends in _bounds(x.shape[axis], count)]
        out = stack(parts, axis) if count != x.shape[axis] else out
    return out


def _largest_of_parts(x: Tensor, wanted: Pair) -> ValuesAndIndices:
    planes, width = x.shape[:-2], x.shape[-1]
    positions = []
    for top, bottom in _bounds(x.shape[-2], wanted[0]):
        for left, right in _bounds(width, wanted[1]):
            part = reshape(x[..., top:bottom, left:right], (*planes, (bottom - top) * (right - left)))
            k = argmax(part, -1)
            row, column = floor_divide(k, right - left), remainder(k, right - left)
            positions.append(add(multiply(add(row, top), width), add(column, left)))
    flat = stack(positions, -1)
    values = take_along_axis(reshape(x, (*planes, x.shape[-2] * width)), flat, -1)
    return ValuesAndIndices(reshape(values, (*planes, *wanted)), reshape(flat, (*planes, *wanted)))


def adaptive_max_pool1d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of parts of ``x`` [..., length], so many that the result has ``output_size``.

    With ``return_indices`` a named tuple of them and of their int64 positions, the first of equals.
    """
    what = "adaptive_max_pool1d"
    out = adaptive_max_pool2d(as_row(what, x), (1, only_int(what, "output_size", output_size)), return_indices)
    return ValuesAndIndices(squeeze(out[0], -2), squeeze(out[1], -2)) if return_indices else squeeze(out, -2)
