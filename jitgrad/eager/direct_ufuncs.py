"""Elementwise ops as one call of a NumPy ufunc on the operands as they are.

On small tensors an op takes longer to prepare than to compute. Most need no preparation: the ufunc
converts, broadcasts and checks by itself, where its loop has the dtypes that the op's rule gives.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy._core import umath

from jitgrad.core.aval import Aval, aval_of_scalar
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.float16 import eager_function

LARGE = 1 << 20  # bytes of a result whose allocation takes longer than its computation
_Ufunc = Callable[..., Any] | None
_ndarray = np.ndarray
_of_result = Tensor.of_result

# What np.errstate sets, and a value for it, without an object for each use. Another NumPy may not have them: then nothing
# is direct.
_SETTINGS: ContextVar[Any] = getattr(umath, "_extobj_contextvar", ContextVar("unused"))
_IGNORING: Any = getattr(umath, "_make_extobj", lambda **_: None)(all="ignore")


def quietly(function: Callable[..., Any], *arrays: Any, **attrs: Any) -> Any:
    """``function(*arrays, **attrs)`` without NumPy's warnings about NaN, infinities and division by zero."""
    if _IGNORING is None:
        with np.errstate(all="ignore"):
            return function(*arrays, **attrs)
    token = _SETTINGS.set(_IGNORING)
    try:
        return function(*arrays, **attrs)
    finally:
        _SETTINGS.reset(token)


def direct_result(op: OpDef, operands: tuple[Any, ...]) -> Tensor | None:
    """The result of the elementwise ``op`` without attributes; None if it takes more than a call, or fails."""
    if len(operands) == 2:
        x, y = operands
        if isinstance(x, Tensor):
            a, kind_a = x._data, _kind(x)
        else:
            a, kind_a = x, _SCALARS.get(type(x))
        if isinstance(y, Tensor):
            b, kind_b = y._data, _kind(y)
        else:
            b, kind_b = y, _SCALARS.get(type(y))
        if kind_a is None or kind_b is None:
            return None
        key: Any = (kind_a, kind_b)
        arrays: tuple[Any, ...] = (a, b)
    elif len(operands) == 1 and isinstance(operands[0], Tensor):
        key = _kind(operands[0])
        arrays = (operands[0]._data,)
        if key is None:
            return None
    else:
        return None
    try:
        function = op.direct[key]
    except KeyError:
        function = op.direct[key] = _ufunc(op, key if type(key) is tuple else (key,))
    if function is None:
        return None
    token = _SETTINGS.set(_IGNORING)
    try:
        result = function(*arrays)
    except (ValueError, OverflowError):  # shapes that do not fit, or a number that does not: the checks say so
        return None
    finally:
        _SETTINGS.reset(token)
    return Tensor(result if type(result) is _ndarray else np.asarray(result))


_SCALARS: dict[type, type] = {float: float, int: int, complex: complex}


def _kind(x: Tensor) -> Any:
    """The dtype of ``x``; None unless it is a small array on the host, and not of a Python number."""
    data, aval = x._data, x._aval
    if type(data) is not _ndarray or data.nbytes >= LARGE or (aval is not None and aval.weak):
        return None
    return data.dtype


def _ufunc(op: OpDef, kinds: tuple[Any, ...]) -> _Ufunc:
    """The ufunc that computes ``op`` on operands of ``kinds``, dtypes or Python types; None if there is none."""
    tensors = [k for k in kinds if isinstance(k, np.dtype)]
    if not tensors or _IGNORING is None:
        return None
    if not op.takes_complex and any(k is complex or (isinstance(k, np.dtype) and k.kind == "c") for k in kinds):
        return None
    avals = [Aval((1,), k) if isinstance(k, np.dtype) else aval_of_scalar(k()) for k in kinds]
    try:
        dtypes, out = op.dtypes(avals)
        function = eager_function(op, dtypes)
        if isinstance(function, np.ufunc) and function.resolve_dtypes((*kinds, None)) == (*dtypes, out):
            return function
    except TypeError:
        pass
    return None
