"""The three products of a convolution as ops: windows of images times weights, and both gradients.

Their machine code (`jitgrad.runtime.library.convolutions`) has the windows of a part of an image in memory at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.ops.convolution import UNFOLD, Pair, add_windows, copy_windows


def _windows(image: Any, groups: int, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray[Any, Any]:
    """The windows of ``image`` as matrices [n, groups, channels * kh * kw, windows]."""
    parts = copy_windows(image, kernel=kernel, stride=stride, dilation=dilation)
    n, channels, kh, kw, rows, columns = parts.shape
    return parts.reshape(n, groups, channels // groups * kh * kw, rows * columns)


def _convolve(left: Any, image: Any, **attrs: Pair) -> np.ndarray[Any, Any]:
    out: np.ndarray[Any, Any] = np.matmul(left, _windows(image, len(left), **attrs))
    return out


def _convolve_transposed(left: Any, right: Any, *, shape: Pair, **attrs: Pair) -> np.ndarray[Any, Any]:
    columns = np.matmul(left, right)
    n, groups, inner, _ = columns.shape
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    counts = [(m - d * (k - 1) - 1) // s + 1 for m, k, s, d in zip(shape, kernel, stride, dilation, strict=True)]
    parts = columns.reshape(n, groups * inner // (kernel[0] * kernel[1]), *kernel, *counts)
    return add_windows(parts, shape=shape, kernel=kernel, stride=stride, dilation=dilation)


def _weight_gradient(y: Any, image: Any, *, parts: int, transposed: bool, **attrs: Pair) -> np.ndarray[Any, Any]:
    groups, m = y.shape[1:3]
    windows = _windows(image, groups, **attrs)
    total = np.matmul(y, np.swapaxes(windows, -1, -2)).sum(0)
    out = np.zeros((parts, groups, m, windows.shape[2]), y.dtype)
    out[0] = total
    return np.ascontiguousarray(np.swapaxes(out, -1, -2)) if transposed else out


def _abstract_convolve(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    left, image = avals
    windows = UNFOLD.abstract([image], attrs)
    assert isinstance(windows, Aval)
    return Aval((image.shape[0], *left.shape[:2], windows.shape[-2] * windows.shape[-1]), image.dtype)


def _abstract_transposed(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    left, right = avals
    kh, kw = attrs["kernel"]
    return Aval((right.shape[0], left.shape[0] * left.shape[1] // (kh * kw), *attrs["shape"]), right.dtype)


def _abstract_weight_gradient(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    y, image = avals
    kh, kw = attrs["kernel"]
    groups, m = y.shape[1:3]
    inner = image.shape[1] // groups * kh * kw
    return Aval((attrs["parts"], groups, *((inner, m) if attrs["transposed"] else (m, inner))), y.dtype)


# ``left`` [groups, m, inner] times the windows of ``image`` [n, c, h, w], each with ``inner`` elements: [n, groups, m, windows].
CONVOLVE: OpDef = define(
    "convolve(left, image, *, kernel, stride, dilation)",
    kind=Kind.OPAQUE,
    eager=_convolve,
    abstract=_abstract_convolve,
    register=False,
    fills=True,
)
# Windows ``left`` [groups, inner, m] times ``right`` [n, groups, m, windows], added up to images [n, c, *shape].
CONVOLVE_TRANSPOSED: OpDef = define(
    "convolve_transposed(left, right, *, shape, kernel, stride, dilation)",
    kind=Kind.OPAQUE,
    eager=_convolve_transposed,
    abstract=_abstract_transposed,
    register=False,
    fills=True,
)
# ``y`` [n, groups, m, windows] times the transposed windows of ``image``, summed over images in ``parts`` parts:
# [parts, groups, m, inner], or if ``transposed``, [parts, groups, inner, m]. The sum over the parts is wanted.
WEIGHT_GRADIENT: OpDef = define(
    "weight_gradient(y, image, *, kernel, stride, dilation, parts, transposed)",
    kind=Kind.OPAQUE,
    eager=_weight_gradient,
    abstract=_abstract_weight_gradient,
    register=False,
    fills=True,
)
_DEPTHWISE_ROWS, _DEPTHWISE_ELEMENTS = 4, 49  # of weights, and of a window: so many loads and factors are in one loop


def is_depthwise(channels: int, m: int, kernel: Sequence[int]) -> bool:
    """Whether a group of one channel is convolved without a product of matrices, which would have ``m`` rows."""
    return channels == 1 and m <= _DEPTHWISE_ROWS and kernel[0] * kernel[1] <= _DEPTHWISE_ELEMENTS


CONVOLUTIONS = frozenset({CONVOLVE, CONVOLVE_TRANSPOSED, WEIGHT_GRADIENT})
