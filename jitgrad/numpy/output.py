"""NumPy's ``out=``: results written into a tensor or an array that the caller gives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError, TraceError, class_name
from jitgrad.core.parameters import parameters_of
from jitgrad.core.tensor import Tensor

_P = ParamSpec("_P")


def takes_out(function: Callable[_P, Tensor]) -> Callable[_P, Tensor]:
    """``function`` with its parameter ``out``: what it returns is written there, and ``out`` is returned."""
    positional = parameters_of(function).positional
    place = positional.index("out") if "out" in positional else sys.maxsize

    @wraps(function)
    def writing(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place and "out" not in kwargs:
            return function(*args, **kwargs)
        out = kwargs.pop("out", None)
        if len(args) > place:
            out, args = args[place], (*args[:place], None, *args[place + 1 :])
        result = function(*args, **kwargs)
        return result if out is None else written_into(function.__name__, out, result)

    return writing


def written_into(name: str, out: Any, result: Tensor, broadcasts: bool = False) -> Any:
    """``out`` with ``result``, of its shape or broadcast to it, and cast within its kind, as its contents.

    Raises:
        ArgumentError: ``out`` is neither a tensor nor an array.
        DtypeError, ShapeError: ``result`` does not fit.
        TraceError: ``out`` is an array of NumPy, within a trace.
    """
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if not isinstance(target, (Tensor, np.ndarray)):
        raise ArgumentError(f"jitgrad.numpy.{name}: out= is a tensor or an array, got {class_name(target)}")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DtypeError(
            f"jitgrad.numpy.{name}: cannot write {result.aval} into out= of {target.dtype}, which would lose its kind: give one "
            f"of {result.dtype}, or assign out[...] = {name}(...).astype({target.dtype})"
        )
    shape = tuple(target.shape)
    if result.shape != shape and not (broadcasts and _is_broadcast(result.shape, shape)):
        raise ShapeError(f"jitgrad.numpy.{name}: a result {result.aval} does not fit into out= of shape {shape}")
    if isinstance(target, Tensor):
        target[...] = result
        return target
    if current_interpreter.get().tracing:
        raise TraceError(f"jitgrad.numpy.{name}: out= is an array of NumPy, which a trace cannot change: give a tensor")
    np.copyto(target, np.asarray(result), casting="same_kind")
    return target


def _is_broadcast(shape: Shape, wanted: Shape) -> bool:
    missing = len(wanted) - len(shape)
    return missing >= 0 and all(n in (1, m) for n, m in zip(shape, wanted[missing:], strict=True))
