"""Python ints that do not fit in the integer dtype that an op computes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Count, Dtype
from jitgrad.core.op import Kind, OpDef

_INTS = (int, Count)
_FITS_ALL = range(128)  # in every integer dtype


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
