"""`apply_op`, the one door of every op: the interpreter runs it, and the tape records it."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, aval_of_scalar
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import OperandError
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import record
from jitgrad.core.tensor import Tensor, check_supported


def apply_op(op: OpDef, *operands: Any, **attrs: Any) -> Any:
    """Apply ``op`` to Tensors, arrays and numbers, and record it on the tape.

    Attributes are exactly the keywords given here. Nothing is read from the caller's frame or from
    a closure, so any difference between two calls is a difference between their TraceNodes.

    Returns:
        A Tensor, or a tuple of Tensors where ``op.multiple``.

    Raises:
        OperandError: an operand is no tensor, array or number.
        ShapeError, DtypeError: the operands do not fit together.
    """
    interpreter = current_interpreter.get()
    result = interpreter.apply(op, operands, attrs)
    record(op, operands, attrs, result)
    return result


def aval_of(op: OpDef, x: Any) -> Aval:
    """The aval of operand ``x``. Raises OperandError if no op can take it."""
    if isinstance(x, Tensor):
        return x.aval
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return aval_of_scalar(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return Aval(x.shape, check_supported(op.name, x.dtype))
    raise OperandError(
        f"{op.name}: operand of type {type(x).__name__} is neither tensor, array nor number: {str(x)[:60]!r}. "
        "Convert it with jitgrad.tensor(...)"
    )
