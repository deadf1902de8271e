"""Convolution and pooling: windows of an image as an op, and products and reductions over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray, full
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import expand_dims, place, reshape
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import sum as sum_

Pair = tuple[int, int]


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


def _unfold(x: Any, *, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(_windows_of(np.asarray(x), kernel, stride, dilation))


def _fold(x: Any, *, shape: Pair, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray[Any, Any]:
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
    eager=_unfold,
    abstract=_unfold_aval,
    vjp=(lambda g, _out, _x, **attrs: apply_op(FOLD, g, shape=_x.shape[-2:], **attrs),),
    domain=("matrix",),
    sample_attrs={"kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)},
)
FOLD: OpDef = define(
    "fold(x, *, shape, kernel, stride, dilation)",
    kind=Kind.OPAQUE,
    eager=_fold,
    abstract=lambda avals, attrs: Aval((*avals[0].shape[:-4], *attrs["shape"]), avals[0].dtype),
    vjp=(lambda g, _out, _x, *, shape, **attrs: apply_op(UNFOLD, g, **attrs),),
    sample_attrs={"shape": (3, 4), "kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)},
)


def _pair(what: str, name: str, value: Any, least: int) -> Pair:
    pair = (value, value) if isinstance(value, (int, np.integer)) else tuple(value)
    if len(pair) != 2 or min(pair) < least:
        raise ArgumentError(f"{what}: {name} must be an int or two ints of at least {least}, got {shown(value)}")
    return int(pair[0]), int(pair[1])


def _padded(x: Tensor, padding: Pair, value: float = 0.0) -> Tensor:
    """``x`` [..., h, w] with a border of ``value``."""
    if padding == (0, 0):
        return x
    (top, left), (h, w) = padding, x.shape[-2:]
    shape = (*x.shape[:-2], h + 2 * top, w + 2 * left)
    index = (*((0, 1, n) for n in x.shape[:-2]), (top, 1, h), (left, 1, w))
    out = place(x, shape, index)
    if value == 0.0:
        return out
    inside = place(full(x.shape, True, dtype=np.bool_), shape, index)
    return where(inside, out, value)


def _image(what: str, x: Any) -> tuple[Tensor, bool]:
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
    x, alone = _image("conv2d", x)
    weight = asarray(weight)
    if weight.ndim != 4 or groups < 1 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(f"conv2d: image {x.aval}, weight {weight.aval} and groups={groups} do not fit together")
    steps, spread = _pair("conv2d", "stride", stride, 1), _pair("conv2d", "dilation", dilation, 1)
    kernel = weight.shape[2:]
    border = _border(padding, kernel, steps, spread)
    windows = apply_op(UNFOLD, _padded(x, border), kernel=kernel, stride=steps, dilation=spread)
    rows, columns = windows.shape[-2:]
    inner = weight.shape[1] * kernel[0] * kernel[1]
    outs = weight.shape[0]
    left = reshape(weight, (groups, outs // groups, inner))
    right = reshape(windows, (x.shape[0], groups, inner, rows * columns))
    out = reshape(matmul(left, right), (x.shape[0], outs, rows, columns))
    if bias is not None:
        out = add(out, expand_dims(asarray(bias), (1, 2)))
    return reshape(out, out.shape[1:]) if alone else out


def _border(padding: Any, kernel: Sequence[int], stride: Pair, dilation: Pair) -> Pair:
    if padding == "valid":
        return 0, 0
    if padding != "same":
        return _pair("conv2d", "padding", padding, 0)
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    if stride != (1, 1) or total[0] % 2 or total[1] % 2:
        raise ArgumentError("conv2d: padding='same' needs stride 1 and windows of odd size")
    return total[0] // 2, total[1] // 2


def max_pool2d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The largest element of each window of ``x`` [n, c, h, w]; padding counts as -inf. Equal largest elements share
    the gradient."""
    x, alone = _image("max_pool2d", x)
    kernel = _pair("max_pool2d", "kernel_size", kernel_size, 1)
    border = _pair("max_pool2d", "padding", padding, 0)
    least = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    windows = apply_op(
        UNFOLD,
        _padded(x, border, least),
        kernel=kernel,
        stride=kernel if stride is None else _pair("max_pool2d", "stride", stride, 1),
        dilation=_pair("max_pool2d", "dilation", dilation, 1),
    )
    out = max_(windows, axis=(2, 3))
    return reshape(out, out.shape[1:]) if alone else out


def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *, count_include_pad: bool = True
) -> Tensor:
    """The mean of each window of ``x`` [n, c, h, w]; padding counts as zeros, or not at all."""
    x, alone = _image("avg_pool2d", x)
    kernel = _pair("avg_pool2d", "kernel_size", kernel_size, 1)
    steps = kernel if stride is None else _pair("avg_pool2d", "stride", stride, 1)
    border = _pair("avg_pool2d", "padding", padding, 0)
    attrs: dict[str, Any] = {"kernel": kernel, "stride": steps, "dilation": (1, 1)}
    total = sum_(apply_op(UNFOLD, _padded(x, border), **attrs), axis=(2, 3))
    if count_include_pad:
        out = divide(total, kernel[0] * kernel[1])
    else:
        inside = _padded(full(x.shape[2:], 1.0, dtype=x.dtype, device=x.device), border)
        out = divide(total, sum_(apply_op(UNFOLD, inside, **attrs), axis=(0, 1)))
    return reshape(out, out.shape[1:]) if alone else out
