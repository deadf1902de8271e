"""jax.scipy: jitgrad.scipy but for what JAX gives another meaning; imports core, numpy, scipy."""

from typing import Any as _Any

from jitgrad import scipy as _scipy
from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias
from jitgrad.jax.scipy import ndimage as ndimage

_ModuleAlias("jitgrad.jax.scipy", "jitgrad.scipy", ["ndimage"]).install()

__all__ = ["ndimage"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipy, name)
