"""scipy.linalg: solutions, factors and functions of matrices with gradients; imports core, ops, numpy.

What there is not is SciPy's own. A name is public once it is imported here ``as`` itself.
"""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import Any as _Any

from jitgrad.core.errors import shown as _shown
from jitgrad.numpy.linalg import det as det
from jitgrad.numpy.linalg import eigvalsh as eigvalsh
from jitgrad.numpy.linalg import inv as inv
from jitgrad.numpy.linalg import matrix_exp as expm
from jitgrad.numpy.linalg import norm as norm
from jitgrad.numpy.linalg import pinv as pinv
from jitgrad.numpy.linalg import svdvals as svdvals
from jitgrad.ops.grids import block_diag as block_diag
from jitgrad.scipy.linalg.factors import cho_factor as cho_factor
from jitgrad.scipy.linalg.factors import cho_solve as cho_solve
from jitgrad.scipy.linalg.factors import cholesky as cholesky
from jitgrad.scipy.linalg.factors import solve as solve
from jitgrad.scipy.linalg.factors import solve_triangular as solve_triangular

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted(
    name for name, value in {**globals(), "expm": expm}.items() if name[0] != "_" and not isinstance(value, _ModuleType)
)


def __getattr__(name: str) -> _Any:
    """SciPy's own, if it is installed: functions of arrays, without gradients and outside of @jit."""
    if not name.startswith("_"):
        try:
            import scipy.linalg as own
        except ImportError:
            own = None
        if own is not None and hasattr(own, name):
            return getattr(own, name)
    raise AttributeError(f"jitgrad.scipy.linalg has no {_shown(name)}; jitgrad.numpy.linalg has more functions", name=name)
