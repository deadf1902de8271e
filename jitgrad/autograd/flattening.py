"""All numbers of a pytree as one vector, for callers that know vectors only, such as SciPy's optimisers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from jitgrad.core.errors import DtypeError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import cut, reshape
from jitgrad.ops.operand import Operand


def flatten_params(params: Any) -> tuple[Tensor, Callable[[Operand], Any]]:
    """``(vector, unflatten)``: the elements of all leaves one after the other, and the function back to the pytree.

    Leaves are tensors, arrays and numbers. The vector has their common dtype; ``unflatten`` gives each leaf its shape and
    dtype. Gradients flow through both.

    Raises:
        DtypeError: a leaf is not floating. ShapeError: ``unflatten`` gets a vector of another length.
    """
    leaves, treedef = optree.tree_flatten(params)
    tensors = [asarray(x) for x in leaves]
    for x in tensors:
        if x.dtype.kind != "f":
            raise DtypeError(f"flatten_params: a leaf is {x.aval}; only floats can be varied, so keep it out of the tree")
    shapes, dtypes = [x.shape for x in tensors], [x.dtype for x in tensors]
    ends = np.cumsum([x.size for x in tensors]).tolist()
    common = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)

    def unflatten(vector: Operand) -> Any:
        """The pytree with the elements of ``vector``."""
        flat = asarray(vector)
        length = ends[-1] if ends else 0
        if flat.shape != (length,):
            raise ShapeError(f"unflatten: {flat.aval} for {len(ends)} leaves, which have {length} elements together")
        parts = [cut(flat, 0, start, stop) for start, stop in zip([0, *ends], ends, strict=False)]
        return optree.tree_unflatten(
            treedef, [astype(reshape(x, shape), dtype, copy=False) for x, shape, dtype in zip(parts, shapes, dtypes, strict=True)]
        )

    if not tensors:
        return asarray(np.empty(0)), unflatten
    return concat([astype(reshape(x, (x.size,)), common, copy=False) for x in tensors]), unflatten
