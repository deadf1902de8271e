"""torch's windows of signals: hann_window and others, by default periodic."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.signal import profiles, windows


def hann_window(window_length: int, periodic: bool = True, *, layout: Any = None, **options: Any) -> Tensor:
    """Hann's window: one period of a cosine, from zero; not ``periodic``: with a zero at its end, too.

    ``options``, here and in the others, are ``dtype``, ``device`` and ``requires_grad``.
    """
    return windows.hann(window_length, sym=not periodic, **options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, layout: Any = None, **options: Any
) -> Tensor:
    """``alpha - beta * cos(...)``."""
    shape = profiles.cosine_sum((alpha, beta))
    return windows.sampled_window("hamming_window", window_length, not periodic, shape, layout, **options)


def blackman_window(window_length: int, periodic: bool = True, *, layout: Any = None, **options: Any) -> Tensor:
    """Blackman's window: a sum of three cosines."""
    return windows.blackman(window_length, sym=not periodic, **options)


def bartlett_window(window_length: int, periodic: bool = True, *, layout: Any = None, **options: Any) -> Tensor:
    """Bartlett's window: a triangle."""
    return windows.bartlett(window_length, sym=not periodic, **options)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, layout: Any = None, **options: Any
) -> Tensor:
    """Kaiser's window: a ratio of modified Bessel functions."""
    return windows.kaiser(window_length, beta=beta, sym=not periodic, **options)
