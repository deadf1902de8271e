"""scipy.signal.windows: vectors of float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.missing_names import Lookup, raising
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import tensor
from jitgrad.signal import profiles
from jitgrad.signal.profiles import Profile

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "cosine", "exponential", "flattop", "gaussian",
    "general_cosine", "general_gaussian", "general_hamming", "get_window", "hamming", "hann", "kaiser", "lanczos", "nuttall",
    "parzen", "triang", "tukey",
]  # fmt: skip


def _window(what: str, M: int, sym: bool, shape: Callable[[int], Profile]) -> Tensor:
    return tensor(profiles.sampled(what, M, sym, shape))


def boxcar(M: int, sym: bool = True) -> Tensor:
    """Ones."""
    return _window("boxcar", M, sym, np.ones)


def hann(M: int, sym: bool = True) -> Tensor:
    """A cosine with zeros at both ends; not ``sym``, here and in the others: one period of it, for transforms."""
    return _window("hann", M, sym, profiles.hamming_like(0.5))


def hamming(M: int, sym: bool = True) -> Tensor:
    """A cosine that does not reach zero."""
    return _window("hamming", M, sym, profiles.hamming_like(profiles.HAMMING))


def general_hamming(M: int, alpha: float, sym: bool = True) -> Tensor:
    """``alpha - (1 - alpha) * cos(...)``."""
    return _window("general_hamming", M, sym, profiles.hamming_like(alpha))


def general_cosine(M: int, a: Sequence[float], sym: bool = True) -> Tensor:
    """A sum of cosines with the weights ``a`` and alternating signs."""
    return _window("general_cosine", M, sym, profiles.cosine_sum(a))


def blackman(M: int, sym: bool = True) -> Tensor:
    """A sum of three cosines."""
    return _window("blackman", M, sym, profiles.cosine_sum(profiles.BLACKMAN))


def nuttall(M: int, sym: bool = True) -> Tensor:
    """A sum of four cosines."""
    return _window("nuttall", M, sym, profiles.cosine_sum(profiles.NUTTALL))


def blackmanharris(M: int, sym: bool = True) -> Tensor:
    """A sum of four cosines, with the least side lobes."""
    return _window("blackmanharris", M, sym, profiles.cosine_sum(profiles.BLACKMAN_HARRIS))


def flattop(M: int, sym: bool = True) -> Tensor:
    """A sum of five cosines, flat in the frequency domain."""
    return _window("flattop", M, sym, profiles.cosine_sum(profiles.FLAT_TOP))


def bartlett(M: int, sym: bool = True) -> Tensor:
    """A triangle with zeros at both ends."""
    return _window("bartlett", M, sym, profiles.triangle)


def triang(M: int, sym: bool = True) -> Tensor:
    """A triangle without zeros."""
    return _window("triang", M, sym, lambda n: 1.0 - np.abs(2.0 * np.arange(n) - (n - 1)) / (n + n % 2))


def cosine(M: int, sym: bool = True) -> Tensor:
    """Half a period of a sine."""
    return _window("cosine", M, sym, profiles.half_sine)


def kaiser(M: int, beta: float, sym: bool = True) -> Tensor:
    """A ratio of modified Bessel functions; `jitgrad.numpy.kaiser` is differentiable by ``beta``."""
    return _window("kaiser", M, sym, profiles.kaiser(beta))


def gaussian(M: int, std: float, sym: bool = True) -> Tensor:
    """A bell curve of the standard deviation ``std``, in points."""
    return _window("gaussian", M, sym, profiles.bell(std))


def general_gaussian(M: int, p: float, sig: float, sym: bool = True) -> Tensor:
    """``exp(-0.5 * |x / sig| ** (2 * p))``."""
    return _window("general_gaussian", M, sym, lambda n: np.exp(-0.5 * np.abs(profiles.centred(n) / sig) ** (2 * p)))


def exponential(M: int, center: float | None = None, tau: float = 1.0, sym: bool = True) -> Tensor:
    """``exp(-|i - center| / tau)``; the centre is the middle, which alone is possible for ``sym``."""
    if sym and center is not None:
        raise ArgumentError(f"exponential: center={center}: a symmetric window has its centre in the middle")
    return _window("exponential", M, sym, profiles.decay(center, tau))


def _unit(n: int) -> Profile:
    """The points as distances from the middle, 1 at both ends."""
    return np.abs(np.linspace(-1.0, 1.0, n))


def bohman(M: int, sym: bool = True) -> Tensor:
    """Bohman's window: the autocorrelation of half a sine."""

    def shape(n: int) -> Profile:
        x = _unit(n)
        inside = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
        inside[[0, -1]] = 0.0
        return inside

    return _window("bohman", M, sym, shape)


def barthann(M: int, sym: bool = True) -> Tensor:
    """A mean of Bartlett's and Hann's windows."""

    def shape(n: int) -> Profile:
        x = np.abs(np.arange(n) / (n - 1.0) - 0.5)
        return 0.62 - 0.48 * x + 0.38 * np.cos(2 * np.pi * x)

    return _window("barthann", M, sym, shape)


def parzen(M: int, sym: bool = True) -> Tensor:
    """Parzen's window: pieces of cubic polynomials."""

    def shape(n: int) -> Profile:
        x = np.abs(profiles.centred(n)) / (n / 2.0)
        return np.where(np.abs(profiles.centred(n)) <= (n - 1) / 4.0, 1 - 6 * x**2 + 6 * x**3, 2 * (1 - x) ** 3)

    return _window("parzen", M, sym, shape)


def tukey(M: int, alpha: float = 0.5, sym: bool = True) -> Tensor:
    """Ones with halves of Hann's window, together a share ``alpha``, at both ends."""
    if alpha <= 0:
        return boxcar(M, sym)
    if alpha >= 1:
        return hann(M, sym)

    def shape(n: int) -> Profile:
        from_end = (n - 1) / 2 - np.abs(profiles.centred(n))
        rise = 0.5 * (1 + np.cos(np.pi * (2.0 * from_end / alpha / (n - 1) - 1)))
        return np.where(from_end <= int(alpha * (n - 1) / 2.0), rise, 1.0)

    return _window("tukey", M, sym, shape)


def lanczos(M: int, *, sym: bool = True) -> Tensor:
    """The middle of a cardinal sine."""
    return _window("lanczos", M, sym, lambda n: np.sinc(2.0 * np.arange(n) / (n - 1) - 1.0))


_BY_NAME: Mapping[str, Callable[..., Tensor]] = {
    **{name: globals()[name] for name in __all__ if name != "get_window"},
    "hanning": hann, "ham": hamming, "han": hann, "black": blackman, "blackharr": blackmanharris, "box": boxcar, "rect": boxcar,
    "rectangular": boxcar, "ones": boxcar, "tri": triang, "triangle": triang, "bart": bartlett, "halfcosine": cosine,
    "sinc": lanczos, "gauss": gaussian, "general gaussian": general_gaussian,
}  # fmt: skip


def get_window(window: str | float | tuple[Any, ...], Nx: int, fftbins: bool = True) -> Tensor:
    """The window named by ``window``: a name, a tuple of a name and parameters, or Kaiser's beta."""
    given = ("kaiser", window) if isinstance(window, (int, float)) else (window,) if isinstance(window, str) else window
    name, parameters = given[0], given[1:]
    if name not in _BY_NAME:
        raise ArgumentError(f"get_window: there is no window {shown(name)}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name](Nx, *parameters, sym=not fftbins)


__getattr__: Lookup = raising("jitgrad.scipy.signal.windows", globals(), {})
