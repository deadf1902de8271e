"""The ops that only the compiler makes: no function of the package calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape, complex_dtype_of, real_dtype_of, same_dtype
from jitgrad.core.axis_runs import read_axes, size
from jitgrad.core.ir import evaluate
from jitgrad.core.op import Kind, OpDef, define, define_elementwise
from jitgrad.eager.run import run_on_arrays
from jitgrad.ops.complex_parts import COMPLEX
from jitgrad.ops.indexing import TAKE

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
# ``x`` at other positions along each axis (`jitgrad.core.axis_runs`), among zeros: kernels read it where it is.
OFFSET_READ: OpDef = define(
    "offset_read(x, *, axes)",
    kind=Kind.MOVEMENT,
    eager=lambda x, *, axes: read_axes(np.asarray(x), axes),
    abstract=lambda avals, attrs: Aval(tuple([size(runs) for runs in attrs["axes"]]), avals[0].dtype),
    register=False,
)
# ``x`` shifted cyclically: along ``axis``, from position ``start`` on and then from the beginning.
ROLL: OpDef = define(
    "roll(x, *, axis, start)",
    kind=Kind.OPAQUE,
    eager=lambda x, *, axis, start: np.roll(x, -start, axis),
    abstract=lambda avals, _attrs: Aval(avals[0].shape, avals[0].dtype),
    register=False,
)
# The real (index 0) or the imaginary part of complex numbers where they lie. (Positions of elements stay what they are.)
COMPONENT: OpDef = define(
    "component(x, *, index)",
    kind=Kind.MOVEMENT,
    eager=lambda x, *, index: x if np.asarray(x).dtype.kind != "c" else (np.real(x), np.imag(x))[index],
    abstract=lambda avals, _attrs: Aval(avals[0].shape, real_dtype_of(avals[0].dtype)),
    views=True,
    register=False,
)
# Complex numbers of their parts, which kernels write side by side.
INTERLEAVE: OpDef = define(
    "interleave(re, im)",
    kind=Kind.OPAQUE,
    eager=COMPLEX.eager,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, complex_dtype_of(avals[0].dtype)),
    register=False,
)
# ``index`` into an axis of ``size``, counted from its start; what is out of bounds becomes the nearest that is not.
BOUNDED_INDEX: OpDef = define_elementwise(
    "bounded_index(index, *, size)",
    scalar="minimum(maximum(index if index >= 0 else index + size, 0), size - 1)",
    eager=lambda index, *, size: np.clip(index + size * (index < 0).astype(index.dtype), 0, size - 1),
    dtypes=same_dtype,
    register=False,
)
# The elements of the one-dimensional ``table`` at positions that are in bounds. Kernels load each from its address.
ELEMENT_AT: OpDef = define(
    "element_at(table, index)",
    kind=Kind.ELEMENTWISE,
    scalar="table",  # of the element that a kernel has loaded
    eager=lambda table, index: table[index],
    dtypes=lambda avals, **_attrs: ((avals[0].dtype, avals[1].dtype), avals[0].dtype),
    abstract=lambda avals, _attrs: Aval(avals[1].shape, avals[0].dtype),
    register=False,
)
# Raises NumPy's error for an index that is out of bounds. Its result is not read.
CHECK_INDEX = replace(TAKE, checks=True)
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
