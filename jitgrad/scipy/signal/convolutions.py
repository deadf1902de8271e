"""scipy.signal's convolutions and correlations of arrays with any number of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy import calculus, fft
from jitgrad.numpy.arguments import tensor_of
from jitgrad.ops.arithmetic import astype, conjugated, multiply
from jitgrad.ops.convolution import conv2d
from jitgrad.ops.joining import pad
from jitgrad.ops.movement import flip
from jitgrad.ops.rounding import round

_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """The convolution of two arrays with equally many axes; ``method`` changes nothing.

    ``mode`` is "full", "same" (as long as ``in1``, from the middle) or "valid" (where one lies within the other).

    Raises:
        ShapeError: other numbers of axes, or "valid" where neither has room for the other. ArgumentError: another mode.
    """
    x, y = _operands("convolve", in1, in2, mode)
    whole = np.result_type(x.dtype, y.dtype)
    if not x.ndim:
        return multiply(x, y)
    if x.ndim == 1:
        return _cut(calculus.convolve(x, y), x, y, mode)
    if x.ndim == 2 and whole.kind == "f":
        m, n = y.shape
        images = pad(astype(x, whole), ((m - 1, m - 1), (n - 1, n - 1)))[None, None]
        return _cut(conv2d(images, flip(astype(y, whole))[None, None])[0, 0], x, y, mode)
    return fftconvolve(x, y, mode)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: None = None) -> Tensor:
    """`convolve` by Fourier transforms; of integers floats that are whole, made integers again.

    Raises ArgumentError if ``axes`` are given, and what `convolve` does.
    """
    x, y = _operands("fftconvolve", in1, in2, mode)
    if axes is not None:
        raise ArgumentError("fftconvolve: it takes all axes; leave axes out")
    if not x.ndim:
        return multiply(x, y)
    whole = np.result_type(x.dtype, y.dtype)
    lengths = [n + m - 1 for n, m in zip(x.shape, y.shape, strict=True)]
    if whole.kind == "c":
        full = fft.ifftn(multiply(fft.fftn(x, lengths), fft.fftn(y, lengths)))
    else:
        full = fft.irfftn(multiply(fft.rfftn(x, lengths), fft.rfftn(y, lengths)), lengths)
    return _cut(astype(full if whole.kind in "fc" else round(full), whole), x, y, mode)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """The correlation: `convolve` with the conjugate of ``in2`` backwards."""
    return convolve(in1, flip(conjugated(tensor_of(in2))), mode)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Tensor:
    """`convolve` of matrices; beyond its edges ``in1`` is ``fillvalue``, periodic ("wrap") or a mirror ("symm").

    Raises ArgumentError for another boundary, and what `convolve` does.
    """
    x, y = _operands("convolve2d", in1, in2, mode)
    if x.ndim != 2:
        raise ShapeError(f"convolve2d: expected two matrices, got {x.aval} and {y.aval}")
    if boundary not in _BOUNDARIES:
        raise ArgumentError(f"convolve2d: boundary must be fill, wrap or symm, got {shown(boundary)}")
    if mode == "valid" or (boundary == "fill" and isinstance(fillvalue, (int, float)) and not fillvalue):
        return convolve(x, y, mode)
    widths = tuple((m - 1, m - 1) for m in y.shape)
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    return _cut(convolve(pad(x, widths, _BOUNDARIES[boundary], **options), y, "valid"), x, y, mode)


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Tensor:
    """The correlation of matrices: `convolve2d` with the conjugate of ``in2`` backwards.

    Of "same" the middle is that of the matrices backwards, as in SciPy.
    """
    return flip(convolve2d(flip(tensor_of(in1)), conjugated(tensor_of(in2)), mode, boundary, fillvalue))


def _operands(name: str, in1: Any, in2: Any, mode: str) -> tuple[Tensor, Tensor]:
    x, y = tensor_of(in1), tensor_of(in2)
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"{name}: mode must be full, same or valid, got {shown(mode)}")
    if x.ndim != y.ndim or not x.size or not y.size:
        raise ShapeError(f"{name}: expected two arrays with as many axes, none empty, got {x.aval} and {y.aval}")
    pairs = list(zip(x.shape, y.shape, strict=True))
    if mode == "valid" and not (all(n >= m for n, m in pairs) or all(n <= m for n, m in pairs)):
        raise ShapeError(f"{name}: for 'valid' one must have room for the other along every axis, got {x.aval} and {y.aval}")
    return x, y


def _cut(full: Tensor, x: Tensor, y: Tensor, mode: str) -> Tensor:
    """The part that ``mode`` asks for, of the whole convolution of ``x`` and ``y``."""
    if mode == "full":
        return full
    starts, lengths = [], []
    for n, m in zip(x.shape, y.shape, strict=True):
        starts.append(min(n, m) - 1 if mode == "valid" else (m - 1) // 2)
        lengths.append(abs(n - m) + 1 if mode == "valid" else n)
    return full[tuple(slice(a, a + k) for a, k in zip(starts, lengths, strict=True))]
