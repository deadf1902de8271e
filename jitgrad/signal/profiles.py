"""The windows of signals as NumPy arrays: what torch and SciPy call by the same names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, shown

Profile = np.ndarray[Any, Any]

HAMMING = 0.54
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
BLACKMAN = (0.42, 0.5, 0.08)
BLACKMAN_HARRIS = (0.35875, 0.48829, 0.14128, 0.01168)
FLAT_TOP = (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)


def sampled(what: str, M: Any, sym: bool, shape: Callable[[int], Profile]) -> Profile:
    """The ``M`` points of a window, of which ``shape(n)`` gives n symmetric ones; not ``sym``: without the last of M + 1.

    Raises ArgumentError if ``M`` is no number of points.
    """
    try:
        points = operator.index(M)
    except TypeError:
        points = -1
    if points < 0:
        raise ArgumentError(f"{what}: the number of points must be an int that is not negative, got {shown(M)}")
    if points < 2:
        return np.ones(points)
    return shape(points) if sym else shape(points + 1)[:-1]


def cosine_sum(weights: Sequence[float]) -> Callable[[int], Profile]:
    """``sum((-1)**k * weights[k] * cos(2 pi k i / (n - 1)))``."""

    def shape(n: int) -> Profile:
        angle = 2 * np.pi * np.arange(n) / (n - 1)
        out = np.zeros(n)
        for k, weight in enumerate(weights):
            out += (-1) ** k * weight * np.cos(k * angle)
        return out

    return shape


def hamming_like(alpha: float) -> Callable[[int], Profile]:
    """One cosine; ``alpha`` 0.5 is Hann's window."""
    return cosine_sum((alpha, 1.0 - alpha))


def triangle(n: int) -> Profile:
    """Bartlett's window, with zeros at both ends."""
    return np.bartlett(n)


def half_sine(n: int) -> Profile:
    """Half a period of the sine, between the points where it is zero."""
    out: Profile = np.sin(np.pi / n * (np.arange(n) + 0.5))
    return out


def centred(n: int) -> Profile:
    """The points, counted from the middle."""
    return np.arange(n) - (n - 1) / 2


def bell(std: float) -> Callable[[int], Profile]:
    """The density of the normal distribution, 1 in the middle."""

    def shape(n: int) -> Profile:
        out: Profile = np.exp(-0.5 * (centred(n) / std) ** 2)
        return out

    return shape


def decay(center: float | None, tau: float) -> Callable[[int], Profile]:
    """``exp(-|i - center| / tau)``; without a centre, around the middle."""

    def shape(n: int) -> Profile:
        from_center = centred(n) if center is None else np.arange(n) - center
        out: Profile = np.exp(-np.abs(from_center) / tau)
        return out

    return shape


def kaiser(beta: float) -> Callable[[int], Profile]:
    """A ratio of modified Bessel functions."""
    return lambda n: np.kaiser(n, beta)
