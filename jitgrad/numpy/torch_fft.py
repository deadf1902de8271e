"""jitgrad.fft, as torch.fft: the transforms of `jitgrad.numpy.fft`, and frequencies in the default dtype."""

# ruff: noqa: PLC0414 - names imported as themselves are public here, too
from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from jitgrad.core.config import get_default_dtype
from jitgrad.core.errors import shown
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
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
from jitgrad.ops.creation import tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


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
