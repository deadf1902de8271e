"""jitgrad.fft, as torch.fft: the transforms of `jitgrad.numpy.fft`, and frequencies in the default dtype."""

# ruff: noqa: PLC0414 - names imported as themselves are public here, too
from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from jitgrad.core.config import get_default_dtype
from jitgrad.core.errors import shown
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.fft import Axes, Lengths, listed
from jitgrad.numpy.fft import (
    fft as fft,
)
from jitgrad.numpy.fft import (
    fft2 as fft2,
)
from jitgrad.numpy.fft import (
    fftn as fftn,
)
from jitgrad.numpy.fft import (
    fftshift as fftshift,
)
from jitgrad.numpy.fft import (
    hfft as hfft,
)
from jitgrad.numpy.fft import (
    ifft as ifft,
)
from jitgrad.numpy.fft import (
    ifft2 as ifft2,
)
from jitgrad.numpy.fft import (
    ifftn as ifftn,
)
from jitgrad.numpy.fft import (
    ifftshift as ifftshift,
)
from jitgrad.numpy.fft import (
    ihfft as ihfft,
)
from jitgrad.numpy.fft import (
    irfft as irfft,
)
from jitgrad.numpy.fft import (
    irfft2 as irfft2,
)
from jitgrad.numpy.fft import (
    irfftn as irfftn,
)
from jitgrad.numpy.fft import (
    rfft as rfft,
)
from jitgrad.numpy.fft import (
    rfft2 as rfft2,
)
from jitgrad.numpy.fft import (
    rfftn as rfftn,
)
from jitgrad.ops import fourier
from jitgrad.ops.creation import asarray, tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def hfftn(input: Any, s: Lengths = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """The real spectrum over the axes ``dim`` (all, or as many of the last as ``s`` has lengths) of Hermitian numbers.

    ``input`` holds the half of them whose index along the last axis is at most half of its length.
    """
    return fourier.hermitian("hfftn", asarray(input), listed(s), listed(dim), norm)


def ihfftn(input: Any, s: Lengths = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of :func:`hfftn`: complex. Raises DtypeError for complex numbers."""
    return fourier.to_hermitian("ihfftn", asarray(input), listed(s), listed(dim), norm)


def hfft2(input: Any, s: Lengths = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`hfftn` over two axes."""
    return fourier.hermitian("hfft2", asarray(input), listed(s), listed(dim), norm)


def ihfft2(input: Any, s: Lengths = None, dim: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`ihfftn` over two axes."""
    return fourier.to_hermitian("ihfft2", asarray(input), listed(s), listed(dim), norm)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of the elements of a transform of ``n`` points at distance ``d``, in cycles."""
    wanted = dtype or get_default_dtype()
    return tensor(np.fft.fftfreq(n, d), dtype=wanted, device=device, requires_grad=requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of the elements of half a spectrum of ``n`` points at distance ``d``."""
    wanted = dtype or get_default_dtype()
    return tensor(np.fft.rfftfreq(n, d), dtype=wanted, device=device, requires_grad=requires_grad)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"jitgrad.fft has no {shown(name)}{meant(name, __all__)}", name=name)
