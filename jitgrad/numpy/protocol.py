"""NumPy's own functions on tensors: ``numpy.hstack(tensors)`` calls the function of that name here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.ops import interop

_DISPATCHED = type(np.sum)  # the type of NumPy's functions that ask their arguments for __array_function__


def overrides(names: Mapping[str, Any], module: Any) -> dict[Any, Callable[..., Any]]:
    """The functions of ``module``, NumPy or a part of it, with those of ``names`` that answer for tensors."""
    own = {name: f for name, f in names.items() if isinstance(f, FunctionType) and f.__module__.startswith("jitgrad.")}
    theirs = {getattr(module, name, None): f for name, f in own.items()}
    return {function: f for function, f in theirs.items() if isinstance(function, _DISPATCHED)}


def install(names: Mapping[str, Any], linalg: Mapping[str, Any], fft: Mapping[str, Any]) -> None:
    """Let NumPy's functions, and ufuncs that are no ops, call those of ``names``.

    Those of numpy.linalg call ``linalg``, those of numpy.fft ``fft``.
    """
    found = overrides(linalg, np.linalg) | overrides(fft, np.fft) | overrides(names, np)
    for conversion in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        found[conversion] = _arrays_without_history(conversion, found[conversion])
    interop.NUMPY_FUNCTIONS.update(found)
    for name, function in names.items():
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and isinstance(function, FunctionType):
            interop.UFUNCS.setdefault(ufunc.__name__, function)


def _arrays_without_history(conversion: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """``conversion`` of tensors, which gives arrays unless gradients flow through it.

    SciPy's optimisers so convert what a function returns, and some give it to C code, which takes arrays only.
    """

    def converted(*tensors: Any) -> Any:
        if any(isinstance(t, Tensor) and (t.requires_grad or not isinstance(t._data, np.ndarray)) for t in tensors):
            return own(*tensors)
        return conversion(*[t.numpy() if isinstance(t, Tensor) else t for t in tensors])

    return converted
