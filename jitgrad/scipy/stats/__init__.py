"""scipy.stats: log densities and distribution functions, in ops only; imports core, ops, numpy, scipy.special.

What there is not is SciPy's own. A name is public once it is imported here ``as`` itself.
"""

# ruff: noqa: I001
# fmt: off
import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

from jitgrad.core.errors import shown as _shown
from jitgrad.scipy.stats.continuous import (
    beta as beta, cauchy as cauchy, chi2 as chi2, expon as expon, gamma as gamma, laplace as laplace,
    logistic as logistic, norm as norm, t as t, uniform as uniform,
)
from jitgrad.scipy.stats.discrete import (
    bernoulli as bernoulli, binom as binom, geom as geom, nbinom as nbinom,
    poisson as poisson,
)
from jitgrad.scipy.stats.multinomial import dirichlet as dirichlet, multinomial as multinomial
from jitgrad.scipy.stats.multivariate_normal import multivariate_normal as multivariate_normal
from jitgrad.scipy.stats.positive import (
    gumbel_r as gumbel_r, halfnorm as halfnorm, invgamma as invgamma, lognorm as lognorm, pareto as pareto,
    weibull_min as weibull_min,
)

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted(
    name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)
)

# `import jitgrad.scipy.stats.norm as norm`, as programs write it for autograd and JAX
_sys.modules.update({f"{__name__}.{name}": globals()[name] for name in globals()["__all__"]})


def __getattr__(name: str) -> _Any:
    """SciPy's own, if it is installed: functions of arrays, without gradients and outside of @jit."""
    if not name.startswith("_"):
        try:
            import scipy.stats as own
        except ImportError:
            own = None
        if own is not None and hasattr(own, name):
            return getattr(own, name)
    raise AttributeError(
        f"jitgrad.scipy.stats has no {_shown(name)}; write its log density with jitgrad.scipy.special", name=name
    )
