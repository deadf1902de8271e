"""SciPy's own functions under jitgrad's names: of tensors without gradients, outside of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.numpy.missing import on_arrays


def own_of_scipy(module: str, name: str) -> Any:
    """``scipy.module.name``, or None: where SciPy is not installed, or has no such name.

    A function takes tensors as arrays, and then returns tensors for arrays; it raises AutogradError for one that requires
    grad, and TracedValueError in a trace.
    """
    if name.startswith("_"):
        return None
    try:
        found = getattr(import_module(f"scipy.{module}"), name, None)
    except ImportError:
        return None
    return _on_tensors(f"scipy.{module}.{name}", found) if callable(found) and not isinstance(found, type) else found


def _on_tensors(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    on_tensors = on_arrays(name, function)

    def has_tensor(x: Any) -> bool:
        return isinstance(x, Tensor) or (type(x) in (list, tuple) and any(map(has_tensor, x)))

    @wraps(function)
    def of_tensors_only(*args: Any, **kwargs: Any) -> Any:
        return (on_tensors if any(map(has_tensor, (*args, *kwargs.values()))) else function)(*args, **kwargs)

    return of_tensors_only
