"""Makes plans: an op on operands of known avals as one call of a NumPy function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Count, Dtype, aval_of_array, aval_of_scalar, strong_aval
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.core.plan import OpPlan
from jitgrad.core.tensor import Tensor
from jitgrad.eager.float16 import eager_function
from jitgrad.eager.half_loops import by_own_loop
from jitgrad.eager.large_arrays import LARGE
from jitgrad.eager.library_kernels import by_library_kernel
from jitgrad.eager.loops import by_loop
from jitgrad.eager.numpy_errors import RETURNS_ARRAYS, keeps_large_arrays, quiet_context, run_quietly
from jitgrad.eager.row_reductions import by_row_reduction
from jitgrad.eager.run import elementwise_function, loop_for, numpy_function, run_with_aval


def make_op_plan(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> OpPlan | None:
    """The plan of ``op`` on operands like these; None if they need more care, or are wrong.

    Tensors among them get the avals by whose identity the plan is found.
    """
    if op.multiple or op.moves or op.weak_results or REGISTRY.get(op.name) is not op or not _are_keys(attrs.values()):
        return None
    number, avals = -1, []
    for k, x in enumerate(operands):
        if type(x) is Tensor:
            if x.aval.weak:
                return None
            x._aval = aval_of_array(x._data)
            if x._aval.dtype.kind == "c":
                return None
            avals.append(x._aval)
        elif type(x) in _NUMBERS and number < 0:
            number = k
            avals.append(aval_of_scalar(x))
        else:
            return None
    if len(avals) == 0 or (number == 0 and len(avals) == 1):
        return None
    try:
        expected = op.abstract(avals, attrs)
    except (ValueError, TypeError):  # the interpreter reports what is wrong
        return None
    assert isinstance(expected, Aval)
    if expected.dtype.kind == "c":  # vjps of complex ops run on tensors
        return None
    return _plan(op, tuple(avals), dict(attrs), expected, number)


def _plan(op: OpDef, avals: tuple[Aval, ...], attrs: dict[str, Any], expected: Aval, number: int) -> OpPlan | None:
    out = strong_aval(expected.shape, expected.dtype)
    dtype = None
    if number >= 0:
        if op.kind is not Kind.ELEMENTWISE:
            return None
        dtype = op.dtypes(avals, **attrs)[0][number]
    given = [strong_aval((), dtype) if k == number and dtype is not None else a for k, a in enumerate(avals)]
    plain = plain_function(op, given, attrs, out)
    if plain is not None:
        fits = isinstance(plain, np.ufunc) and (out.shape, out.dtype) == (avals[0].shape, avals[0].dtype)
        in_place = quiet_context(plain, False) if fits else None
        function = by_row_reduction(op, given, attrs, out, quiet_context(plain, needs_out(plain, out)))
        function = by_library_kernel(op, given, attrs, function)
        function = by_own_loop(op, given, attrs, out, function, run_quietly)
        return OpPlan(op, avals, attrs, out, function, number, dtype, in_place)
    if (loop := loop_for(op, given, attrs)) is not None and RETURNS_ARRAYS:
        function = by_loop(loop, numpy_function(op, given, attrs), out, run_quietly)
        return OpPlan(op, avals, attrs, out, function, number, dtype)
    function = by_library_kernel(op, given, attrs, on_arrays(op, given, attrs, out))
    function = by_own_loop(op, given, attrs, out, function, run_quietly)
    return OpPlan(op, avals, attrs, out, function, number, dtype)


def plain_function(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any], out: Aval) -> Callable[..., Any] | None:
    """A function that does nothing but compute ``op`` on arrays of ``avals`` as they are; None if there is none.

    It reads no context but NumPy's, and takes ``out=...`` if `needs_out`.
    """
    if not RETURNS_ARRAYS or (_nbytes(out) >= LARGE and not op.views and not keeps_large_arrays()):
        return None
    if op.kind is not Kind.ELEMENTWISE or attrs:
        return None if op.prepare is None else op.prepare(avals, attrs)
    dtypes, result = op.dtypes(avals)
    function = eager_function(op, dtypes)
    given: tuple[Dtype | None, ...] = (*[a.dtype for a in avals], None)
    if not isinstance(function, np.ufunc) or tuple(dtypes) != given[:-1]:
        return None
    try:
        return function if function.resolve_dtypes(given) == (*dtypes, result) else None
    except TypeError:
        return None


def needs_out(function: Callable[..., Any], out: Aval) -> bool:
    """Whether ``function`` returns a NumPy scalar without ``out=...``."""
    return not out.shape and isinstance(function, np.ufunc)


def on_arrays(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any], out: Aval) -> Callable[..., Any]:
    """The eager function of ``op`` on arrays of ``avals``, whose result is known to be ``out``."""
    if op.kind is not Kind.ELEMENTWISE:
        return partial(run_with_aval, op, out, attrs)
    return elementwise_function(op, avals, attrs)


def _nbytes(aval: Aval) -> int:
    return math.prod(aval.shape) * aval.dtype.itemsize


_NUMBERS = (int, float, Count)
_SIMPLE = (int, bool, str, type(None), np.dtype)


def _are_keys(values: Any) -> bool:
    """Whether equal attributes mean the same: not if these are zeros of either sign, or ``(1.0,)``, equal to ``(1,)``."""
    for value in values:
        kind = type(value)
        if kind is tuple:
            if not all(type(v) in (int, str, type(None)) or (type(v) is tuple and _are_keys(v)) for v in value):
                return False
        elif kind is float:
            if value == 0 or math.isnan(value):
                return False
        elif not isinstance(value, _SIMPLE) or (isinstance(value, int) and kind not in (int, bool)):
            return False
    return True
