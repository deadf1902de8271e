"""Values that Python code asks of a trace: those of constants, and the error for others."""

from __future__ import annotations

import linecache
import re
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core import traced_constants
from jitgrad.core.context import Interpreter
from jitgrad.core.errors import LeakedTracerError, TracedValueError
from jitgrad.core.ir import Graph, Value, evaluate, line_of
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.eager.run import run_on_arrays

_SHARING = ("numpy()", "np.asarray()")  # later changes of the tensor would have to show in the array
_SELECTIONS = ("indexing with a mask", "nonzero", "unique", "unique_all", "unique_consecutive")
_MOST_BYTES = 1 << 20  # of a tensor outside, which a guard compares on every call


def constant_contents(trace: Interpreter, tensor: Tensor, what: str) -> np.ndarray[Any, Any] | None:
    """The contents of a tensor that depends on no input of ``trace``, such as a mask of ``eye``; None for others.

    The program is right only for the arrays from outside that these come from.
    """
    value = trace.current(tensor)
    if what in _SHARING or type(value) is not Value:
        return None
    pair = traced_constants.contents_of_constant(value)
    if pair is None:
        return None
    contents, arrays = pair
    for array in arrays:
        trace.rely_on(array)
    return contents


def known_contents(trace: Any, tensor: Tensor, what: str) -> np.ndarray[Any, Any] | None:
    """The contents of a tensor for the operation ``what`` in the outermost ``trace``; None if it must not ask.

    The program is right for calls in which that tensor has the same.
    """
    for find in (constant_contents, state_contents, trace.decisions.decide):
        known: np.ndarray[Any, Any] | None = find(trace, tensor, what)
        if known is not None:
            return known
    return None


def state_contents(trace: Any, tensor: Tensor, what: str) -> np.ndarray[Any, Any] | None:
    """The contents of a tensor that depends on integers and bools of tensors outside alone; None for others.

    Such are the mask of a data set and a flag in a buffer. The program is right only for what these hold now.
    """
    value = trace.current(tensor)
    if what in _SHARING or tensor.dtype.kind not in "biu":
        return None
    graph = eliminate_dead(trace.graph((value,)))
    used = {atom for node in graph.nodes for atom in node.ins}.union(graph.outputs)
    pairs = [(v, s) for v, s in zip(graph.inputs, trace.sources, strict=True) if v in used]
    if not all(_has_contents(source) for _, source in pairs):
        return None
    for _, source in pairs:
        trace.rely_on(source.key)
    known = replace(graph, inputs=tuple([v for v, _ in pairs]))
    arrays = tuple([np.array(s.key._data if isinstance(s.key, Tensor) else s.key) for _, s in pairs])
    contents: np.ndarray[Any, Any] = evaluate(known, arrays, run_on_arrays)[0]
    return contents


def _has_contents(source: InputSource) -> bool:
    """Whether a guard can compare what ``source`` gives."""
    if source.kind in (SourceKind.ARRAY, SourceKind.CONSTANT):
        return True
    if source.kind is not SourceKind.TENSOR or source.key.dtype == np.uint64:  # of a random generator
        return False
    array = source.key._data
    return type(array) is np.ndarray and array.dtype.kind in "biu" and array.nbytes <= _MOST_BYTES


def raise_leaked(what: str, function: str) -> NoReturn:
    """Raise the error for ``what``, of the trace of another call, in that of ``function``."""
    raise LeakedTracerError(
        f"{what} that was made while tracing another @jit call is used while tracing {function!r}. It escaped through a "
        "global, an attribute or a list; return it instead."
    )


def missing_value(graph: Graph, value: Value, tensor: Tensor, what: str) -> TracedValueError:
    """The error for the operation ``what``, which needs the contents of ``tensor``: ``value`` of ``graph``."""
    line = line_of(value, graph, "    {}\n")
    indexed = ""
    if what == "np.asarray()" and tensor.dtype.kind in "iub":
        indexed = "If it is an index of a NumPy array, make that a tensor: jitgrad.asarray(array)[index].\n"
    origin = Origin.capture()
    rewrite = _rewrite(linecache.getline(origin.file, origin.line)) if what == "bool()" else ""
    remedy = _remedy(what)
    return TracedValueError(
        f"{what} needs the value of an array that is only being traced: {tensor.aval}, "
        f"at {origin.full()}\n{line}{indexed}{rewrite}"
        f"@jit runs the function once per input shape, with no data in it. {remedy}"
        f"{'Or move' if remedy else 'Move'} this line out of the @jit function, or use "
        '@jit(fallback="eager").'
    )


def _remedy(what: str) -> str:
    """What to write in place of the operation ``what``, which asks for values; empty if that depends on the operation."""
    if what == "bool()":
        return (
            "Use jitgrad.where(cond, a, b) for a choice per element, jitgrad.maximum(a, b) and minimum in place of "
            "max(a, b) and min; pass Python values through static_argnames. "
        )
    if what in ("int()", "float()", "complex()", "item()", "an index"):
        return (
            "Keep the number a tensor, which every jitgrad function takes, and ask for its value after the call; pass "
            "sizes and counts of steps through static_argnames. "
        )
    if what in (*_SHARING, "tolist()"):
        return (
            "Return the tensor and ask for its values after the call; use the functions of jitgrad or jitgrad.numpy "
            "in place of NumPy's. "
        )
    if what in _SELECTIONS:
        return (
            "The shape of the result would depend on it. Keep all elements: jitgrad.where(mask, x, 0).sum() is "
            "x[mask].sum(), divided by mask.sum() it is the mean. "
        )
    return ""


def _rewrite(code: str) -> str:
    """What to write in place of the line ``code``, which decides by a tensor, as a line; nothing for a plain ``if``."""
    if match := re.search(r"(?<![.\w])(max|min)\(", code):
        return f"Python's {match[1]} decides by the value: write jitgrad.{match[1]}imum(a, b) in this line.\n"
    advice = ""
    if match := re.search(r"\b(and|or|not)\b", code):
        advice = f"For `{match[0]}` of tensors write jitgrad.logical_{match[0]}. "
    if advice or re.search(r"\bif\b.+\belse\b", code):
        advice += "Choose with r = jitgrad.where(condition, a, b), which computes both a and b"
        return f"{advice}; if a divides by 0 where it is not chosen, divide by where(condition, y, 1.0).\n"
    return ""
