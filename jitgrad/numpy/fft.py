"""numpy.fft: discrete Fourier transforms with gradients; float32 and complex64 stay in single precision.

Compiled functions call NumPy's transforms between their kernels. Every function also takes torch's ``dim=``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from jitgrad.core.aval import normalize_axes
from jitgrad.core.errors import shown
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.numpy.output import takes_out
from jitgrad.ops import fourier, joining
from jitgrad.ops.creation import asarray
from jitgrad.ops.keywords import takes_dim

Lengths = Sequence[int | None] | int | None
Axes = Sequence[int] | int | None

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def listed(x: Lengths | Axes) -> Any:
    """Lengths or axes as a tuple; None stays."""
    return (x,) if isinstance(x, (int, np.integer)) else x


@takes_out
@takes_dim(input="a")
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Tensor:
    """The discrete Fourier transform along ``axis``, of ``n`` points: ``a`` is cropped, or padded with zeros.

    ``norm`` says which direction divides by n: "backward" (the default) the inverse, "forward" this one, "ortho" both by
    the square root. Raises ShapeError for ``n < 1``.
    """
    return fourier.transform("fft", tensor_of(a), (n,), (axis,), norm, inverse=False)


@takes_out
@takes_dim(input="a")
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Tensor:
    """The inverse of :func:`fft`, with its arguments."""
    return fourier.transform("ifft", tensor_of(a), (n,), (axis,), norm, inverse=True)


@takes_out
@takes_dim(input="a")
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Tensor:
    """The ``n // 2 + 1`` first elements of the transform of real ``a``; the others are their conjugates.

    Raises DtypeError for a complex ``a``.
    """
    return fourier.transform_real("rfft", tensor_of(a), (n,), (axis,), norm)


@takes_out
@takes_dim(input="a")
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Tensor:
    """The ``n`` real numbers with the half spectrum ``a``, by default ``2 * (m - 1)`` for m elements along ``axis``.

    The imaginary parts of the first element, and of the last for an even n, do not count.
    """
    return fourier.transform_to_real("irfft", tensor_of(a), (n,), (axis,), norm)


@takes_out
@takes_dim(input="a")
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Tensor:
    """The real spectrum of ``n`` numbers whose second half are conjugates of the first, which ``a`` holds."""
    return fourier.hermitian("hfft", tensor_of(a), (n,), (axis,), norm)


@takes_out
@takes_dim(input="a")
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Tensor:
    """The inverse of :func:`hfft`."""
    return fourier.to_hermitian("ihfft", tensor_of(a), (n,), (axis,), norm)


@takes_out
@takes_dim(input="a", dim="axes")
def fftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, out: Any = None) -> Tensor:
    """The transform over ``axes`` (all, or as many of the last as ``s`` has lengths), cropped or padded to ``s``."""
    return fourier.transform("fftn", tensor_of(a), listed(s), listed(axes), norm, inverse=False)


@takes_out
@takes_dim(input="a", dim="axes")
def ifftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, out: Any = None) -> Tensor:
    """The inverse of :func:`fftn`, with its arguments."""
    return fourier.transform("ifftn", tensor_of(a), listed(s), listed(axes), norm, inverse=True)


@takes_out
@takes_dim(input="a", dim="axes")
def rfftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, out: Any = None) -> Tensor:
    """:func:`rfft` along the last of ``axes``, then :func:`fft` along the others."""
    return fourier.transform_real("rfftn", tensor_of(a), listed(s), listed(axes), norm)


@takes_out
@takes_dim(input="a", dim="axes")
def irfftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None, out: Any = None) -> Tensor:
    """The inverse of :func:`rfftn`: :func:`irfft` along the last of ``axes`` comes last."""
    return fourier.transform_to_real("irfftn", tensor_of(a), listed(s), listed(axes), norm)


@takes_out
@takes_dim(input="a", dim="axes")
def fft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None, out: Any = None) -> Tensor:
    """:func:`fftn` over two axes."""
    return fourier.transform("fft2", tensor_of(a), listed(s), listed(axes), norm, inverse=False)


@takes_out
@takes_dim(input="a", dim="axes")
def ifft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None, out: Any = None) -> Tensor:
    """:func:`ifftn` over two axes."""
    return fourier.transform("ifft2", tensor_of(a), listed(s), listed(axes), norm, inverse=True)


@takes_out
@takes_dim(input="a", dim="axes")
def rfft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None, out: Any = None) -> Tensor:
    """:func:`rfftn` over two axes."""
    return fourier.transform_real("rfft2", tensor_of(a), listed(s), listed(axes), norm)


@takes_out
@takes_dim(input="a", dim="axes")
def irfft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None, out: Any = None) -> Tensor:
    """:func:`irfftn` over two axes."""
    return fourier.transform_to_real("irfft2", tensor_of(a), listed(s), listed(axes), norm)


def fftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of the elements of a transform of ``n`` points at distance ``d``, in cycles, float64."""
    return asarray(np.fft.fftfreq(n, d))


def rfftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of the elements of half a spectrum of ``n`` points at distance ``d``, float64."""
    return asarray(np.fft.rfftfreq(n, d))


def _rolled(x: Any, axes: Axes, forward: bool) -> Tensor:
    given = tensor_of(x)
    found = normalize_axes("fftshift", listed(axes), given.ndim)
    halves = [given.shape[k] // 2 if forward else -(given.shape[k] // 2) for k in found]
    return joining.roll(given, tuple(halves), tuple(found)) if found else given


@takes_dim(input="x", dim="axes")
def fftshift(x: Any, axes: Axes = None) -> Tensor:
    """``x`` with the element of frequency 0 in the middle of ``axes`` (None: all)."""
    return _rolled(x, axes, True)


@takes_dim(input="x", dim="axes")
def ifftshift(x: Any, axes: Axes = None) -> Tensor:
    """The inverse of :func:`fftshift`, which differs from it for odd lengths."""
    return _rolled(x, axes, False)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"jitgrad.numpy.fft has no {shown(name)}{meant(name, __all__)}", name=name)
