"""torch.signal.windows: vectors in the default dtype, unless ``dtype=`` names another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitgrad.core.config import get_default_dtype
from jitgrad.core.errors import ArgumentError
from jitgrad.core.missing_names import Lookup, raising
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import tensor
from jitgrad.signal import profiles

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def sampled_window(
    what: str, M: Any, sym: bool, shape: Callable[[int], profiles.Profile], layout: Any, **options: Any
) -> Tensor:
    """The window ``shape`` of ``M`` points, in the default dtype unless ``options`` name one."""
    points = profiles.sampled(what, M, sym, shape)
    return tensor(points, **{**options, "dtype": options.get("dtype") or get_default_dtype()})


def hann(M: int, *, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Hann's window of ``M`` points: a cosine with zeros at both ends; not ``sym``: one period of it, for transforms.

    ``options``, here and in the others, are ``dtype``, ``device`` and ``requires_grad``.
    """
    return sampled_window("hann", M, sym, profiles.hamming_like(0.5), layout, **options)


def hamming(M: int, *, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Hamming's window: a cosine that does not reach zero."""
    return sampled_window("hamming", M, sym, profiles.hamming_like(profiles.HAMMING), layout, **options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """``alpha - (1 - alpha) * cos(...)``."""
    return sampled_window("general_hamming", M, sym, profiles.hamming_like(alpha), layout, **options)


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """A sum of cosines with the weights ``a`` and alternating signs."""
    if not isinstance(a, Sequence) or not a:
        raise ArgumentError(f"general_cosine: a must be a list of at least one weight, got {a!r}")
    return sampled_window("general_cosine", M, sym, profiles.cosine_sum(a), layout, **options)


def blackman(M: int, *, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Blackman's window: a sum of three cosines."""
    return sampled_window("blackman", M, sym, profiles.cosine_sum(profiles.BLACKMAN), layout, **options)


def nuttall(M: int, *, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Nuttall's window: a sum of four cosines."""
    return sampled_window("nuttall", M, sym, profiles.cosine_sum(profiles.NUTTALL), layout, **options)


def bartlett(M: int, *, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Bartlett's window: a triangle with zeros at both ends."""
    return sampled_window("bartlett", M, sym, profiles.triangle, layout, **options)


def cosine(M: int, *, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Half a period of a sine."""
    return sampled_window("cosine", M, sym, profiles.half_sine, layout, **options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """Kaiser's window: a ratio of modified Bessel functions."""
    if beta < 0:
        raise ArgumentError(f"kaiser: beta must not be negative, got {beta}")
    return sampled_window("kaiser", M, sym, profiles.kaiser(beta), layout, **options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, layout: Any = None, **options: Any) -> Tensor:
    """A bell curve of the standard deviation ``std``, in points."""
    if std <= 0:
        raise ArgumentError(f"gaussian: std must be positive, got {std}")
    return sampled_window("gaussian", M, sym, profiles.bell(std), layout, **options)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, layout: Any = None, **options: Any
) -> Tensor:
    """``exp(-|i - center| / tau)``; the centre is the middle, which alone is possible for ``sym``."""
    if tau <= 0 or (sym and center is not None):
        raise ArgumentError(f"exponential: tau must be positive, and center=None if sym, got tau={tau}, center={center}")
    return sampled_window("exponential", M, sym, profiles.decay(center, tau), layout, **options)


__getattr__: Lookup = raising("jitgrad.signal.windows", globals(), {})
