"""scipy.signal: windows and convolutions with gradients; imports core, ops, numpy, signal, scipy.fallback.

What there is not is SciPy's own. A name is public once it is imported here ``as`` itself.
"""

from typing import Any as _Any

from jitgrad.core.errors import shown as _shown
from jitgrad.scipy.fallback import own_of_scipy as _own_of_scipy
from jitgrad.scipy.signal import windows as windows
from jitgrad.scipy.signal.convolutions import convolve as convolve
from jitgrad.scipy.signal.convolutions import convolve2d as convolve2d
from jitgrad.scipy.signal.convolutions import correlate as correlate
from jitgrad.scipy.signal.convolutions import correlate2d as correlate2d
from jitgrad.scipy.signal.convolutions import fftconvolve as fftconvolve

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "windows"]


def __getattr__(name: str) -> _Any:
    """SciPy's own, if it is installed: functions of arrays, without gradients and outside of @jit."""
    found = _own_of_scipy("signal", name)
    if found is None:
        raise AttributeError(f"jitgrad.scipy.signal has no {_shown(name)}", name=name)
    return found
