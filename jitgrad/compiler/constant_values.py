"""Values that Python code asks of a trace: those of constants, and the error for others."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core import traced_constants
from jitgrad.core.context import Interpreter
from jitgrad.core.errors import TracedValueError
from jitgrad.core.ir import Graph, Value, line_of
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor

_SHARING = ("numpy()", "np.asarray()")  # later changes of the tensor would have to show in the array


def constant_contents(trace: Interpreter, tensor: Tensor, what: str) -> np.ndarray[Any, Any] | None:
    """The contents of a tensor that depends on no input of ``trace``, such as a mask of ``eye``; None for others.

    The program is right only for the arrays from outside that these come from.
    """
    value = trace.current(tensor)
    if what in _SHARING or type(value) is not Value:
        return None
    found = traced_constants.contents_of_constant(value)
    if found is None:
        return None
    contents, arrays = found
    for array in arrays:
        trace.rely_on(array)
    return contents


def missing_value(graph: Graph, value: Value, tensor: Tensor, what: str) -> TracedValueError:
    """The error for the operation ``what``, which needs the contents of ``tensor``: ``value`` of ``graph``."""
    line = line_of(value, graph, "    {}\n")
    indexed = ""
    if what == "np.asarray()" and tensor.dtype.kind in "iub":
        indexed = "If it is an index of a NumPy array, make that a tensor: jitgrad.asarray(array)[index].\n"
    return TracedValueError(
        f"{what} needs the value of an array that is only being traced: {tensor.aval}, "
        f"at {Origin.capture().full()}\n{line}{indexed}"
        "@jit runs the function once per input shape, with no data in it. Use jitgrad.where(cond, a, b) for a choice "
        "per element, jitgrad.maximum(a, b) and minimum in place of max(a, b) and min, "
        "pass Python values through static_argnames, move this line out of the @jit function, or use "
        '@jit(fallback="eager").'
    )
