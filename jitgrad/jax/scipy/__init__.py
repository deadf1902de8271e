"""jax.scipy: jitgrad.scipy but for what JAX gives another meaning; imports core, lax, numpy, scipy."""

from typing import Any as _Any

from jitgrad import scipy as _scipy
from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias
from jitgrad.jax.scipy import ndimage as ndimage
from jitgrad.jax.scipy import sparse as sparse

_ModuleAlias("jitgrad.jax.scipy", "jitgrad.scipy", ["ndimage", "sparse"]).install()

__all__ = ["ndimage", "sparse"]


def __getattr__(name: str) -> _Any:
    return getattr(_scipy, name)
