"""scipy.integrate: odeint, and rules for samples; imports compiler, autograd, eager, jit, numpy, scipy, ops, core."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import shown
from jitgrad.numpy.calculus import trapezoid as trapezoid
from jitgrad.scipy.fallback import own_of_scipy
from jitgrad.scipy.integrate.odes import odeint as odeint
from jitgrad.scipy.integrate.samples import cumulative_trapezoid as cumulative_trapezoid
from jitgrad.scipy.integrate.samples import simpson as simpson


def __getattr__(name: str) -> Any:
    """SciPy's own, if it is installed: functions of arrays, without gradients and outside of @jit."""
    found = own_of_scipy("integrate", name)
    if found is None:
        raise AttributeError(f"jitgrad.scipy.integrate has no {shown(name)}", name=name)
    return found
