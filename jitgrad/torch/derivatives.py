"""torch.autograd.functional: Jacobians and Hessians at given inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jitgrad
from jitgrad.autograd import functional
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, **_options: Any) -> Any:
    """The Jacobian of ``func`` at ``inputs``: a tensor, or for a tuple of inputs or results a tuple of them, as in torch.

    It is computed for all rows at once, whatever ``vectorize`` and ``strategy`` say; an input that does not matter has zeros
    even with ``strict``.
    """
    return _derivatives(jitgrad.func.jacrev, func, inputs, create_graph)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, **_options: Any) -> Any:
    """The Hessian of ``func``, whose result is one number, at ``inputs``: for a tuple of them a tuple of tuples."""
    return _derivatives(jitgrad.func.hessian, func, inputs, create_graph)


def install_derivatives() -> None:
    """Give `jitgrad.autograd.functional` what torch has there; jitgrad's own functions of these names take other arguments."""
    for function in (jacobian, hessian):
        setattr(functional, function.__name__, function)


def _derivatives(transform: Callable[..., Any], func: Callable[..., Any], inputs: Any, create_graph: bool) -> Any:
    several = isinstance(inputs, tuple | list)
    given = tuple(inputs) if several else (inputs,)
    result = transform(func, argnums=tuple(range(len(given))) if several else 0)(*given)
    return result if create_graph else _detached(result)


def _detached(result: Any) -> Any:
    return detached(result) if isinstance(result, Tensor) else tuple(map(_detached, result))
