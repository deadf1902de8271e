"""SciPy's own functions under jitgrad's names: of tensors without gradients, outside of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from jitgrad.core.errors import AutogradError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray


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
    return _on_tensors(module, name, found) if callable(found) and not isinstance(found, type) else found


def _on_tensors(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def array_of(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
            return type(x)(map(array_of, x))
        if not isinstance(x, Tensor):
            return x
        if x.requires_grad:
            raise AutogradError(
                f"scipy.{module}.{name} is SciPy's own, and has no gradient: pass x.detach(), or make it an op: "
                f"jg.custom_op(forward=scipy.{module}.{name}, vjp=...)"
            )
        return np.asarray(x)

    def has_tensor(x: Any) -> bool:
        return isinstance(x, Tensor) or (type(x) in (list, tuple) and any(map(has_tensor, x)))

    @wraps(function)
    def on_tensors(*args: Any, **kwargs: Any) -> Any:
        if not any(map(has_tensor, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        result = function(*map(array_of, args), **{k: array_of(x) for k, x in kwargs.items()})
        return _tensors_of(result)

    return on_tensors


def _tensors_of(result: Any) -> Any:
    if isinstance(result, (np.ndarray, np.number)) and result.dtype.kind in "biufc":
        return asarray(result)
    return tuple(map(_tensors_of, result)) if type(result) is tuple else result
