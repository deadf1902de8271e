"""torch's ``out=``: results written into tensors that the caller gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.context import grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, ShapeError, class_name
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import detached
from jitgrad.ops.inplace import assign


def written_out(name: str, out: Any, result: Any) -> Any:
    """``out``, a tensor or a tuple of them, which holds ``result`` from now on, in its own dtype.

    An empty tensor takes the shape of its result, and its memory.

    Raises:
        ArgumentError: ``out`` is no tensor, or not one for each result.
        AutogradError: the result, or ``out``, requires grad.
        DtypeError, ShapeError: the result does not fit.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"torch.{name}: out= is a tuple of {len(result)} tensors, got {class_name(out)}")
        for target, part in zip(out, result, strict=True):
            written_out(name, target, part)
        return result._make(out) if hasattr(result, "_make") else tuple(out)
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        raise ArgumentError(f"torch.{name}: out= is a tensor, got {class_name(out)} for a result {class_name(result)}")
    if grad_enabled.get() and (result._requires_grad or out._requires_grad):
        raise AutogradError(f"torch.{name}: out= has no gradients, and an operand requires grad: leave it out, or use no_grad()")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DtypeError(f"torch.{name}: cannot write {result.aval} into out= of {out.dtype}: give one of {result.dtype}")
    value = astype(detached(result), out.dtype, copy=False)
    if out.shape == value.shape:
        return assign(out, value)
    if out.size:
        raise ShapeError(f"torch.{name}: a result {result.aval} does not fit into out= {out.aval}: give one like it, or empty")
    empty: Any = out
    empty.data = value
    return out
