"""The ops that only the compiler makes: no function of the package calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape, same_dtype
from jitgrad.core.ir import evaluate
from jitgrad.core.op import Kind, OpDef, define, define_elementwise
from jitgrad.eager.interpreter import run_on_arrays

Index = tuple[tuple[int, int, int], ...]  # (start, step, length) per axis


def _insert_slices(*parts: np.ndarray[Any, Any], shape: Shape, indices: Sequence[Index]) -> np.ndarray[Any, Any]:
    out = np.zeros(shape, parts[0].dtype)
    for part, index in zip(parts, indices, strict=True):
        out[np.ix_(*(np.arange(n) * step + start for start, step, n in index))] = part
    return out


# A copy: elements are brought in order, or written to a second place.
IDENTITY: OpDef = define_elementwise(
    "identity(x)", scalar="x", eager=lambda x: x, dtypes=same_dtype, views=True, domain=("real",), register=False
)
# Zeros of ``shape`` with every part at its index; the parts do not overlap.
INSERT_SLICES: OpDef = define(
    "insert_slices(*parts, shape, indices)",
    kind=Kind.OPAQUE,
    eager=_insert_slices,
    abstract=lambda avals, attrs: Aval(attrs["shape"], avals[0].dtype),
    register=False,
)
# A kernel: ``body`` is its graph, ``group`` its axes and the order of its loops.
FUSED = OpDef(
    name="fused",
    kind=Kind.FUSED,
    operands=("inputs",),
    attrs=("body", "group"),
    variadic=True,
    multiple=True,
    eager=lambda *arrays, body, group: evaluate(body, arrays, run_on_arrays),
    abstract=lambda avals, attrs: tuple(value.aval for value in attrs["body"].outputs),
)
# The ops of a kernel that turned out to be wrong, one after the other.
UNFUSED = replace(FUSED, name="group", kind=Kind.OPAQUE)
