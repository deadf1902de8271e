"""jax.experimental.ode: odeint of pytrees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optree

from jitgrad.batching.vmap import vmap
from jitgrad.core.errors import ArgumentError
from jitgrad.scipy.integrate.dormand_prince import Accuracy
from jitgrad.scipy.integrate.odes import solved


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of ``dy/dt = func(y, t, *args)``, which is the pytree ``y0`` at ``t[0]``, at each of ``t``: first axes.

    Gradients flow to ``y0``, ``t``, ``args`` and all else that ``func`` reads: those of the adjoint equation.

    Raises:
        ArgumentError: ``func`` returns another structure than ``y0``; or the solution takes more than ``mxstep`` steps
            between two times.
        TracedValueError: ``func`` decides by values.
    """
    structure = optree.tree_structure(y0)

    def slope(y: Any, t: Any) -> Any:
        dy = func(y, t, *args)
        if optree.tree_structure(dy) != structure:
            raise ArgumentError(f"odeint: func returns {optree.tree_structure(dy)} for a state {structure}")
        return dy

    rows, unflatten = solved(slope, y0, t, Accuracy(rtol, atol, mxstep, hmax))
    return vmap(unflatten)(rows)
