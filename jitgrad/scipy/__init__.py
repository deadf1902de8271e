"""SciPy's names: differentiable functions, in ops only, and SciPy's own modules; imports core, ops, numpy, signal.

What is not here, such as `optimize` and `interpolate`, is SciPy's own, which takes functions of tensors as they are.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias
from jitgrad.scipy import linalg as linalg
from jitgrad.scipy import ndimage as ndimage
from jitgrad.scipy import signal as signal
from jitgrad.scipy import special as special
from jitgrad.scipy import stats as stats

_ModuleAlias("jitgrad.scipy", "scipy", ["fallback", "integrate", "linalg", "ndimage", "signal", "special", "stats"]).install()


def __getattr__(name: str) -> _Any:
    """The module of that name here, or ``scipy.name``, if SciPy is installed."""
    if not name.startswith("_"):
        try:
            return _import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"jitgrad.scipy has no {name!r}: {error}", name=name) from None
    raise AttributeError(f"jitgrad.scipy has no {name!r}", name=name)
