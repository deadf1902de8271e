"""Elementwise ops on large arrays outside of compiled functions: by the kernel that a compiled one would use."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.backends.targets import find_target
from jitgrad.compiler.fusion.group import is_fusible
from jitgrad.core import config
from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import OpDef
from jitgrad.eager import large_arrays
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import compile_graph


@lru_cache(maxsize=256)
def _program(op: OpDef, dtypes: tuple[Dtype, ...], numbers: tuple[bool, ...], out: Dtype, count: int) -> Program | None:
    """The program of ``op`` on vectors of ``count`` elements, and on 0-d arrays where ``numbers``."""
    inputs = tuple(Value(Aval(() if k else (count,), d)) for k, d in zip(numbers, dtypes, strict=True))
    result = Value(Aval((count,), out))
    node = TraceNode(op, inputs, (result,))
    if not is_fusible(node):
        return None
    return compile_graph(Graph(op.name, inputs, (node,), (result,)), find_target("cpu"))


def compute(op: OpDef, function: Callable[..., Any], out: Dtype, arrays: tuple[np.ndarray[Any, Any], ...]) -> Any:
    """``op`` on ``arrays`` by a kernel, or by ``function``."""
    if config.read("JITGRAD_BACKEND") != "cpu" or config.read("JITGRAD_DISABLE"):
        return function(*arrays)
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    numbers = tuple(x.ndim == 0 for x in arrays)
    program = _program(op, tuple(x.dtype for x in arrays), numbers, out, math.prod(shape))
    if program is None:
        return function(*arrays)
    flat = [x if x.ndim == 0 else np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in arrays]
    (result,) = program.run(flat)
    return result.reshape(shape)


large_arrays.compute_by(compute)
