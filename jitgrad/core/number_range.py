"""Operands that an op cannot take: complex ones, and Python ints that do not fit in its integer dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Count, Dtype
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import Kind, OpDef

_INTS = (int, Count)
_FITS_ALL = range(128)  # in every integer dtype
_FITS_FLOATS = 1 << 15  # a number nearer to 0 overflows in no floating dtype


_INSTEAD = {
    "less": "compare real parts, or abs(x)", "less_equal": "compare real parts, or abs(x)",
    "greater": "compare real parts, or abs(x)", "greater_equal": "compare real parts, or abs(x)",
    "maximum": "choose with where(abs(x) >= abs(y), x, y)", "minimum": "choose with where(abs(x) <= abs(y), x, y)",
    "max": "take it of abs(x) or x.real", "min": "take it of abs(x) or x.real",
    "argmax": "take it of abs(x) or x.real", "argmin": "take it of abs(x) or x.real",
    "argsort": "sort by abs(x) or x.real", "argtopk": "choose by abs(x) or x.real",
}  # fmt: skip


def refusal_of_complex(what: str, aval: Aval) -> DtypeError:
    """The error of a function that complex numbers have not."""
    remedy = _INSTEAD.get(what, "apply it to abs(x), or to x.real and x.imag")
    order = ": complex numbers have no order" if what in _INSTEAD else ""
    return DtypeError(f"{what} is not defined for complex operands, got {aval}{order}; {remedy}")


def check_complex(op: OpDef, avals: Sequence[Aval]) -> None:
    """Raise DtypeError if ``op`` has a complex operand, and is not defined for it."""
    for aval in avals:
        if aval.dtype.kind == "c":
            raise refusal_of_complex(op.name, aval)


def held_for_certain(value: Any, dtype: Dtype) -> bool:
    """Whether ``value`` is a Python number that needs no care in ``dtype``: it fits, or is rounded to a float."""
    kind = type(value)
    if kind is float:
        return dtype.kind == "f" and -_FITS_FLOATS < value < _FITS_FLOATS
    if kind is int and dtype.kind in "iuf":
        return value in _FITS_ALL
    return isinstance(value, int) and value in (0, 1)


def check_numbers(op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]) -> None:
    """The Python ints among ``operands`` fit in the dtypes that ``op`` converts them to.

    Kernels would wrap around without a word where NumPy raises an error.

    Raises:
        OverflowError: otherwise.
    """
    for k, x in enumerate(operands):
        if type(x) in _INTS and x not in _FITS_ALL and (dtype := _dtype_of(op, k, avals, attrs)).kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= x <= limits.max:
                raise OverflowError(
                    f"{op.name}: {x} does not fit in {dtype}, the dtype of the other operands or of the result, whose numbers "
                    f"go from {limits.min} to {limits.max}. Use another number, or convert to a wider dtype first, as "
                    "x.astype(jg.int64) does"
                )


def _dtype_of(op: OpDef, position: int, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Dtype:
    """What ``op`` converts a number at ``position`` to; bool if that is of no interest."""
    found: Dtype
    if op.kind is Kind.ELEMENTWISE:
        found = op.dtypes(list(avals), **attrs)[0][position]
    else:
        found = np.dtype(attrs.get("dtype", np.bool_))
    return found
