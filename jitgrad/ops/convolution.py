"""Convolution: windows of an image as an op, and products over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray, full
from jitgrad.ops.linalg import matmul, matrix_transpose_of
from jitgrad.ops.movement import cut, expand_dims, place, reshape, squeeze

Pair = tuple[int, int]
Border = tuple[Pair, Pair]  # (top, bottom), (left, right)


def _counts(shape: Sequence[int], kernel: Pair, stride: Pair, dilation: Pair) -> Pair:
    """How many windows fit along each of the last two axes."""
    rows, columns = (
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(shape[-2:], kernel, stride, dilation, strict=True)
    )
    return rows, columns


def _windows_of(x: Any, kernel: Pair, stride: Pair, dilation: Pair) -> Any:
    """The windows of ``x`` [..., h, w] as a strided view [..., kh, kw, oh, ow], writeable if ``x`` is."""
    sh, sw = x.strides[-2:]
    strides = (*x.strides[:-2], sh * dilation[0], sw * dilation[1], sh * stride[0], sw * stride[1])
    shape = (*x.shape[:-2], *kernel, *_counts(x.shape, kernel, stride, dilation))
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def copy_windows(x: Any, *, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray[Any, Any]:
    return np.array(_windows_of(np.asarray(x), kernel, stride, dilation), order="C")  # windows of 1 x 1 are a view


def add_windows(x: Any, *, shape: Pair, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray[Any, Any]:
    array = np.asarray(x)
    out = np.zeros((*array.shape[:-4], *shape), array.dtype)
    windows = _windows_of(out, kernel, stride, dilation)
    # different windows may share elements of the image; elements at one position of all windows differ
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            windows[..., row, column, :, :] += array[..., row, column, :, :]
    return out


def _unfold_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,) = avals
    counts = _counts(x.shape, attrs["kernel"], attrs["stride"], attrs["dilation"])
    if x.ndim < 2 or min(counts) < 1:
        raise ShapeError(f"the (padded) image {x} is smaller than the window {attrs['kernel']}")
    return Aval((*x.shape[:-2], *attrs["kernel"], *counts), x.dtype)


UNFOLD: OpDef = define(
    "unfold(x, *, kernel, stride, dilation)",
    kind=Kind.OPAQUE,
    eager=copy_windows,
    abstract=_unfold_aval,
    vjp=(lambda g, _out, _x, **attrs: apply_op(FOLD, g, shape=_x.shape[-2:], **attrs),),
    domain=("matrix",),
    sample_attrs={"kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)},
    fills=True,
)
FOLD: OpDef = define(
    "fold(x, *, shape, kernel, stride, dilation)",
    kind=Kind.OPAQUE,
    eager=add_windows,
    abstract=lambda avals, attrs: Aval((*avals[0].shape[:-4], *attrs["shape"]), avals[0].dtype),
    vjp=(lambda g, _out, _x, *, shape, **attrs: apply_op(UNFOLD, g, **attrs),),
    sample_attrs={"shape": (3, 4), "kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)},
    fills=True,
)


def int_pair(what: str, name: str, value: Any, least: int) -> Pair:
    pair = (value, value) if isinstance(value, (int, np.integer)) else tuple(value)
    pair = pair * 2 if len(pair) == 1 else pair
    if len(pair) != 2 or min(pair) < least:
        raise ArgumentError(f"{what}: {name} must be an int or two ints of at least {least}, got {shown(value)}")
    return int(pair[0]), int(pair[1])


def padded(x: Tensor, border: Border, value: float = 0.0) -> Tensor:
    """``x`` [..., h, w] with (top, bottom) and (left, right) rows and columns of ``value`` around it."""
    if border == ((0, 0), (0, 0)):
        return x
    (top, bottom), (left, right) = border
    h, w = x.shape[-2:]
    shape = (*x.shape[:-2], h + top + bottom, w + left + right)
    index = (*((0, 1, n) for n in x.shape[:-2]), (top, 1, h), (left, 1, w))
    out = place(x, shape, index)
    if value == 0.0:
        return out
    inside = place(full(x.shape, True, dtype=np.bool_, device=x.device), shape, index)
    return where(inside, out, value)


def as_images(what: str, x: Any) -> tuple[Tensor, bool]:
    """``x`` as [n, channels, h, w], and whether the batch axis was put there."""
    x = asarray(x)
    if x.ndim not in (3, 4):
        raise ShapeError(f"{what}: expected [n, channels, h, w] or [channels, h, w], got {x.aval}")
    return (expand_dims(x, 0), True) if x.ndim == 3 else (x, False)


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The cross-correlation of ``x`` [n, c, h, w] with ``weight`` [out, c / groups, kh, kw], as torch's conv2d.

    The windows become columns of a matrix, for one matrix product (K. Chellapilla, S. Puri, P. Simard, "High
    performance convolutional neural networks for document processing", 2006). ``padding`` may be "same" or "valid".

    Raises:
        ShapeError: channels, groups and weight do not fit, or the image is smaller than the window.
    """
    x, alone = as_images("conv2d", x)
    weight = asarray(weight)
    if weight.ndim != 4 or groups < 1 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(f"conv2d: image {x.aval}, weight {weight.aval} and groups={groups} do not fit together")
    steps, spread = int_pair("conv2d", "stride", stride, 1), int_pair("conv2d", "dilation", dilation, 1)
    kernel = weight.shape[2:]
    border = _border(padding, kernel, steps, spread)
    windows = apply_op(UNFOLD, padded(x, border), kernel=kernel, stride=steps, dilation=spread)
    rows, columns = windows.shape[-2:]
    inner = weight.shape[1] * kernel[0] * kernel[1]
    outs = weight.shape[0]
    left = reshape(weight, (groups, outs // groups, inner))
    right = reshape(windows, (x.shape[0], groups, inner, rows * columns))
    out = reshape(matmul(left, right), (x.shape[0], outs, rows, columns))
    if bias is not None:
        out = add(out, expand_dims(asarray(bias), (1, 2)))
    return reshape(out, out.shape[1:]) if alone else out


def _even(padding: Pair) -> Border:
    """The same padding on both sides."""
    return (padding[0], padding[0]), (padding[1], padding[1])


def _border(padding: Any, kernel: Sequence[int], stride: Pair, dilation: Pair) -> Border:
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding != "same":
        return _even(int_pair("conv2d", "padding", padding, 0))
    if stride != (1, 1):
        raise ArgumentError(f"conv2d: padding='same' needs stride 1, got {stride}")
    rows, columns = (d * (k - 1) for k, d in zip(kernel, dilation, strict=True))
    # of an odd total the larger part comes after the image, as in torch
    return (rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2)


def conv_transpose2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of :func:`conv2d`, for ``x`` [n, c, h, w] and ``weight`` [c, out / groups, kh, kw], as in torch.

    Raises:
        ShapeError: channels, groups and weight do not fit.
        ArgumentError: the padding leaves no image.
    """
    what = "conv_transpose2d"
    x, alone = as_images(what, x)
    weight = asarray(weight)
    if weight.ndim != 4 or groups < 1 or x.shape[1] != weight.shape[0] or x.shape[1] % groups:
        raise ShapeError(f"{what}: image {x.aval}, weight {weight.aval} and groups={groups} do not fit together")
    steps, spread = int_pair(what, "stride", stride, 1), int_pair(what, "dilation", dilation, 1)
    margin, extra = int_pair(what, "padding", padding, 0), int_pair(what, "output_padding", output_padding, 0)
    (n, ins, h, w), (_, outs, *kernel) = x.shape, weight.shape
    left = reshape(weight, (groups, ins // groups, outs * kernel[0] * kernel[1]))
    right = reshape(x, (n, groups, ins // groups, h * w))
    columns = reshape(matmul(matrix_transpose_of(left), right), (n, groups * outs, *kernel, h, w))
    whole = [(m - 1) * s + d * (k - 1) + 1 for m, s, d, k in zip((h, w), steps, spread, kernel, strict=True)]
    attrs: dict[str, Any] = {"kernel": tuple(kernel), "stride": steps, "dilation": spread}
    out: Tensor = padded(apply_op(FOLD, columns, shape=tuple(whole), **attrs), ((0, extra[0]), (0, extra[1])))
    for axis, m in zip((2, 3), margin, strict=True):
        if out.shape[axis] <= 2 * m:
            raise ArgumentError(f"{what}: padding={margin} leaves nothing of an image of {out.shape[2:]}")
        out = cut(out, axis, m, out.shape[axis] - m) if m else out
    out = out if bias is None else add(out, expand_dims(asarray(bias), (1, 2)))
    return reshape(out, out.shape[1:]) if alone else out


# --- sequences: images of one row --------------------------------------------------------------------------------


def only_int(what: str, name: str, value: Any) -> int:
    """An argument for sequences: an int, or a sequence of one."""
    listed = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if len(listed) != 1:
        raise ArgumentError(f"{what}: {name} must be an int or a sequence of one, got {shown(value)}")
    return int(listed[0])


def _row(what: str, name: str, value: Any) -> Pair:
    """An argument for images of one row, from that for a sequence."""
    return (0 if "padding" in name else 1), only_int(what, name, value)


def as_row(what: str, x: Any) -> Tensor:
    x = asarray(x)
    if x.ndim not in (2, 3):
        raise ShapeError(f"{what}: expected [n, channels, length] or [channels, length], got {x.aval}")
    return expand_dims(x, -2)


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """:func:`conv2d` of ``x`` [n, c, length] with ``weight`` [out, c / groups, k]."""
    steps, spread = _row("conv1d", "stride", stride), _row("conv1d", "dilation", dilation)
    border = padding if isinstance(padding, str) else _row("conv1d", "padding", padding)
    rows, kernel = as_row("conv1d", x), as_row("conv1d", weight)
    return squeeze(conv2d(rows, kernel, bias, steps, border, spread, groups), -2)


def conv_transpose1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """:func:`conv_transpose2d` of ``x`` [n, c, length] with ``weight`` [c, out / groups, k]."""
    what = "conv_transpose1d"
    steps, spread = _row(what, "stride", stride), _row(what, "dilation", dilation)
    margin, extra = _row(what, "padding", padding), _row(what, "output_padding", output_padding)
    rows, kernel = as_row(what, x), as_row(what, weight)
    return squeeze(conv_transpose2d(rows, kernel, bias, steps, margin, extra, groups, spread), -2)
